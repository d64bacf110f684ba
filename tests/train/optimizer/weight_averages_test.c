// LAMB against its formula over whole variables, averages of weights, and a learning rate that the
// program sets: on any devices, in checkpoints, and what is refused.
#include "choir/checkpoint.h"
#include "train/problem.h"

#include "base/alloc.h"
#include "base/status.h"
#include "test.h"
#include "train/files.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 9000, STEPS = 4 }; // more than one chunk of an update

typedef struct {
	choir_strategy *strategy;
	choir_optimizer *optimizer;
	choir_variable *variable, *later; // later, or NULL, gets gradients after the first update
	int t;
	double g[N];
} job;

static double gradient_of(int r, int t, int i)
{
	return sin(1.0 + 3 * r + 5 * t + 7 * i);
}

static choir_status step(choir_replica *r, void *user)
{
	job *j = user;
	double g[N];
	for (int i = 0; i < N; i++)
		g[i] = gradient_of(choir_replica_id(r), j->t, i);
	choir_tensor *gradient = choir_constant(r->frame, CHOIR_F64, CHOIR_SHAPE(N), g);
	CHOIR_TRY(choir_optimizer_add_gradient(j->optimizer, r, j->variable, gradient));
	if (j->later != NULL && j->t > 0)
		CHOIR_TRY(choir_optimizer_add_gradient(j->optimizer, r, j->later, gradient));
	return choir_optimizer_apply_gradients(j->optimizer, r);
}

static job open_job(
		const char *devices, int replicas, choir_optimizer_kind kind, choir_optimizer_options o)
{
	static double start[N];
	for (int i = 0; i < N; i++)
		start[i] = cos(i);
	job j = { .strategy = mirrored(devices, replicas) };
	o.size = sizeof o;
	CHOIR_SCOPE (j.strategy) {
		j.variable = choir_variable_new("w", CHOIR_SHAPE(N),
				CHOIR_OPTIONS(choir_variable_options, .dtype = CHOIR_F64, .initial_value = start));
		j.optimizer = choir_optimizer_new(kind, &o);
	}
	if (j.variable == NULL || j.optimizer == NULL)
		fail_msg("%s", choir_error());
	return j;
}

static void run(job *j)
{
	if (choir_strategy_run(j->strategy, step, j, NULL, NULL) != CHOIR_OK)
		fail_msg("%s", choir_error());
	j->t++;
}

static void compare(const job *j, const double expected[N], double tolerance)
{
	double have[N];
	fetch_variable(j->variable, have, sizeof have);
	for (int i = 0; i < N; i++)
		if (!(fabs(have[i] - expected[i]) <= tolerance))
			fail_msg("step %d: w[%d] is %.17g, needed %.17g", j->t, i, have[i], expected[i]);
}

// ---- LAMB.

static void lamb_by_hand(double w[N], double m[N], double v[N], int t, int replicas, double decay)
{
	double u[N], ww = 0, uu = 0;
	for (int i = 0; i < N; i++) {
		double g = 0;
		for (int r = 0; r < replicas; r++)
			g += gradient_of(r, t, i);
		m[i] = 0.9 * m[i] + 0.1 * g;
		v[i] = 0.999 * v[i] + 0.001 * g * g;
		u[i] = m[i] / (1 - pow(0.9, t + 1)) / (sqrt(v[i] / (1 - pow(0.999, t + 1))) + 1e-7) +
				decay * w[i];
		ww += w[i] * w[i];
		uu += u[i] * u[i];
	}
	for (int i = 0; i < N; i++)
		w[i] -= 0.02 * sqrt(ww / uu) * u[i];
}

TEST(lamb_is_its_formula)
{
	static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1", "far:0,far:1" };
	uint64_t hash[3];
	for (int d = 0; d < 3; d++) {
		static double w[N], m[N], v[N];
		job j = open_job(devices[d], 2, CHOIR_LAMB,
				(choir_optimizer_options){ .learning_rate = 0.02, .weight_decay = 0.3 });
		for (int i = 0; i < N; i++) {
			w[i] = cos(i);
			m[i] = v[i] = 0;
		}
		for (int t = 0; t < STEPS; t++) {
			lamb_by_hand(w, m, v, t, 2, 0.3);
			run(&j);
			compare(&j, w, 1e-12);
		}
		hash[d] = choir_strategy_hash(j.strategy);
		choir_strategy_free(j.strategy);
	}
	assert_true(hash[0] == hash[1] && hash[1] == hash[2]);
}

TEST(lamb_needs_whole_variables)
{
	choir_strategy *s = choir_parameter_server_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
			.replicas = 2, .devices = "cpu:0,cpu:1", .parameter_devices = "cpu:0",
			.partition = CHOIR_PARTITION_FIXED, .max_shards = 3));
	job j = { .strategy = s };
	CHOIR_SCOPE (s) {
		j.variable = choir_variable_new(
				"w", CHOIR_SHAPE(N), CHOIR_OPTIONS(choir_variable_options, .dtype = CHOIR_F64));
		j.optimizer = choir_optimizer_new(CHOIR_LAMB, NULL);
	}
	assert_non_null(j.optimizer);
	assert_failed(choir_strategy_run(s, step, &j, NULL, NULL), CHOIR_UNSUPPORTED,
			"\"w\"*lamb*whole variable*shards");
	choir_strategy_free(s);
}

