// Runs of thousands of replicas on one device, each parked on a thread of its own: ten times as
// many take about ten times as long, and not a hundred times.
#include "choir/op.h"

#include "base/clock.h"
#include "short.h"
#include "strategy/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { FEW = 500, MANY = 8000, TRIES = 3, MAX = 40 }; // 16 times as many, at most 40 times as long

static choir_status return_nothing(choir_cross *x, void *user)
{
	(void) x, (void) user;
	return CHOIR_OK;
}

static choir_status merge(choir_replica *r, void *user)
{
	(void) user;
	return choir_replica_merge_call(r, return_nothing, NULL);
}

static choir_status sum_ones(choir_replica *r, void *user)
{
	(void) user;
	choir_tensor *one = choir_fill(r->frame, CHOIR_F32, CHOIR_SCALAR, 1);
	choir_tensor *sum = choir_replica_all_reduce(r, CHOIR_SUM, one);
	WORLD_NEED(sum != NULL);
	WORLD_NEED((int) choir_tensor_number(sum) == choir_replica_count(r));
	return CHOIR_OK;
}

// Seconds of the fastest of some runs, after one that has made the threads. Skips the test where
// the system has not as many.
static double seconds(int replicas, choir_replica_fn *fn)
{
	choir_strategy *s = world_new(replicas, "cpu:0", 0);
	if (choir_strategy_run(s, fn, NULL, NULL, NULL) != CHOIR_OK) {
		const bool threads = strstr(choir_error(), "thread") != NULL;
		choir_strategy_free(s);
		if (threads)
			skip();
		fail_msg("%s", choir_error());
	}
	double best = 1e9;
	for (int i = 0; i < TRIES; i++) {
		const double begin = chi_clock_now();
		world_ok(choir_strategy_run(s, fn, NULL, NULL, NULL));
		const double took = chi_clock_now() - begin;
		best = took < best ? took : best;
	}
	choir_strategy_free(s);
	return best;
}

static void check(choir_replica_fn *fn)
{
	if (SHORT) // a sanitizer has limits of its own on threads
		skip();
	const double few = seconds(FEW, fn), many = seconds(MANY, fn);
	if (many > MAX * few)
		fail_msg("%d replicas took %g ms, %d %g ms", FEW, 1e3 * few, MANY, 1e3 * many);
}

static void merge_calls(void **state)
{
	(void) state;
	check(merge);
}

static void sums(void **state)
{
	(void) state;
	check(sum_ones);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(merge_calls), cmocka_unit_test(sums) };
	world_watch();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
