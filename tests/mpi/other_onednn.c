// Preloaded, this is what a program learns that finds another oneDNN than others.
#include <oneapi/dnnl/dnnl.h>

const dnnl_version_t *dnnl_version(void)
{
	static const dnnl_version_t version = { .major = 9, .minor = 8, .patch = 7, .hash = "654" };
	return &version;
}
