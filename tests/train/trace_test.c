// What a trace says of training: where the time went, for every replica, without a change of the
// result, and without memory in a steady step.
#include "trace/record.h"
#include "train/problem.h"

#include "base/alloc.h"
#include "test.h"

#include <math.h>
#include <string.h>

enum { STEPS = 6 };

static record r;

static void trace_steps(const char *devices, int replicas, choir_optimizer_kind kind,
		const choir_optimizer_options *o)
{
	problem p;
	assert_int_equal(problem_open(&p, devices, replicas, kind, o), CHOIR_OK);
	assert_int_equal(problem_step(&p), CHOIR_OK);
	record_start(&r, 0);
	for (int i = 0; i < STEPS; i++)
		assert_int_equal(problem_step(&p), CHOIR_OK);
	record_stop();
	assert_int_equal(choir_trace_dropped_spans(), 0);
	problem_close(&p);
}

static int count(int track, choir_trace_category category)
{
	int n = 0;
	for (int i = 0; i < r.n; i++)
		n += r.span[i].shown.track == track && r.span[i].shown.category == category;
	return n;
}

static double seconds_of(int track, const char *name)
{
	double sum = 0;
	const kept_span *k;
	for (int i = 0; (k = record_find(&r, track, name, i)) != NULL; i++)
		sum += k->shown.end - k->shown.begin;
	return sum;
}

static double all_seconds(int track)
{
	double sum = 0;
	for (int c = 0; c < CHOIR_TRACE_CATEGORIES; c++)
		sum += record_seconds(&r, track, (choir_trace_category) c);
	return sum;
}

TEST(two_devices)
{
	trace_steps("cpu:0,cpu:1", 2, CHOIR_ADAM, NULL);
	assert_int_equal(record_count(&r, CHOIR_TRACE_PROGRAM, "run"), STEPS);
	for (int replica = 0; replica < 2; replica++) {
		assert_int_equal(record_count(&r, replica, "replica"), STEPS);
		assert_int_equal(record_count(&r, replica, "backward"), STEPS);
		assert_int_equal(record_count(&r, replica, "updates"), STEPS);
		assert_true(record_count(&r, replica, "matmul") >= 2 * STEPS);
		assert_true(count(replica, CHOIR_TRACE_REDUCE) > STEPS);
	}
	// A slice is updated by whoever summed it.
	assert_true(count(0, CHOIR_TRACE_UPDATE) + count(1, CHOIR_TRACE_UPDATE) > 4 * STEPS);
	// The caller carries the first device: what its thread did is explained by two tracks, whole.
	const double runs = seconds_of(CHOIR_TRACE_PROGRAM, "run");
	assert_true(runs > 0);
	const double explained =
			record_seconds(&r, CHOIR_TRACE_PROGRAM, CHOIR_TRACE_OTHER) + all_seconds(0);
	assert_true(fabs(explained - runs) < 1e-6 * runs + 1e-9);
	assert_true(all_seconds(1) <= runs * 1.001);
}

// Each sum is once more on the track of communication, and sums there do not overlap.
TEST(communication)
{
	trace_steps("cpu:0,cpu:1", 2, CHOIR_SGD, NULL);
	int sums = 0;
	double before = -1;
	for (int i = 0; i < r.n; i++) {
		const choir_trace_span *s = &r.span[i].shown;
		if (s->track != CHOIR_TRACE_COMMUNICATION)
			continue;
		assert_int_equal(s->category, CHOIR_TRACE_REDUCE);
		assert_true(s->begin >= before && s->end >= s->begin);
		before = s->end;
		sums++;
	}
	assert_true(sums >= STEPS && sums % STEPS == 0);
}

TEST(several_a_device)
{
	trace_steps("cpu:0,cpu:1", 5, CHOIR_MOMENTUM, NULL);
	for (int replica = 0; replica < 5; replica++) {
		assert_int_equal(record_count(&r, replica, "replica"), STEPS);
		const bool last = replica == 2 || replica == 4;
		assert_int_equal(record_count(&r, replica, "updates"), last ? STEPS : 0);
	}
}

TEST(with_a_norm)
{
	trace_steps("cpu:0,cpu:1", 2, CHOIR_ADAMW,
			CHOIR_OPTIONS(choir_optimizer_options, .global_clip_norm = 0.1));
	assert_true(count(0, CHOIR_TRACE_UPDATE) + count(1, CHOIR_TRACE_UPDATE) > 4 * STEPS);
}

TEST(nothing_changes)
{
	const uint64_t expected = problem_train("cpu:0,cpu:1", 3, CHOIR_ADAM, NULL, 10);
	record_start(&r, 0);
	const uint64_t traced = problem_train("cpu:0,cpu:1", 3, CHOIR_ADAM, NULL, 10);
	record_stop();
	assert_true(traced == expected);
}

TEST(steady)
{
	problem p;
	assert_int_equal(problem_open(&p, "cpu:0,cpu:1", 2, CHOIR_ADAM, NULL), CHOIR_OK);
	record_start(&r, 200);
	for (int i = 0; i < 20; i++)
		assert_int_equal(problem_step(&p), CHOIR_OK);
	const uint64_t before = chi_alloc_count();
	for (int i = 0; i < 10; i++)
		assert_int_equal(problem_step(&p), CHOIR_OK);
	assert_int_equal(chi_alloc_count(), before);
	record_stop();
	assert_true(choir_trace_dropped_spans() > 0);
	problem_close(&p);
}

TEST(checkpoints)
{
	problem p;
	assert_int_equal(problem_open(&p, "cpu:0", 1, CHOIR_SGD, NULL), CHOIR_OK);
	record_start(&r, 0);
	assert_int_equal(choir_strategy_save(p.strategy, "traced.safetensors", NULL), CHOIR_OK);
	assert_int_equal(choir_strategy_restore(p.strategy, "traced.safetensors"), CHOIR_OK);
	record_stop();
	remove("traced.safetensors");
	assert_int_equal(record_count(&r, CHOIR_TRACE_PROGRAM, "save"), 1);
	assert_int_equal(record_count(&r, CHOIR_TRACE_PROGRAM, "restore"), 1);
	assert_true(record_seconds(&r, CHOIR_TRACE_PROGRAM, CHOIR_TRACE_CHECKPOINT) > 0);
	problem_close(&p);
}
