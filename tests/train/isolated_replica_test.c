// One replica of a step, run again by itself: the gradients that it gave when it ran among the
// others, on whatever devices, and nothing is changed by it.
#include "base/alloc.h"
#include "base/status.h"
#include "base/hash.h"
#include "choir/cross.h"
#include "choir/op.h"
#include "train/files.h"
#include "train/saved.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLICAS = 4, VARIABLES = 4, STEPS = 5 };

// What each replica gave: a hash of each gradient, in the order in which they came.
typedef struct {
	int n[REPLICAS];
	uint64_t hash[REPLICAS][VARIABLES];
	int nonfinite[REPLICAS];
} seen;

static void see(choir_replica *r, choir_variable *v, choir_tensor *gradient, void *user)
{
	seen *s = user;
	const int id = choir_replica_id(r);
	float x[256];
	const int64_t n = choir_shape_elements(choir_variable_shape(v));
	if (s->n[id] == VARIABLES || n > 256 ||
			choir_tensor_to_host(gradient, x, (size_t) n * sizeof *x) != CHOIR_OK)
		return; // too few of them are found missing
	uint64_t hash = chi_hash_text(choir_variable_name(v));
	for (int64_t i = 0; i < n; i++) {
		uint32_t bits;
		memcpy(&bits, &x[i], sizeof bits);
		hash = chi_hash_mix(hash ^ bits);
		s->nonfinite[id] += !isfinite(x[i]);
	}
	s->hash[id][s->n[id]++] = hash;
}

static void watch(problem *p, seen *s)
{
	memset(s, 0, sizeof *s);
	saved_must(choir_strategy_set_gradient_hook(p->strategy, see, s));
}

// spec: 2.7
TEST(the_same_gradients)
{
	const choir_optimizer_options clipped = { .size = sizeof clipped, .global_clip_norm = 0.1 };
	for (int k = 0; k < SAVED_CARRIERS; k++) {
		char path[600];
		const choir_optimizer_options *o = k % 2 == 0 ? NULL : &clipped;
		problem p = saved_open(k, REPLICAS, CHOIR_ADAM, o);
		saved_train(&p, STEPS - 1);
		choir_checkpoint_manager *m = saved_manage(p.strategy, saved_directory(), NULL);
		saved_must(choir_checkpoint_manager_save(m, NULL));
		snprintf(path, sizeof path, "%s", choir_checkpoint_manager_latest(m));
		seen among_others, alone;
		watch(&p, &among_others);
		saved_train(&p, 1);
		const uint64_t weights = choir_strategy_hash(p.strategy);
		problem_close(&p);

		// The directory is still the manager's: looking takes nothing from a job.
		problem q = saved_open((k + 1) % SAVED_CARRIERS, REPLICAS, CHOIR_ADAM, o);
		saved_must(choir_strategy_restore_checkpoint(q.strategy, path));
		q.steps = STEPS - 1;
		watch(&q, &alone);
		for (int i = REPLICAS; i-- > 0;) {
			saved_must(problem_replica(&q, i));
			assert_int_equal(alone.n[i], VARIABLES);
		}
		assert_memory_equal(&alone, &among_others, sizeof alone);
		// Nothing was updated or counted: the step itself still leads to the same.
		saved_must(choir_strategy_set_gradient_hook(q.strategy, NULL, NULL));
		saved_train(&q, 1);
		assert_int_equal(choir_strategy_hash(q.strategy), weights);
		assert_memory_equal(&alone, &among_others, sizeof alone);
		choir_checkpoint_manager_free(m);
		problem_close(&q);
	}
}

// ---- Gradients that are not finite.

static choir_status divide(choir_replica *r, void *user)
{
	const problem *p = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *x = choir_random_normal(r->frame, CHOIR_F32, CHOIR_SHAPE(3, 12), 0);
	choir_tensor *y = choir_mean(choir_layer_apply(p->model, x), CHOIR_ALL_AXES);
	return choir_optimizer_minimize(
			p->optimizer, choir_replica_id(r) == 2 ? choir_scale(y, INFINITY) : y, tape);
}

