// A steady training step asks the heap for nothing and starts no thread.
#include "train/problem.h"

#include "base/alloc.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static int threads(void)
{
	char line[128];
	int n = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (f != NULL && fgets(line, sizeof line, f) != NULL)
		if (strncmp(line, "Threads:", 8) == 0)
			sscanf(line + 8, "%d", &n);
	if (f != NULL)
		fclose(f);
	return n;
}

static void steady(const char *devices, int replicas, choir_optimizer_kind kind,
		const choir_optimizer_options *o)
{
	problem p;
	assert_int_equal(problem_open(&p, devices, replicas, kind, o), CHOIR_OK);
	for (int i = 0; i < 20; i++)
		assert_int_equal(problem_step(&p), CHOIR_OK);
	const uint64_t before = chi_alloc_count();
	const int threads_before = threads();
	for (int i = 0; i < 10; i++)
		assert_int_equal(problem_step(&p), CHOIR_OK);
	if (chi_alloc_count() != before)
		fail_msg("%s, %d replicas: %llu allocations in 10 steps", devices, replicas,
				(unsigned long long) (chi_alloc_count() - before));
	assert_true(threads_before > 0);
	assert_int_equal(threads(), threads_before);
	problem_close(&p);
}

TEST(one_a_device)
{
	steady("cpu:0", 1, CHOIR_ADAM, NULL);
	steady("cpu:0,cpu:1", 2, CHOIR_ADAM, NULL);
	steady("cpu:0,cpu:1", 2, CHOIR_SGD, NULL);
}

TEST(several_a_device)
{
	steady("cpu:0,cpu:1", 7, CHOIR_MOMENTUM, NULL);
}

TEST(with_a_norm)
{
	steady("cpu:0,cpu:1", 4, CHOIR_ADAMW,
			CHOIR_OPTIONS(choir_optimizer_options, .global_clip_norm = 0.1));
}
