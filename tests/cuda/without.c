// libchoir-cuda without cuBLAS and NCCL (CHOIR_CUDA_WITHOUT): products use a kernel of its own,
// which is said once, and "nccl" serves no group.
#include "choir/choir.h"
#include "choir/extend/suite.h"
#include "test.h"

#include "open.h"

#include <stdio.h>
#include <string.h>

static int warnings;

static void count_warnings(choir_log_level level, const char *line, void *user)
{
	(void) user;
	warnings += level == CHOIR_LOG_WARNING && strstr(line, "cuBLAS") != NULL;
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

TEST(products)
{
	choir_logger_set(CHOIR_LOG_WARNING, count_warnings, NULL);
	run("matmul");
	run("dense");
	assert_int_equal(warnings, 1);
	choir_logger_set(CHOIR_LOG_WARNING, NULL, NULL);
}

TEST(nccl)
{
	assert_null(choir_mirrored_strategy_new(CHOIR_OPTIONS(
			choir_strategy_options, .devices = "gpu:0,gpu:1", .cross_device_ops = "nccl")));
	assert_int_equal(choir_error_status(), CHOIR_UNSUPPORTED);
}
