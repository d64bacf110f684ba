// Every allocation of a training step fails in turn: the step fails with a message or does what it
// should, nothing hangs, and afterwards training goes on as if nothing had been.
#include "train/problem.h"

#include "base/alloc.h"
#include "base/status.h"
#include "far/far.h"
#include "tensor/buffer_pool.h"
#include "short.h"
#include "test.h"

#include <string.h>

enum { STEPS = 2, MAX = 5000 };

static void check_message(choir_status status, int n)
{
	if (status != CHOIR_NO_MEMORY || !text_holds(choir_error(), "memory"))
		fail_msg("allocation %d: %s: \"%s\"", n, choir_status_name(status), choir_error());
	chi_error_clear();
}

// The n-th allocation of the first step (or of the second) fails. False: there is no n-th.
static bool fail_in_step(const char *devices, int replicas, const choir_optimizer_options *o,
		int step, int n, uint64_t expected)
{
	problem p;
	bool failed = false;
	chi_buffer_trim();
	if (problem_open(&p, devices, replicas, CHOIR_ADAM, o) != CHOIR_OK)
		fail_msg("%s", choir_error());
	for (int i = 0; i < STEPS; i++) {
		if (i == step)
			chi_alloc_fail((uint64_t) n, false);
		choir_status status = problem_step(&p);
		if (i == step) {
			failed = chi_alloc_failed();
			chi_alloc_fail(0, false);
		}
		if (i == step && status != CHOIR_OK) {
			check_message(status, n);
			assert_true(failed);
			status = problem_step(&p);
		}
		if (status != CHOIR_OK)
			fail_msg("allocation %d of step %d: afterwards: %s", n, step, choir_error());
	}
	const uint64_t hash = choir_strategy_hash(p.strategy);
	if (hash != expected)
		fail_msg("allocation %d of step %d: other weights in the end", n, step);
	problem_close(&p);
	return failed;
}

static void all_of_a_step(const char *devices, int replicas, const choir_optimizer_options *o)
{
	const uint64_t expected = problem_train(devices, replicas, CHOIR_ADAM, o, STEPS);
	for (int step = 0; step < STEPS; step++) {
		int n = 1;
		while (n < MAX && fail_in_step(devices, replicas, o, step, n, expected))
			n += STRIDE;
		assert_true(n > (step == 0 ? 20 : 0) && n < MAX);
	}
}

TEST(shared_memory)
{
	all_of_a_step("cpu:0,cpu:1", 3, NULL);
}

TEST(with_a_norm)
{
	all_of_a_step(
			"cpu:0,cpu:1", 2, CHOIR_OPTIONS(choir_optimizer_options, .global_clip_norm = 0.1));
}

// The heap is gone for good from the n-th allocation of a step on: the step ends all the same.
TEST(nothing_left)
{
	bool failed = true;
	for (int n = 1; failed; n += STRIDE) {
		problem p;
		chi_buffer_trim();
		assert_int_equal(problem_open(&p, "cpu:0,cpu:1", 3, CHOIR_ADAM, NULL), CHOIR_OK);
		chi_alloc_fail((uint64_t) n, true);
		const choir_status status = problem_step(&p);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		if (status != CHOIR_OK)
			check_message(status, n);
		assert_true(failed || status == CHOIR_OK);
		problem_close(&p);
	}
}

// On devices with memory of their own an update can fail after the first copy was written. Then
// the variables say that they are undefined; else training goes on as if nothing had been.
TEST(separate_memory)
{
	far_delays(1, 0);
	const uint64_t expected = problem_train("far:0,far:1", 3, CHOIR_ADAM, NULL, 1);
	bool failed = true;
	int undefined = 0;
	for (int n = 1; failed && n < MAX; n += STRIDE) {
		problem p;
		chi_buffer_trim();
		if (problem_open(&p, "far:0,far:1", 3, CHOIR_ADAM, NULL) != CHOIR_OK)
			fail_msg("%s", choir_error());
		chi_alloc_fail((uint64_t) n, false);
		choir_status status = problem_step(&p);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		if (status != CHOIR_OK) {
			check_message(status, n);
			status = problem_step(&p);
		}
		if (status != CHOIR_OK) {
			assert_failed(status, CHOIR_STATE, "undefined");
			undefined++;
		} else if (choir_strategy_hash(p.strategy) != expected) {
			fail_msg("allocation %d: other weights in the end", n);
		}
		problem_close(&p);
	}
	assert_false(failed);
	assert_true(undefined < 200);
}

TEST(making_fails)
{
	const uint64_t expected = problem_train("cpu:0,cpu:1", 3, CHOIR_ADAM, NULL, STEPS);
	for (int n = 1; n < MAX; n += SERIAL_STRIDE) {
		problem p;
		chi_buffer_trim();
		chi_alloc_fail((uint64_t) n, false);
		const choir_status status = problem_open(&p, "cpu:0,cpu:1", 3, CHOIR_ADAM, NULL);
		const bool failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		if (status != CHOIR_OK)
			check_message(status, n);
		problem_close(&p);
		if (!failed)
			break;
	}
	assert_int_equal(problem_train("cpu:0,cpu:1", 3, CHOIR_ADAM, NULL, STEPS), expected);
}

// What was not made can be made again under the same name.
TEST(names_are_free_again)
{
	for (int n = 1;; n++) {
		choir_strategy *s = mirrored("cpu:0,cpu:1", 2);
		choir_layer *dense = NULL;
		choir_metric *metric = NULL;
		CHOIR_SCOPE (s) {
			chi_alloc_fail((uint64_t) n, false);
			dense = choir_dense_new("dense", 3, 2, CHOIR_RELU);
			metric = choir_metric_new("dense", CHOIR_METRIC_MEAN);
			const bool failed = chi_alloc_failed();
			chi_alloc_fail(0, false);
			if (dense == NULL)
				assert_non_null(dense = choir_dense_new("dense", 3, 2, CHOIR_RELU));
			if (metric == NULL)
				assert_non_null(metric = choir_metric_new("dense", CHOIR_METRIC_MEAN));
			if (!failed)
				n = -1;
		}
		choir_strategy_free(s);
		if (n < 0)
			break;
	}
}
