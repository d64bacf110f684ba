// The kernels of libchoir-cuda against the CPU's plain kernels, and the kernels that run on the
// host.
#include "choir/extend/suite.h"
#include "test.h"

#include "open.h"

#include <stdio.h>

static void report(const char *check, choir_status result, const char *text, void *user)
{
	if (result != CHOIR_OK)
		printf("%s: %s\n", check, text);
	++*(int *) user;
}

static int run(const char *name)
{
	int checks = 0;
	if (choir_suite_run(
				CHOIR_OPTIONS(choir_suite_options, .kernels = "gpu:0", .kernel_name = name),
				report, &checks) != CHOIR_OK)
		fail_msg("%s", choir_error());
	return checks;
}

TEST(kernels_of_the_library)
{
	assert_true(run("cuda") > 200);
}

TEST(kernels_on_the_host)
{
	assert_true(run("host") > 300);
}
