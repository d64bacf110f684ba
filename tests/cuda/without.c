// libchoir-cuda without cuBLAS, cuDNN and NCCL (CHOIR_CUDA_WITHOUT): products and convolutions use
// kernels of its own, which is said once, and "nccl" serves no group.
#include "choir/choir.h"
#include "choir/extend/suite.h"
#include "test.h"

#include "open.h"

#include <stdio.h>
#include <string.h>

static int warnings[2];

static void count_warnings(choir_log_level level, const char *line, void *user)
{
	(void) user;
	warnings[0] += level == CHOIR_LOG_WARNING && strstr(line, "cuBLAS") != NULL;
	warnings[1] += level == CHOIR_LOG_WARNING && strstr(line, "cuDNN") != NULL;
}

static void report(const char *check, choir_status result, const char *text, void *user)
{
	(void) user;
	if (result != CHOIR_OK)
		printf("%s: %s\n", check, text);
}

static void run(const char *operation)
{
	if (choir_suite_run(CHOIR_OPTIONS(choir_suite_options, .kernels = "gpu:0",
								.kernel_name = "cuda", .operation = operation),
				report, NULL) != CHOIR_OK)
		fail_msg("%s", choir_error());
}

TEST(products_and_convolutions)
{
	choir_logger_set(CHOIR_LOG_WARNING, count_warnings, NULL);
	run("matmul");
	run("dense");
	run("attention");
	run("conv2d");
	run("conv2d_gradient_input");
	run("conv2d_gradient_filter");
	assert_int_equal(warnings[0], 1);
	assert_int_equal(warnings[1], 1);
	choir_logger_set(CHOIR_LOG_WARNING, NULL, NULL);
}

TEST(nccl)
{
	assert_null(choir_mirrored_strategy_new(CHOIR_OPTIONS(
			choir_strategy_options, .devices = "gpu:0,gpu:1", .cross_device_ops = "nccl")));
	assert_int_equal(choir_error_status(), CHOIR_UNSUPPORTED);
}
