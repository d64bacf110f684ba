// Finds NVIDIA's libraries: in the folder CHOIR_CUDA_LIBRARIES, by the system's loader, and in the
// toolkit's usual folder. The name of a library has the version whose functions are used here. The
// stand-in has these functions in the library itself.
#include "library.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

namespace choir_cuda
{

// CHOIR_CUDA_WITHOUT names libraries that are not used, for tests: "cublas,nccl".
static bool is_refused(const char *what)
{
	const char *without = getenv("CHOIR_CUDA_WITHOUT");
	return without != NULL && strstr(without, what) != NULL;
}

template <class F> static bool find(void *library, const char *name, F *function)
{
	void *found = library == NULL ? NULL : dlsym(library, name);
	memcpy(function, &found, sizeof found);
	return found != NULL;
}

#ifdef CHOIR_STANDIN
static void *open_named(const char *const[])
{
	static const int here = 0;
	Dl_info own;
	return dladdr(&here, &own) == 0 ? NULL : dlopen(own.dli_fname, RTLD_NOW | RTLD_LOCAL);
}
#else
static void *open_named(const char *const names[])
{
	const char *asked = getenv("CHOIR_CUDA_LIBRARIES");
	const std::string folders[] = { asked == NULL ? "" : asked, "", "/usr/local/cuda/lib64" };
	for (int i = asked == NULL ? 1 : 0; i < 3; i++)
		for (const char *const *name = names; *name != NULL; name++) {
			const std::string path = folders[i].empty() ? *name : folders[i] + "/" + *name;
			void *found = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
			if (found != NULL)
				return found;
		}
	return NULL;
}
#endif

static void *open_library(const char *what, const char *const names[])
{
	return is_refused(what) ? NULL : open_named(names);
}

// Defines a function that opens a library and finds its functions at the first call. missing: what
// is logged then if it fails, or "".
#define CHOIR_FIND(name) good = find(library, #name, &functions.name) && good;
#define CHOIR_LIBRARY(what, LIST, missing, ...) \
	const what##_functions *what() \
	{ \
		static what##_functions functions; \
		static const bool found = [] { \
			static const char *const names[] = { __VA_ARGS__, NULL }; \
			void *library = open_library(#what, names); \
			bool good = true; \
			LIST(CHOIR_FIND) \
			if (!good && missing[0] != '\0') \
				with.log(CHOIR_LOG_WARNING, "gpu: " missing); \
			return good; \
		}(); \
		return found ? &functions : NULL; \
	}

CHOIR_LIBRARY(cublas, CHOIR_CUBLAS_FUNCTIONS,
		"cuBLAS is missing (libcublasLt.so.13 or .12); products use slow kernels",
		"libcublasLt.so.13", "libcublasLt.so.12")
CHOIR_LIBRARY(nccl, CHOIR_NCCL_FUNCTIONS, "", "libnccl.so.2")

#ifdef CHOIR_HAS_CUDNN
// Its headers declare the functions as deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
CHOIR_LIBRARY(cudnn, CHOIR_CUDNN_FUNCTIONS,
		"cuDNN is missing (libcudnn.so.9); convolutions use slow kernels", "libcudnn.so.9")
#endif

size_t cudnn_version()
{
#ifdef CHOIR_HAS_CUDNN
	if (cudnn() != NULL)
		return cudnn()->cudnnGetVersion();
#endif
	return 0;
}

} // namespace choir_cuda