// ---- Averages.

static void follow_averages(choir_optimizer_kind kind, const char *devices)
{
	static double w[N], average[N];
	job j = open_job(devices, 3, kind,
			(choir_optimizer_options){ .learning_rate = 0.05, .ema_momentum = 0.75 });
	for (int t = 0; t < STEPS; t++) {
		run(&j);
		fetch_variable(j.variable, w, sizeof w);
		for (int i = 0; i < N; i++)
			average[i] = t == 0 ? w[i] : 0.75 * average[i] + 0.25 * w[i];
	}
	assert_false(choir_optimizer_has_swapped(j.optimizer));
	assert_int_equal(choir_optimizer_swap_averages(j.optimizer), CHOIR_OK);
	compare(&j, average, 1e-14);
	assert_true(choir_optimizer_has_swapped(j.optimizer));
	assert_failed(choir_strategy_run(j.strategy, step, &j, NULL, NULL), CHOIR_STATE,
			"averages are in place");
	choir_checkpoint_manager *m =
			choir_checkpoint_manager_new(j.strategy, files_path("swapped"), NULL);
	assert_failed(choir_checkpoint_manager_save(m, NULL), CHOIR_STATE, "averages are in place");
	choir_checkpoint_manager_free(m);
	assert_int_equal(choir_optimizer_swap_averages(j.optimizer), CHOIR_OK);
	compare(&j, w, 0);
	run(&j);
	choir_strategy_free(j.strategy);
}

TEST(averages_follow_the_weights)
{
	follow_averages(CHOIR_SGD, "cpu:0,cpu:1");
	follow_averages(CHOIR_ADAM, "cpu:0");
	follow_averages(CHOIR_LAMB, "cpu:0,cpu:1");
	follow_averages(CHOIR_MOMENTUM, "far:0,cpu:0");
}

static void open_later(job *j)
{
	*j = open_job("cpu:0,cpu:1", 2, CHOIR_MOMENTUM,
			(choir_optimizer_options){ .learning_rate = 0.05, .ema_momentum = 0.75 });
	CHOIR_SCOPE (j->strategy)
		j->later = choir_variable_new("later", CHOIR_SHAPE(N),
				CHOIR_OPTIONS(choir_variable_options, .dtype = CHOIR_F64,
						.initializer = CHOIR_INITIALIZER_ONES));
}

static choir_checkpoint_manager *open_later_again(job *j, choir_checkpoint_manager *m)
{
	assert_int_equal(choir_checkpoint_manager_save(m, NULL), CHOIR_OK);
	choir_checkpoint_manager_free(m);
	choir_strategy_free(j->strategy);
	open_later(j);
	m = choir_checkpoint_manager_new(j->strategy, files_path("later"), NULL);
	assert_int_equal(choir_checkpoint_manager_restore_latest(m), CHOIR_OK);
	return m;
}

// Its first update sets its average, as that of the others; before, it has none, not even after
// a restore that takes it back.
TEST(a_variable_that_is_updated_later_has_its_own_average)
{
	static double w[2][N], average[N];
	job j;
	open_later(&j);
	run(&j);
	assert_int_equal(choir_optimizer_swap_averages(j.optimizer), CHOIR_OK);
	assert_int_equal(choir_optimizer_swap_averages(j.optimizer), CHOIR_OK);
	choir_checkpoint_manager *m =
			choir_checkpoint_manager_new(j.strategy, files_path("later"), NULL);
	assert_int_equal(choir_checkpoint_manager_save(m, NULL), CHOIR_OK);
	for (int restored = 0; restored < 3; restored++) {
		if (restored == 2)
			m = open_later_again(&j, m);
		for (int t = 0; t < 2; t++) {
			j.t = 1 + t;
			run(&j);
			fetch_variable(j.later, w[t], sizeof w[t]);
		}
		for (int i = 0; i < N; i++)
			average[i] = 0.75 * w[0][i] + 0.25 * w[1][i];
		assert_int_equal(choir_optimizer_swap_averages(j.optimizer), CHOIR_OK);
		job later = j;
		later.variable = j.later;
		compare(&later, average, 1e-14);
		assert_int_equal(choir_optimizer_swap_averages(j.optimizer), CHOIR_OK);
		compare(&later, w[1], 0);
		assert_int_equal(choir_checkpoint_manager_restore_latest(m), CHOIR_OK);
	}
	choir_checkpoint_manager_free(m);
	choir_strategy_free(j.strategy);
}

// The weights are those of an optimizer without averages, bit for bit.
TEST(averages_change_no_weight)
{
	job with = open_job(
			"cpu:0,cpu:1", 3, CHOIR_ADAM, (choir_optimizer_options){ .ema_momentum = 0.9 });
	job without = open_job("cpu:0", 3, CHOIR_ADAM, (choir_optimizer_options){ 0 });
	for (int t = 0; t < STEPS; t++) {
		run(&with);
		run(&without);
	}
	assert_true(choir_strategy_hash(with.strategy) == choir_strategy_hash(without.strategy));
	choir_strategy_free(with.strategy);
	choir_strategy_free(without.strategy);
}

