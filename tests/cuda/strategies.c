// The programs of the strategies' suite on GPUs of the stand-in. The model runs on one GPU,
// because a GPU rounds differently from a CPU.
#include "short.h"
#include "strategies/suite.h"

static const char *const devices[] = { "gpu:0", "gpu:0,gpu:1", NULL };

int main(void)
{
	const choir_strategy_options on_gpu = { .size = sizeof on_gpu, .parameter_devices = "gpu:1" };
	const choir_strategy_options in_rows = { .size = sizeof in_rows,
		.parameter_devices = "gpu:0,gpu:1",
		.partition = CHOIR_PARTITION_MAX_SIZE,
		.partition_size = 1 };
	const strategy_subject subjects[] = {
		{ "mirrored", 0, NULL, false, devices },
		{ "central_storage", 0, &on_gpu, false, devices },
		{ "one_device", 1, NULL, false, devices },
		{ "parameter_server", 0, &in_rows, false, devices },
	};
	const size_t n = sizeof subjects / sizeof subjects[0] - (SHORT ? 3 : 0);
	int failed = 0;
	for (size_t i = 0; i < n; i++)
		failed += strategy_suite_run(&subjects[i]);
	return failed;
}
