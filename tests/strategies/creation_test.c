// Workers that make variables at the same time: each name is made once. Initial values take their
// time here, so that the others come while one is at it.
#include "plain_kernels.h"
#include "test.h"

#include <choir/choir.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORKERS = 4 };

typedef struct {
	atomic_int here; // workers that are about to make it
	atomic_int initialized, refused;
	int wait_ms;
	char refusal[128];
	const char *name;
	choir_variable *made[WORKERS];
	choir_variable *v;
	choir_optimizer *optimizer[WORKERS];
	choir_layer *first[WORKERS];
	choir_metric *metric[WORKERS];
} shared;

static choir_strategy *open_workers(double timeout)
{
	choir_strategy *s = choir_parameter_server_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .devices = "cpu:0,cpu:1", .workers = WORKERS,
					.replicas = 2 * WORKERS, .timeout = timeout));
	if (s == NULL)
		fail_msg("%s", choir_error());
	return s;
}

static void wait_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
	nanosleep(&t, NULL);
}

// Until all workers are about to make it, and a little longer.
static choir_status initialize_slowly(void *out, const choir_shape *shape, void *user)
{
	shared *a = user;
	atomic_fetch_add(&a->initialized, 1);
	for (int i = 0; i < 1000 && atomic_load(&a->here) < WORKERS; i++)
		wait_ms(1);
	wait_ms(a->wait_ms);
	for (int64_t i = 0; i < choir_shape_elements(shape); i++)
		((float *) out)[i] = (float) i;
	return CHOIR_OK;
}

static choir_variable *make(shared *a)
{
	atomic_fetch_add(&a->here, 1);
	return choir_variable_new(a->name, CHOIR_SHAPE(3),
			CHOIR_OPTIONS(choir_variable_options, .initializer_fn = initialize_slowly, .user = a,
					.aggregation = CHOIR_AGGREGATION_SUM));
}

static choir_status make_in_replica(choir_replica *r, void *user)
{
	shared *a = user;
	choir_variable *v = choir_replica_id(r) == 0
			? make(a)
			: choir_variable_new(a->name, CHOIR_SHAPE(3),
					  CHOIR_OPTIONS(choir_variable_options, .aggregation = CHOIR_AGGREGATION_SUM));
	if (v == NULL)
		return choir_error_status();
	if (choir_replica_id(r) == 0) {
		const int worker = atomic_fetch_add(&a->refused, 1); // a place in the list
		a->made[worker] = v;
	}
	return choir_variable_assign_add(v, choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), 1));
}

static choir_status run_and_make(choir_strategy *group, int worker, void *user)
{
	(void) worker;
	return choir_strategy_run(group, make_in_replica, user, NULL, NULL);
}

static void check_value(choir_strategy *s, choir_variable *v, float added)
{
	float x[3] = { 0 };
	choir_cross *c = choir_strategy_cross(s);
	choir_tensor *t = choir_variable_read(v, c->frame);
	assert_int_equal(choir_tensor_to_host(t, x, sizeof x), CHOIR_OK);
	for (int i = 0; i < 3; i++)
		assert_true(x[i] == (float) i + added);
	choir_frame_clear(c->frame);
}

// spec: 2.3, 2.14
TEST(test_in_replicas)
{
	choir_strategy *s = open_workers(0);
	for (int i = 0; i < 4; i++) {
		char name[24];
		snprintf(name, sizeof name, "v%d", i);
		shared a = { .name = name, .wait_ms = 5 };
		if (choir_strategy_run_workers(s, run_and_make, &a) != CHOIR_OK)
			fail_msg("%s", choir_error());
		assert_int_equal(atomic_load(&a.initialized), 1);
		for (int w = 1; w < WORKERS; w++)
			assert_ptr_equal(a.made[w], a.made[0]);
		check_value(s, a.made[0], 2 * WORKERS);
	}
	choir_strategy_free(s);
}

static choir_status make_here(choir_strategy *group, int worker, void *user)
{
	shared *a = user;
	(void) group;
	a->made[worker] = make(a);
	if (a->made[worker] == NULL && atomic_fetch_add(&a->refused, 1) == 0)
		snprintf(a->refusal, sizeof a->refusal, "%s", choir_error());
	return CHOIR_OK;
}

