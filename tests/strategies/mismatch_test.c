// Workers that differ, at random: each must be told, and who. CHOIR_MISMATCHES=N runs programs 1
// to N instead of a few (make mismatches); CHOIR_MISMATCH=N that one alone.
#include "mismatch.h"
#include "process_group.h"
#include "plain_kernels.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
	uint64_t seed;
	int workers;
} mismatch;

static const char *differ(choir_strategy *s, int worker, void *user)
{
	const mismatch *m = user;
	return mismatch_run(s, worker, m->workers, m->seed);
}

static void run_one(uint64_t seed)
{
	static const peers_place places[] = { { 2, "cpu:0" }, { 2, "cpu:0,cpu:1" }, { 3, "cpu:0" },
		{ 4, "cpu:0" }, { 3, "cpu:0,cpu:1" }, { 2, "far:0,cpu:0" } };
	mismatch m = { seed, places[seed % 6].workers };
	peers_run(&(peers_job){ .replicas = 4 + (int) (seed / 6 % 2),
			.place = places[seed % 6],
			.seed = seed,
			.fn = differ,
			.user = &m });
}

// spec: 2.17
TEST(test_random_mismatches)
{
	const char *one = getenv("CHOIR_MISMATCH"), *many = getenv("CHOIR_MISMATCHES");
	if (one != NULL) {
		run_one(strtoull(one, NULL, 10));
		return;
	}
	const uint64_t last = many != NULL ? strtoull(many, NULL, 10) : 60;
	for (uint64_t seed = 1; seed <= last; seed++)
		run_one(seed);
	print_message(
			"%llu programs in which a worker differs: all named\n", (unsigned long long) last);
}
