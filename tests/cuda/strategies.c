// The suite of strategies on GPUs of the stand-in. The model runs on one GPU, because a GPU rounds
// differently from a CPU.
#include <choir/choir.h>
#include <choir/extend/suite.h>

#include "short.h"
#include "test.h"

static void report(const char *check, choir_status result, const char *text, void *user)
{
	if (result != CHOIR_OK)
		print_error("%s: %s\n", check, text);
	++*(int *) user;
}

static void run(const char *strategy, const choir_strategy_options *options)
{
	static const char *const devices[] = { "gpu:0", "gpu:0,gpu:1", NULL };
	int checks = 0;
	if (choir_suite_run(CHOIR_OPTIONS(choir_suite_options, .strategy = strategy,
								.strategy_options = options, .devices = devices, .model = "gpu:0"),
				report, &checks) != CHOIR_OK)
		fail_msg("%s", choir_error());
	assert_true(checks > 10);
}

TEST(mirrored)
{
	run("mirrored", NULL);
	if (!SHORT)
		run("mirrored", CHOIR_OPTIONS(choir_strategy_options, .cross_device_ops = "ring"));
}

TEST(variables_elsewhere)
{
	if (SHORT)
		skip();
	run("central_storage", CHOIR_OPTIONS(choir_strategy_options, .parameter_devices = "gpu:1"));
	run("parameter_server",
			CHOIR_OPTIONS(choir_strategy_options, .parameter_devices = "gpu:0,gpu:1",
					.partition = CHOIR_PARTITION_MAX_SIZE, .partition_size = 1));
}