// spec: 2.3, 2.14
TEST(test_across_replicas)
{
	choir_strategy *s = open_workers(0);
	shared a = { .name = "v", .wait_ms = 5 };
	assert_int_equal(choir_strategy_run_workers(s, make_here, &a), CHOIR_OK);
	assert_int_equal(atomic_load(&a.initialized), 1);
	assert_int_equal(atomic_load(&a.refused), WORKERS - 1);
	assert_text_holds(a.refusal, "variable \"v\"*name");
	choir_strategy_free(s);
}

TEST(test_waits_with_a_deadline)
{
	choir_strategy *s = open_workers(0.02);
	shared a = { .name = "v", .wait_ms = 300 };
	assert_int_equal(choir_strategy_run_workers(s, make_here, &a), CHOIR_OK);
	assert_int_equal(atomic_load(&a.initialized), 1);
	assert_int_equal(atomic_load(&a.refused), WORKERS - 1);
	assert_string_equal(
			a.refusal, "variable \"v\": waited 0.02 s for another worker that makes variables");
	choir_strategy_free(s);
}

// ---- Slots of optimizers of one variable.

typedef struct {
	const shared *a;
	int worker;
} own;

static choir_status descend(choir_replica *r, void *user)
{
	const own *o = user;
	choir_optimizer *optimizer = o->a->optimizer[o->worker];
	choir_tensor *g = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), 1);
	const choir_status status = choir_optimizer_add_gradient(optimizer, r, o->a->v, g);
	return status == CHOIR_OK ? choir_optimizer_apply_gradients(optimizer, r) : status;
}

static choir_status descend_twice(choir_strategy *group, int worker, void *user)
{
	own o = { user, worker };
	const choir_status status = choir_strategy_run(group, descend, &o, NULL, NULL);
	return status == CHOIR_OK ? choir_strategy_run(group, descend, &o, NULL, NULL) : status;
}

// Of two replicas a gradient of 2: each optimizer moves it by 1 and then by 1.5, whatever the
// others do, if its momentum is its own.
TEST(test_slots)
{
	for (int i = 0; i < 20; i++) {
		choir_strategy *s = open_workers(0);
		shared a = { .here = WORKERS, .name = "v" };
		CHOIR_SCOPE (s) {
			a.v = make(&a);
			for (int w = 0; w < WORKERS; w++)
				a.optimizer[w] = choir_optimizer_new(CHOIR_MOMENTUM,
						CHOIR_OPTIONS(
								choir_optimizer_options, .learning_rate = 0.5, .momentum = 0.5));
		}
		if (choir_strategy_run_workers(s, descend_twice, &a) != CHOIR_OK)
			fail_msg("%s", choir_error());
		check_value(s, a.v, -2.5F * WORKERS);
		choir_strategy_free(s);
	}
}

// ---- A worker that waits for its turn to make slots keeps no other from an update.

typedef struct {
	choir_variable *known, *fresh;
	choir_optimizer *optimizer;
	atomic_int making, updated;
} turns;

static choir_status initialize_after_an_update(void *out, const choir_shape *shape, void *user)
{
	turns *t = user;
	atomic_store(&t->making, 1);
	for (int i = 0; i < 10000 && atomic_load(&t->updated) == 0; i++)
		wait_ms(1);
	memset(out, 0, (size_t) choir_shape_elements(shape) * sizeof(float));
	return CHOIR_OK;
}

typedef struct {
	choir_optimizer *optimizer;
	choir_variable *v;
} update;

static choir_status update_once(choir_replica *r, void *user)
{
	const update *u = user;
	choir_tensor *g = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), 1);
	const choir_status status = choir_optimizer_add_gradient(u->optimizer, r, u->v, g);
	return status == CHOIR_OK ? choir_optimizer_apply_gradients(u->optimizer, r) : status;
}

static choir_status update_by_one(choir_strategy *group, int worker, void *user)
{
	const turns *t = user;
	update u = { t->optimizer, t->known };
	return worker == 0 ? choir_strategy_run(group, update_once, &u, NULL, NULL) : CHOIR_OK;
}