TEST(not_finite)
{
	problem p = saved_open(1, REPLICAS, CHOIR_SGD, NULL);
	seen s;
	watch(&p, &s);
	assert_failed(choir_strategy_run(p.strategy, divide, &p, NULL, NULL), CHOIR_INVALID,
			"replica 2: sgd:*gradient");
	watch(&p, &s);
	for (int i = 0; i < REPLICAS; i++) {
		saved_must(choir_strategy_run_replica(p.strategy, i, divide, &p, NULL));
		assert_int_equal(s.n[i], VARIABLES);
		assert_int_equal(s.nonfinite[i] > 0, i == 2);
	}
	problem_close(&p);
}

// ---- What needs the others.

static choir_status merged(choir_cross *x, void *user)
{
	(void) x;
	(void) user;
	return CHOIR_OK;
}

static choir_status merge(choir_replica *r, void *user)
{
	return choir_replica_merge_call(r, merged, user);
}

static choir_status sum(choir_replica *r, void *user)
{
	(void) user;
	choir_tensor *one = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 1);
	return choir_replica_all_reduce(r, CHOIR_SUM, one) == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_status assign(choir_replica *r, void *user)
{
	return choir_variable_assign_add(user, choir_fill(r->frame, CHOIR_F32, CHOIR_SCALAR, 1));
}

TEST(what_needs_the_others)
{
	const struct {
		choir_replica_fn *fn;
		const char *text;
	} cases[] = {
		{ merge, "replica 1*merge call*2 replicas" },
		{ sum, "replica 1*all_reduce*2 replicas" },
		{ assign, "replica 1" },
	};
	for (int k = 0; k < SAVED_CARRIERS; k++) {
		choir_strategy *s = mirrored(saved_devices[k], 2);
		choir_variable *v = NULL;
		CHOIR_SCOPE (s)
			v = choir_variable_new("v", CHOIR_SCALAR,
					CHOIR_OPTIONS(choir_variable_options, .aggregation = CHOIR_AGGREGATION_SUM));
		for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
			assert_failed(choir_strategy_run_replica(s, 1, cases[i].fn, v, NULL),
					CHOIR_UNSUPPORTED, cases[i].text);
			saved_must(choir_strategy_run(s, cases[i].fn, v, NULL, NULL)); // still works
		}
		float value;
		fetch_variable(v, &value, sizeof value);
		assert_true(value == 2);
		choir_strategy_free(s);
	}
	choir_strategy *s = mirrored("cpu:0", 1); // who is alone anyway needs nobody
	saved_must(choir_strategy_run_replica(s, 0, merge, NULL, NULL));
	saved_must(choir_strategy_run_replica(s, 0, sum, NULL, NULL));
	choir_strategy_free(s);
}

typedef struct {
	choir_variable *v;
	choir_optimizer *optimizer;
} descent;

static choir_status give_one(choir_replica *r, void *user)
{
	const descent *d = user;
	choir_tensor *one = choir_fill(r->frame, CHOIR_F32, CHOIR_SCALAR, 1);
	CHOIR_TRY(choir_optimizer_add_gradient(d->optimizer, r, d->v, one));
	return choir_optimizer_apply_gradients(d->optimizer, r);
}

static choir_status distribute(choir_cross *x, void *user)
{
	descent *d = user;
	choir_value *one = choir_tensor_as_value(choir_fill(x->frame, CHOIR_F32, CHOIR_SCALAR, 1));
	CHOIR_TRY(choir_optimizer_distributed_apply(d->optimizer, x, 1, &d->v, &one));
	return choir_cross_run(x, give_one, d);
}

static choir_status apply_in_a_merge(choir_replica *r, void *user)
{
	return choir_replica_merge_call(r, distribute, user);
}

