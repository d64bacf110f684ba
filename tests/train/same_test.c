// The number of replicas decides the bits of the weights: not how many devices carry them, not
// whether their memory is shared, not how often it is run.
#include "train/problem.h"
#include "short.h"
#include "test.h"

#include <stdio.h>

enum { STEPS = SHORT ? 6 : 12 };

static void same(int replicas, const char *const devices[], size_t n, choir_optimizer_kind kind,
		const choir_optimizer_options *o)
{
	const uint64_t first = problem_train(devices[0], replicas, kind, o, STEPS);
	for (size_t i = 0; i < n; i += 1 + SHORT) {
		const uint64_t hash = problem_train(devices[i], replicas, kind, o, STEPS);
		if (hash != first)
			fail_msg("%d replicas: %s: %016llx, %s: %016llx", replicas, devices[0],
					(unsigned long long) first, devices[i], (unsigned long long) hash);
	}
}

static const char *const layouts[] = { "cpu:0", "cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2",
	"cpu:0,cpu:1,cpu:2,cpu:3", "cpu:0,cpu:1,cpu:2,cpu:3,cpu:4", "far:0", "far:0,far:1" };

TEST(four_replicas)
{
	same(4, layouts, 7, CHOIR_SGD, NULL);
	same(4, layouts, 7, CHOIR_MOMENTUM,
			CHOIR_OPTIONS(choir_optimizer_options, .nesterov = CHOIR_ON));
	same(4, layouts, 7, CHOIR_ADAM, NULL);
	same(4, layouts, 7, CHOIR_ADAMW, NULL);
	same(4, layouts, 7, CHOIR_RMSPROP, NULL);
}

TEST(odd_numbers)
{
	same(6, layouts, 7, CHOIR_ADAM, NULL);
	same(7, layouts, 7, CHOIR_ADAM, NULL);
}

TEST(with_a_norm)
{
	const choir_optimizer_options clip = { .size = sizeof clip, .global_clip_norm = 0.05 };
	same(4, layouts, 7, CHOIR_ADAM, &clip);
	same(7, layouts, 7, CHOIR_SGD, &clip);
	const choir_optimizer_options never = { .size = sizeof never, .global_clip_norm = 1e30 };
	// A norm that never clips changes nothing, whatever path is taken.
	assert_int_equal(problem_train("cpu:0,cpu:1", 4, CHOIR_ADAM, &never, STEPS),
			problem_train("cpu:0,cpu:1", 4, CHOIR_ADAM, NULL, STEPS));
	assert_int_not_equal(problem_train("cpu:0,cpu:1", 4, CHOIR_ADAM, &clip, STEPS),
			problem_train("cpu:0,cpu:1", 4, CHOIR_ADAM, NULL, STEPS));
}

TEST(replicas_differ_little)
{
	// Dropout is by replica, so the weights themselves differ.
	assert_int_not_equal(problem_train("cpu:0", 1, CHOIR_SGD, NULL, STEPS),
			problem_train("cpu:0", 2, CHOIR_SGD, NULL, STEPS));
}

static void loss_of(const char *devices, double *loss, double *accuracy)
{
	problem p;
	assert_int_equal(problem_open(&p, devices, 4, CHOIR_ADAM, NULL), CHOIR_OK);
	for (int i = 0; i < STEPS; i++)
		assert_int_equal(problem_step(&p), CHOIR_OK);
	*loss = choir_metric_result(p.loss);
	*accuracy = choir_metric_result(p.accuracy);
	problem_close(&p);
}

TEST(metrics_too)
{
	double loss, accuracy, other_loss, other_accuracy;
	loss_of("cpu:0", &loss, &accuracy);
	assert_true(loss > 0.5 && loss < 2 && accuracy > 0 && accuracy < 1);
	for (size_t i = 1; i < sizeof layouts / sizeof layouts[0]; i += 1 + SHORT) {
		loss_of(layouts[i], &other_loss, &other_accuracy);
		assert_memory_equal(&loss, &other_loss, sizeof loss);
		assert_memory_equal(&accuracy, &other_accuracy, sizeof accuracy);
	}
}

TEST(learns)
{
	problem p;
	if (SHORT) // these steps are those of the other tests
		skip();
	const choir_optimizer_options o = { .size = sizeof o, .learning_rate = 0.02 };
	assert_int_equal(problem_open(&p, "cpu:0,cpu:1", 2, CHOIR_ADAM, &o), CHOIR_OK);
	for (int i = 0; i < 400; i++) {
		if (i == 300)
			assert_int_equal(choir_metric_reset(p.accuracy), CHOIR_OK);
		assert_int_equal(problem_step(&p), CHOIR_OK);
	}
	const double accuracy = choir_metric_result(p.accuracy);
	if (!(accuracy > 0.8))
		fail_msg("accuracy %g after 400 steps", accuracy);
	problem_close(&p);
}