static choir_status take_turns(choir_strategy *group, int worker, void *user)
{
	turns *t = user;
	update u = { t->optimizer, worker == 1 ? t->fresh : t->known };
	if (worker == 0)
		return choir_variable_new("slow", CHOIR_SHAPE(3),
					   CHOIR_OPTIONS(choir_variable_options,
							   .initializer_fn = initialize_after_an_update, .user = t)) == NULL
				? choir_error_status()
				: CHOIR_OK;
	for (int i = 0; i < 10000 && atomic_load(&t->making) == 0; i++)
		wait_ms(1);
	if (worker > 2)
		return CHOIR_OK;
	if (worker == 2)
		wait_ms(50); // the one before waits by now
	const choir_status status = choir_strategy_run(group, update_once, &u, NULL, NULL);
	if (worker == 2)
		atomic_store(&t->updated, 1);
	return status;
}

TEST(test_updates_while_others_wait)
{
	choir_strategy *s = open_workers(3);
	turns t = { 0 };
	CHOIR_SCOPE (s) {
		t.known = choir_variable_new("known", CHOIR_SHAPE(3), NULL);
		t.fresh = choir_variable_new("fresh", CHOIR_SHAPE(3), NULL);
		t.optimizer = choir_optimizer_new(CHOIR_ADAM, NULL);
	}
	if (choir_strategy_run_workers(s, update_by_one, &t) != CHOIR_OK ||
			choir_strategy_run_workers(s, take_turns, &t) != CHOIR_OK)
		fail_msg("%s", choir_error());
	choir_strategy_free(s);
}

// ---- What a worker makes in its own function is the strategy's, as elsewhere.

static choir_status use_all(choir_strategy *group, choir_layer *layer, choir_metric *metric,
		const shared *a, choir_variable *slot)
{
	choir_cross *x = choir_strategy_cross(group);
	choir_frame *f = x->frame;
	choir_tensor *t = choir_cross_fetch(x, a->v, choir_device_find("cpu:0"), NULL, NULL);
	choir_tensor *y = choir_layer_apply(layer, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2, 3), 1));
	choir_tensor *beside = choir_variable_read(slot, f);
	choir_status status = t == NULL || y == NULL || beside == NULL
			? choir_error_status()
			: choir_metric_update(metric, t, NULL);
	if (status == CHOIR_OK && !choir_strategy_variable_created_in_scope(group, a->v))
		status = choir_fail(CHOIR_INTERNAL, "it was not made in this strategy");
	choir_frame_clear(f);
	return status;
}

static choir_status make_all_kinds(choir_strategy *group, int worker, void *user)
{
	shared *a = user;
	char slot[24], metric[24], second[24];
	snprintf(slot, sizeof slot, "slot%d", worker);
	snprintf(metric, sizeof metric, "metric%d", worker);
	snprintf(second, sizeof second, "second%d", worker);
	choir_scope scope;
	if (choir_scope_colocate(&scope, choir_variable_as_value(a->v)) != CHOIR_OK)
		return choir_error_status();
	a->made[worker] = choir_variable_new(slot, CHOIR_SHAPE(3), NULL);
	if (choir_scope_exit(&scope) != CHOIR_OK || a->made[worker] == NULL)
		return choir_error_status();
	choir_metric *m = a->metric[worker] = choir_metric_new(metric, CHOIR_METRIC_MEAN);
	choir_layer *const layers[] = { a->first[worker],
		choir_dense_new(second, 4, 2, CHOIR_LINEAR) };
	choir_layer *model = choir_sequential_new(2, layers);
	a->optimizer[worker] = choir_optimizer_new(CHOIR_SGD, NULL);
	if (m == NULL || model == NULL || a->optimizer[worker] == NULL)
		return choir_error_status();
	return use_all(group, model, m, a, a->made[worker]);
}

// spec: C21, A37, A47, 2.14
TEST(test_what_workers_make)
{
	choir_strategy *s = open_workers(0);
	shared a = { .here = WORKERS, .name = "v" };
	CHOIR_SCOPE (s) {
		a.v = make(&a);
		for (int w = 0; w < WORKERS; w++) {
			char name[24];
			snprintf(name, sizeof name, "first%d", w);
			a.first[w] = choir_dense_new(name, 3, 4, CHOIR_RELU);
		}
	}
	if (choir_strategy_run_workers(s, make_all_kinds, &a) != CHOIR_OK)
		fail_msg("%s", choir_error());
	for (int w = 0; w < WORKERS; w++) {
		assert_ptr_equal(choir_variable_device(a.made[w], 0), choir_variable_device(a.v, 0));
		CHOIR_SCOPE (s)
			assert_true(choir_metric_result(a.metric[w]) == 1); // of 0, 1 and 2
	}
	choir_strategy_free(s);
}
