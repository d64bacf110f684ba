// choir bench, and what its benchmarks share.
#include "bench/bench.h"
#include "commands.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *about;
} benchmarks[] = {
	{ "all-reduce", bench_all_reduce_main, "all-reduce between replicas, from 4 KiB to 64 MiB" },
	{ "train", bench_train_main, "training steps of fixed models" },
	{ "kernels", bench_kernels_main, "operations, compared with the machine's limits" },
	{ "run", bench_run_main, "an empty run and an empty merge call" },
	{ "fit", bench_fit_main, "choir_fit, compared with a loop by hand" },
	{ "input", bench_input_main, "reading examples from a file" },
	{ "closures", bench_closures_main, "steps of a coordinator's job" },
};
enum { BENCHMARKS = sizeof benchmarks / sizeof benchmarks[0] };

// The processors that this process may use, or 0.
static int allowed_processors(cpu_set_t *allowed)
{
	return sched_getaffinity(0, sizeof *allowed, allowed) == 0 ? CPU_COUNT(allowed) : 0;
}

// Choir pins its own threads. The caller's, which runs the first device, goes to its first
// processor.
static void pin_caller(void)
{
	cpu_set_t allowed, first;
	if (allowed_processors(&allowed) == 0)
		return;
	CPU_ZERO(&first);
	for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&first) == 0; i++)
		if (CPU_ISSET(i, &allowed))
			CPU_SET(i, &first);
	(void) sched_setaffinity(0, sizeof first, &first);
}

choir_strategy *bench_strategy(
		int64_t replicas, const char *devices, int64_t cores, const choir_strategy_options *more)
{
	choir_strategy_options o = { .size = sizeof o };
	if (more != NULL)
		o = *more;
	o.devices = devices;
	o.replicas = (int) replicas;
	// Workers whose launcher does not bind them may all use the same processors.
	cpu_set_t allowed;
	const bool pin =
			o.cluster == NULL || allowed_processors(&allowed) < sysconf(_SC_NPROCESSORS_ONLN);
	o.pin = pin ? CHOIR_ON : CHOIR_OFF;
	o.cores_per_device = (int) cores;
	choir_strategy *s = o.cluster == NULL ? choir_mirrored_strategy_new(&o)
										  : choir_multi_worker_mirrored_strategy_new(&o);
	if (s != NULL && pin)
		pin_caller();
	return s;
}

double bench_peak_mb(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (double) usage.ru_maxrss / 1024;
}

const char *bench_version(char text[32])
{
	const int v = choir_version();
	snprintf(text, 32, "choir-%d.%d.%d", v / 10000, v / 100 % 100, v % 100);
	return text;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *) a, y = *(const double *) b;
	return (x > y) - (x < y);
}

double median(size_t n, double values[])
{
	qsort(values, n, sizeof values[0], compare);
	return values[n / 2];
}

static void print_help(FILE *to)
{
	fprintf(to, "usage: choir bench BENCHMARK [options]\n\nMeasures Choir on this machine.\n\n");
	for (size_t i = 0; i < BENCHMARKS; i++)
		fprintf(to, "  %-12s%s\n", benchmarks[i].name, benchmarks[i].about);
	fprintf(to,
			"\nchoir bench BENCHMARK --help describes a benchmark. Replicas are pinned to\n"
			"cores.\n\nexamples:\n"
			"  choir bench all-reduce --replicas 4\n  choir bench train --case cnn\n");
}

int bench_main(int argc, char **argv)
{
	const char *known[BENCHMARKS];
	if (argc < 1) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
		print_help(stdout);
		return EXIT_OK;
	}
	for (size_t i = 0; i < BENCHMARKS; i++) {
		known[i] = benchmarks[i].name;
		if (strcmp(argv[0], benchmarks[i].name) == 0)
			return benchmarks[i].main(argc - 1, argv + 1);
	}
	return unknown_name(
			&(command){ .name = "choir bench" }, "benchmark", argv[0], BENCHMARKS, known);
}
