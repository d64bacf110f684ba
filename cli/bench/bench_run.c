// choir bench run: the time of an empty run and of an empty merge call, back to back.
#include "bench/bench.h"
#include "output.h"

#include <stdio.h>

enum { GROUPS = 301, CALLS = 200 };

static struct {
	const char *devices;
	int64_t replicas;
	bool json;
} given = { .replicas = 2 };

static const option options[] = {
	{ "--replicas", "R", OPTION_INTEGER, &given.replicas, .help = "number of replicas (2)",
			.min = 1, .max = 1 << 10 },
	{ "--devices", "LIST", OPTION_TEXT, &given.devices, .help = devices_help },
	{ "--json", NULL, OPTION_FLAG, &given.json, .help = json_help },
};
static const command self = {
	.name = "choir bench run",
	.about = "Measures an empty run and an empty merge call, many times back to back.",
	.examples = { "choir bench run", "choir bench run --replicas 4 --devices cpu:0,cpu:1" },
	.n = sizeof options / sizeof options[0],
	.options = options,
};

static choir_status do_nothing(choir_replica *r, void *user)
{
	(void) r;
	(void) user;
	return CHOIR_OK;
}

static choir_status merge_nothing(choir_cross *x, void *user)
{
	(void) x;
	(void) user;
	return CHOIR_OK;
}

static choir_status merge_calls(choir_replica *r, void *user)
{
	double *seconds = user;
	for (int group = 0; group < GROUPS; group++) {
		const double start = now();
		for (int i = 0; i < CALLS; i++)
			CHOIR_TRY(choir_replica_merge_call(r, merge_nothing, NULL));
		if (choir_replica_id(r) == 0)
			seconds[group] = (now() - start) / CALLS;
	}
	return CHOIR_OK;
}

static choir_status runs(choir_strategy *s, double seconds[])
{
	for (int group = 0; group < GROUPS; group++) {
		const double start = now();
		for (int i = 0; i < CALLS; i++)
			CHOIR_TRY(choir_strategy_run(s, do_nothing, NULL, NULL, NULL));
		seconds[group] = (now() - start) / CALLS;
	}
	return CHOIR_OK;
}

static void print_seconds(const choir_strategy *s, double run, double merge)
{
	if (!given.json) {
		printf("%lld replicas on %d devices: an empty run %.2f us, a merge call %.2f us\n",
				(long long) given.replicas, choir_strategy_worker_devices(s), 1e6 * run,
				1e6 * merge);
		return;
	}
	json_begin();
	json_integer("replicas", given.replicas);
	json_integer("devices", choir_strategy_worker_devices(s));
	json_number("run_us_median", 1e6 * run);
	json_number("merge_call_us_median", 1e6 * merge);
	json_end();
}

static choir_status measure(choir_strategy *s)
{
	static double run[GROUPS], merge[GROUPS];
	if (s == NULL)
		return choir_error_status();
	CHOIR_TRY(runs(s, run));
	CHOIR_TRY(choir_strategy_run(s, merge_calls, merge, NULL, NULL));
	print_seconds(s, median(GROUPS, run), median(GROUPS, merge));
	return CHOIR_OK;
}

int bench_run_main(int argc, char **argv)
{
	options_read(&self, argc, argv, NULL);
	choir_strategy *s = bench_strategy(given.replicas, given.devices, 1, NULL);
	const int code = measure(s) == CHOIR_OK ? EXIT_OK : failed(&self);
	choir_strategy_free(s);
	return code;
}
