// The kernels of libchoir-cuda against the CPU's plain kernels, and the kernels that run on the
// host.
#include "choir/extend/cuda.h"
#include "choir/extend/suite.h"
#include "device/cuda_loader.h"
#include "op/plain/plain.h"
#include "test.h"

#include "open.h"

#include <stdio.h>
#include <string.h>

static void report(const char *check, choir_status result, const char *text, void *user)
{
	if (result != CHOIR_OK)
		printf("%s: %s\n", check, text);
	++*(int *) user;
}

static int run(const char *name, const char *operation)
{
	int checks = 0;
	if (choir_suite_run(CHOIR_OPTIONS(choir_suite_options, .kernels = "gpu:0", .kernel_name = name,
								.operation = operation),
				report, &checks) != CHOIR_OK)
		fail_msg("%s", choir_error());
	return checks;
}

TEST(kernels_of_the_library)
{
	assert_true(run("cuda", NULL) > 320);
}

// Everything else runs on the device, in each dtype for which the CPU has a plain kernel. The
// operations of 16 bits are those of f32.
static const char *const on_host[] = { "top_k", "lstm", "gru", "recurrent_gradient",
	"lstm_gradient", "gru_gradient" };
enum { ON_HOST = sizeof on_host / sizeof on_host[0] };

static bool is_on_host(const char *operation)
{
	for (size_t i = 0; i < ON_HOST; i++)
		if (strcmp(on_host[i], operation) == 0)
			return true;
	return false;
}

static bool is_on_device(const char *operation, int dtype)
{
	const choir_kernel_table *k;
	for (size_t i = 0; (k = chi_cuda_plugin()->kernel(i)) != NULL; i++)
		if (strcmp(k->operation, operation) == 0 && (int) k->dtype == dtype)
			return true;
	return false;
}

static bool is_narrow(const char *operation)
{
	const size_t n = strlen(operation);
	return strncmp(operation, "scatter_", 8) != 0 && strncmp(operation, "chunk_", 6) != 0 &&
			!(n > 7 && strcmp(operation + n - 7, "_update") == 0);
}

TEST(what_runs_on_the_host)
{
	size_t found = 0;
	chi_kernel_list plain;
	for (size_t index = 0; (plain = chi_plain_list(index)).count > 0; index++)
		for (size_t i = 0; i < plain.count; i++) {
			const char *operation = plain.specs[i].operation;
			uint32_t dtypes = plain.specs[i].dtypes;
			if ((dtypes & CHI_F32) != 0 && is_narrow(operation))
				dtypes |= CHI_HALF;
			found += is_on_host(operation);
			for (int dtype = CHOIR_F32; dtype <= CHOIR_BF16; dtype++)
				if ((dtypes >> dtype & 1) != 0 &&
						is_on_device(operation, dtype) == is_on_host(operation))
					fail_msg("%s of %s is%s on the host", operation,
							choir_dtype_name((choir_dtype) dtype),
							is_on_host(operation) ? " not" : "");
		}
	assert_int_equal(found, ON_HOST);
}

TEST(kernels_on_the_host)
{
	for (size_t i = 0; i < ON_HOST; i++)
		assert_true(run("host", on_host[i]) > 0);
	assert_true(run("host", "scatter_add") > 3);
	assert_true(run("host", "conv2d") > 1);
}
