// The conformance suites of libchoir-cuda, for tools/gpu-check: `gpu_suites kernels NAME` for the
// kernels of gpu:0 with this name, `gpu_suites device` for what a device promises. Public headers
// only.
#include <choir/choir.h>
#include <choir/extend.h>
#include <choir/extend/cuda.h>
#include <choir/extend/suite.h>

#include <stdio.h>
#include <string.h>

static void report(const char *check, choir_status result, const char *text, void *user)
{
	(void) user;
	printf("%s %s%s%s\n", result == CHOIR_OK ? "ok    " : "FAILED", check,
			result == CHOIR_OK ? "" : ": ", text);
}

// A matrix there and back, by way of a product, on each GPU.
static int check_devices(void)
{
	const int n = choir_device_count("gpu");
	for (int i = 0; i < n; i++) {
		char name[16];
		float out[4] = { 0 };
		snprintf(name, sizeof name, "gpu:%d", i);
		choir_frame *f = choir_frame_new(choir_device_find(name));
		choir_tensor *a = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2, 2), 3);
		const choir_status status = choir_tensor_to_host(
				choir_matmul(a, a, CHOIR_TRANSPOSED_NONE), out, sizeof out);
		printf("%s: %s %g\n", name, status == CHOIR_OK ? "ok" : choir_error(), (double) out[3]);
		choir_frame_free(f);
		if (status != CHOIR_OK || out[3] != 18)
			return 1;
	}
	printf("%d devices\n", n);
	return n == 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	if (strcmp(what, "device") == 0)
		return check_devices();
	if (strcmp(what, "kernels") != 0)
		return 2;
	const choir_status status = choir_suite_run(CHOIR_OPTIONS(choir_suite_options,
														.kernels = "gpu:0",
														.kernel_name = argc > 2 ? argv[2] : NULL),
			report, NULL);
	if (status != CHOIR_OK)
		printf("%s\n", choir_error());
	return status != CHOIR_OK;
}