TEST(checkpoints_keep_averages_and_the_rate)
{
	const choir_optimizer_options o = { .ema_momentum = 0.5, .learning_rate = 0.1 };
	job whole = open_job("cpu:0", 2, CHOIR_SGD, o),
		part = open_job("cpu:0,cpu:1", 2, CHOIR_SGD, o);
	for (int t = 0; t < STEPS; t++) {
		if (t == 2)
			assert_int_equal(choir_optimizer_set_learning_rate(whole.optimizer, 0.03), CHOIR_OK);
		run(&whole);
	}
	for (int t = 0; t < 2; t++)
		run(&part);
	assert_int_equal(choir_optimizer_set_learning_rate(part.optimizer, 0.03), CHOIR_OK);
	choir_checkpoint_manager *m =
			choir_checkpoint_manager_new(part.strategy, files_path("averages"), NULL);
	assert_int_equal(choir_checkpoint_manager_save(m, NULL), CHOIR_OK);
	choir_checkpoint_manager_free(m);
	choir_strategy_free(part.strategy);
	job rest = open_job("far:0,far:1", 2, CHOIR_SGD, o);
	m = choir_checkpoint_manager_new(rest.strategy, files_path("averages"), NULL);
	if (choir_checkpoint_manager_restore_latest(m) != CHOIR_OK)
		fail_msg("%s", choir_error());
	assert_true(choir_optimizer_learning_rate(rest.optimizer) == 0.03);
	for (rest.t = 2; rest.t < STEPS;)
		run(&rest);
	choir_checkpoint_manager_free(m);
	for (int swapped = 0; swapped < 2; swapped++) {
		assert_true(choir_strategy_hash(rest.strategy) == choir_strategy_hash(whole.strategy));
		assert_int_equal(choir_optimizer_swap_averages(rest.optimizer), CHOIR_OK);
		assert_int_equal(choir_optimizer_swap_averages(whole.optimizer), CHOIR_OK);
	}
	choir_strategy_free(rest.strategy);
	choir_strategy_free(whole.strategy);
}

// ---- Wrong use.

static double constant(int64_t at, void *user)
{
	(void) at, (void) user;
	return 0.1;
}

TEST(wrong_use)
{
	const choir_schedule function = {
		.size = sizeof function, .kind = CHOIR_SCHEDULE_FUNCTION, .fn = constant
	};
	job j = open_job("cpu:0", 1, CHOIR_SGD, (choir_optimizer_options){ .schedule = &function });
	assert_failed(choir_optimizer_set_learning_rate(j.optimizer, 0.1), CHOIR_INVALID, "FUNCTION");
	assert_failed(choir_optimizer_set_learning_rate(j.optimizer, 0), CHOIR_INVALID, "rate is 0");
	assert_failed(choir_optimizer_set_learning_rate(NULL, 1), CHOIR_INVALID, "NULL");
	assert_failed(choir_optimizer_swap_averages(j.optimizer), CHOIR_INVALID, "ema_momentum");
	assert_failed(choir_optimizer_swap_averages(NULL), CHOIR_INVALID, "NULL");
	assert_false(choir_optimizer_has_swapped(NULL));
	static const double bad[] = { -0.1, 1, 2 };
	CHOIR_SCOPE (j.strategy)
		for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
			assert_null(choir_optimizer_new(
					CHOIR_SGD, CHOIR_OPTIONS(choir_optimizer_options, .ema_momentum = bad[i])));
			assert_failed(choir_error_status(), CHOIR_INVALID, "ema_momentum");
		}
	choir_strategy_free(j.strategy);
	choir_strategy *s = choir_parameter_server_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
			.workers = 2, .locked_updates = CHOIR_OFF, .devices = "cpu:0,cpu:1"));
	assert_non_null(s);
	CHOIR_SCOPE (s) {
		assert_null(choir_optimizer_new(CHOIR_LAMB, NULL));
		assert_failed(choir_error_status(), CHOIR_UNSUPPORTED, "lamb*lock-free");
		assert_null(choir_optimizer_new(
				CHOIR_ADAM, CHOIR_OPTIONS(choir_optimizer_options, .ema_momentum = 0.9)));
		assert_failed(choir_error_status(), CHOIR_UNSUPPORTED, "ema_momentum*lock-free");
	}
	choir_strategy_free(s);
}

TEST(a_swap_needs_memory)
{
	job j = open_job("cpu:0", 1, CHOIR_SGD, (choir_optimizer_options){ .ema_momentum = 0.5 });
	run(&j);
	bool failed = true;
	for (uint64_t n = 1; failed; n++) {
		const uint64_t before = choir_strategy_hash(j.strategy);
		chi_alloc_fail(n, false);
		const choir_status status = choir_optimizer_swap_averages(j.optimizer);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
		if (failed)
			assert_true(choir_strategy_hash(j.strategy) == before);
	}
	choir_strategy_free(j.strategy);
}

TEST_GROUP(NULL, files_teardown)
