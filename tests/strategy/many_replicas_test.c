// Runs of thousands of replicas on one device, each parked on a thread of its own: ten times as
// many take about ten times as long, and not a hundred times.
#include "choir/op.h"

#include "base/clock.h"
#include "short.h"
#include "strategy/world.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

enum { FEW = 500, MANY = 8000, TRIES = 4, MAX = 40 }; // 16 times as many, at most 40 times as long

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

// Seconds of the fastest of some runs; the first makes the threads. A run within the limit
// is the last. Skips the test where the system has not as many.
static double seconds(int replicas, choir_replica_fn *fn, double limit)
{
	choir_strategy *s = world_new(replicas, "cpu:0", 0);
	double best = 1e9;
	for (int i = 0; i < TRIES && best > limit; i++) {
		const double begin = chi_clock_now();
		const choir_status status = choir_strategy_run(s, fn, NULL, NULL, NULL);
		const double took = chi_clock_now() - begin;
		if (status != CHOIR_OK && text_holds(choir_error(), "thread")) {
			choir_strategy_free(s);
			skip();
		}
		world_ok(status);
		best = took < best ? took : best;
	}
	choir_strategy_free(s);
	return best;
}

static void check(choir_replica_fn *fn)
{
	if (SHORT) // a sanitizer has limits of its own on threads
		skip();
	const double few = seconds(FEW, fn, 0), many = seconds(MANY, fn, MAX * few);
	if (many > MAX * few)
		fail_msg("%d replicas took %g ms, %d %g ms", FEW, 1e3 * few, MANY, 1e3 * many);
}

TEST(merge_calls)
{
	check(merge);
}

TEST(sums)
{
	check(sum_ones);
}

TEST_BEFORE(world_watch)