TEST(updates_of_merge_functions_are_dropped)
{
	choir_strategy *s = mirrored("cpu:0", 1);
	descent d = { 0 };
	CHOIR_SCOPE (s) {
		d.v = choir_variable_new("v", CHOIR_SCALAR, NULL);
		d.optimizer = choir_optimizer_new(
				CHOIR_SGD, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 1));
	}
	const float expected[] = { 0, -2, -2 }; // alone, among all (who are one), alone once more
	for (int i = 0; i < 3; i++) {
		float value;
		saved_must(i == 1 ? choir_strategy_run(s, apply_in_a_merge, &d, NULL, NULL)
						  : choir_strategy_run_replica(s, 0, apply_in_a_merge, &d, NULL));
		fetch_variable(d.v, &value, sizeof value);
		assert_true(value == expected[i]);
	}
	choir_cross *x = choir_strategy_cross(s); // outside of runs nothing is dropped
	saved_must(distribute(x, &d));
	float value;
	fetch_variable(d.v, &value, sizeof value);
	assert_true(value == -4);
	choir_strategy_free(s);
}

static choir_status nest(choir_replica *r, void *user)
{
	return choir_strategy_run_replica(choir_replica_strategy(r), 0, merge, user, NULL);
}

static choir_status nothing(choir_replica *r, void *user)
{
	(void) r;
	(void) user;
	return CHOIR_OK;
}

TEST(wrong_use)
{
	choir_strategy *s = mirrored("cpu:0", 3), *other = mirrored("cpu:0", 3);
	choir_values *set = choir_values_new(other);
	assert_failed(
			choir_strategy_run_replica(s, 3, nothing, NULL, NULL), CHOIR_INVALID, "replica 3*0*2");
	assert_failed(
			choir_strategy_run_replica(s, -1, nothing, NULL, NULL), CHOIR_INVALID, "replica -1");
	assert_failed(choir_strategy_run_replica(s, 0, NULL, NULL, NULL), CHOIR_INVALID, "NULL");
	assert_failed(choir_strategy_run_replica(NULL, 0, nothing, NULL, NULL), CHOIR_INVALID, "NULL");
	assert_failed(choir_strategy_run_replica(s, 0, nothing, NULL, set), CHOIR_INVALID, "strategy");
	assert_failed(choir_strategy_run(s, nest, NULL, NULL, NULL), CHOIR_STATE, "run_replica");
	assert_failed(choir_strategy_run_replica(s, 1, nest, NULL, NULL), CHOIR_STATE, "run_replica");
	assert_failed(choir_strategy_set_gradient_hook(NULL, see, NULL), CHOIR_INVALID, "NULL");
	assert_failed(choir_strategy_restore_checkpoint(s, NULL), CHOIR_INVALID, "NULL");
	assert_failed(choir_strategy_restore_checkpoint(s, "some/folder"), CHOIR_INVALID,
			"some/folder:*\"step-1500\"");
	assert_failed(
			choir_strategy_restore_checkpoint(s, ".step-3.tmp"), CHOIR_INVALID, "\"step-1500\"");
	assert_failed(choir_strategy_restore_checkpoint(s, "nowhere/step-3/"), CHOIR_NOT_FOUND,
			"nowhere/step-3: open the directory:*directory");
	saved_must(choir_strategy_run_replica(s, 2, nothing, NULL, NULL));
	choir_values_free(set);
	choir_strategy_free(other);
	choir_strategy_free(s);
}

TEST(memory_runs_out)
{
	problem p = saved_open(0, 2, CHOIR_ADAM, NULL);
	saved_train(&p, 1);
	choir_checkpoint_manager *m = saved_manage(p.strategy, saved_directory(), NULL);
	saved_must(choir_checkpoint_manager_save(m, NULL));
	const uint64_t weights = choir_strategy_hash(p.strategy);
	bool failed = true;
	for (uint64_t n = 1; failed; n++) {
		chi_alloc_fail(n, false);
		choir_status status =
				choir_strategy_restore_checkpoint(p.strategy, choir_checkpoint_manager_latest(m));
		if (status == CHOIR_OK)
			status = problem_replica(&p, 1);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		if (status != CHOIR_OK)
			assert_failed(status, CHOIR_NO_MEMORY, "memory");
	}
	saved_must(choir_strategy_restore_checkpoint(p.strategy, choir_checkpoint_manager_latest(m)));
	assert_int_equal(choir_strategy_hash(p.strategy), weights);
	choir_checkpoint_manager_free(m);
	problem_close(&p);
}

TEST_GROUP(NULL, files_teardown)
