// CHI_HAS_... marks optional parts.
#include "choir/library.h"

#include <string.h>

int choir_version(void)
{
	return CHOIR_VERSION;
}

bool choir_has_feature(const char *feature)
{
	static const char *const features[] = {
#ifdef CHI_HAS_ONEDNN
		"onednn",
#endif
#ifdef CHI_HAS_ZLIB
		"zlib",
#endif
#ifdef CHI_HAS_HDF5
		"hdf5",
#endif
#ifdef CHI_HAS_PNG
		"png",
#endif
#ifdef CHI_HAS_JPEG
		"jpeg",
#endif
#ifdef CHI_HAS_MPI
		"mpi",
#endif
#ifdef CHI_HAS_CUDA
		"cuda",
#endif
		NULL,
	};
	for (const char *const *f = features; feature && *f; f++)
		if (strcmp(*f, feature) == 0)
			return true;
	return false;
}
