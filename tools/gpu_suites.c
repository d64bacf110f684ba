// The conformance suites of libchoir-cuda, for tools/gpu-check: `gpu_suites kernels NAME` for the
// kernels of gpu:0 with this name, `gpu_suites strategies` for mirrored strategies on one device and
// on two, `gpu_suites device` for the table of devices. Public headers only.
#include <choir/choir.h>
#include <choir/extend.h>
#include <choir/extend/cuda.h>
#include <choir/extend/suite.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void report(const char *check, choir_status result, const char *text, void *user)
{
	(void) user;
	printf("%s %s%s%s\n", result == CHOIR_OK ? "ok    " : "FAILED", check,
			result == CHOIR_OK ? "" : ": ", text);
}

// libchoir has opened the library, so this gives the same instance.
static const choir_device_table *device_table(void)
{
	const char *path = getenv("CHOIR_CUDA");
	if (choir_device_find("gpu:0") == NULL || path == NULL)
		return NULL;
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const choir_cuda_plugin *plugin =
			library == NULL ? NULL : dlsym(library, CHOIR_CUDA_PLUGIN_SYMBOL);
	return plugin == NULL ? NULL : plugin->device;
}

int main(int argc, char **argv)
{
	static const char *const devices[] = { "gpu:0", "gpu:0,gpu:1", NULL };
	const char *what = argc > 1 ? argv[1] : "", *name = argc > 2 ? argv[2] : NULL;
	choir_status status;
	if (strcmp(what, "device") == 0) {
		const choir_device_table *table = device_table();
		if (table == NULL) {
			printf("the library that CHOIR_CUDA names has no devices: %s\n", choir_error());
			return 1;
		}
		status = choir_suite_run(
				CHOIR_OPTIONS(choir_suite_options, .device = table), report, NULL);
	} else if (strcmp(what, "kernels") == 0) {
		status = choir_suite_run(CHOIR_OPTIONS(choir_suite_options, .kernels = "gpu:0",
										 .kernel_name = name),
				report, NULL);
	} else if (strcmp(what, "strategies") == 0) {
		status = choir_suite_run(CHOIR_OPTIONS(choir_suite_options, .strategy = "mirrored",
										 .devices = devices, .model = "gpu:0"),
				report, NULL);
	} else {
		return 2;
	}
	if (status != CHOIR_OK)
		printf("%s\n", choir_error());
	return status != CHOIR_OK;
}
