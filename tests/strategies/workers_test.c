// Workers of a parameter server: that nothing is lost under locks, that every element is whole
// without, that workers do not wait for each other, and how they fail.
#include "plain_kernels.h"
#include "test.h"

#include <choir/choir.h>

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 40, LARGE = 9000 };

typedef struct {
	const char *devices, *parameters;
	int workers, replicas;
	choir_toggle locked;
} deal;

static const deal deals[] = {
	{ "cpu:0,cpu:1", "cpu:0", 4, 4, CHOIR_ON },
	{ "cpu:0,cpu:1", "cpu:0,cpu:1", 4, 4, CHOIR_OFF },
	{ "cpu:0,cpu:1", "cpu:0", 2, 5, CHOIR_ON },
	{ "cpu:0,cpu:1", "cpu:1", 2, 4, CHOIR_OFF },
	{ "far:0,far:1", "cpu:0", 2, 2, CHOIR_ON },
	{ "far:0,far:1", "cpu:0", 2, 3, CHOIR_OFF },
	{ "cpu:0,cpu:1", "far:0,far:1", 3, 3, CHOIR_ON },
	{ "far:0,cpu:0", "far:0", 2, 2, CHOIR_ON },
};
enum { DEALS = sizeof deals / sizeof deals[0] };

static choir_strategy *open_cut(const deal *d, double timeout, int shards)
{
	choir_strategy *s = choir_parameter_server_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
			.devices = d->devices, .replicas = d->replicas, .parameter_devices = d->parameters,
			.workers = d->workers, .locked_updates = d->locked, .timeout = timeout,
			.partition = shards > 0 ? CHOIR_PARTITION_FIXED : CHOIR_PARTITION_NONE,
			.max_shards = shards));
	if (s == NULL)
		fail_msg("no strategy: %s", choir_error());
	return s;
}

static choir_strategy *open_deal(const deal *d, double timeout)
{
	return open_cut(d, timeout, 0);
}

static void works(choir_status status)
{
	if (status != CHOIR_OK)
		fail_msg("%s: %s", choir_status_name(status), choir_error());
}

static void failed(
		choir_status status, choir_status expected, const char *first, const char *second)
{
	if (status != expected || !text_holds(choir_error(), first) ||
			!text_holds(choir_error(), second))
		fail_msg("%s: %s; expected %s with \"%s\" and \"%s\"", choir_status_name(status),
				choir_error(), choir_status_name(expected), first, second);
}

#define NEED(condition) \
	do { \
		if (!(condition)) \
			return choir_fail(CHOIR_INTERNAL, "%s:%d: %s", __FILE__, __LINE__, #condition); \
	} while (0)

static choir_variable *make(
		choir_strategy *s, const char *name, int64_t n, choir_synchronization synchronization)
{
	choir_variable *v = NULL;
	CHOIR_SCOPE (s)
		v = choir_variable_new(name, CHOIR_SHAPE(n),
				CHOIR_OPTIONS(choir_variable_options, .synchronization = synchronization,
						.aggregation = CHOIR_AGGREGATION_SUM));
	if (v == NULL)
		fail_msg("no variable: %s", choir_error());
	return v;
}

static const float *fetch(choir_variable *v)
{
	static float host[LARGE];
	const int64_t n = choir_shape_elements(choir_variable_shape(v));
	choir_frame *f = choir_frame_new(NULL);
	works(choir_tensor_to_host(choir_variable_read(v, f), host, (size_t) n * sizeof host[0]));
	choir_frame_free(f);
	return host;
}

// ---- Who is who.

typedef struct {
	atomic_int replicas, workers;
	pthread_t caller;
	choir_strategy *strategy;
} census;

static choir_status count_replica(choir_replica *r, void *user)
{
	census *c = user;
	NEED(choir_replica_id(r) < choir_replica_count(r));
	atomic_fetch_add(&c->replicas, 1);
	return CHOIR_OK;
}

static choir_status look_around(choir_strategy *group, int worker, void *user)
{
	census *c = user;
	NEED((group == c->strategy) == (worker == 0));
	NEED((pthread_equal(pthread_self(), c->caller) != 0) == (worker == 0));
	NEED(choir_strategy_current() == group && choir_in_cross_replica_context());
	NEED(choir_strategy_run_workers(c->strategy, look_around, user) == CHOIR_STATE);
	choir_strategy_free(worker == 0 ? NULL : group); // is not his to free
	atomic_fetch_add(&c->workers, 1);
	return choir_strategy_run(group, count_replica, user, NULL, NULL);
}

// spec: B12, 2.14
TEST(test_every_worker_runs_its_own_replicas)
{
	for (int i = 0; i < DEALS; i++) {
		choir_strategy *s = open_deal(&deals[i], 0);
		census c = { .caller = pthread_self(), .strategy = s };
		assert_int_equal(choir_strategy_workers(s), deals[i].workers);
		// The first R mod W workers have one more.
		assert_int_equal(choir_strategy_replicas(s),
				(deals[i].replicas + deals[i].workers - 1) / deals[i].workers);
		works(choir_strategy_run_workers(s, look_around, &c));
		assert_int_equal(atomic_load(&c.workers), deals[i].workers);
		assert_int_equal(atomic_load(&c.replicas), deals[i].replicas);
		choir_strategy_free(s);
	}
}

static choir_status count_worker(choir_strategy *group, int worker, void *user)
{
	NEED(worker == 0);
	atomic_fetch_add((atomic_int *) user, choir_strategy_replicas(group));
	return CHOIR_OK;
}

// spec: C1
TEST(test_others_are_their_own_worker)
{
	static const char *const kinds[] = { "mirrored", "central_storage", "parameter_server" };
	for (int i = 0; i < 3; i++) {
		atomic_int replicas = 0;
		choir_strategy *s =
				choir_strategy_new(kinds[i], CHOIR_OPTIONS(choir_strategy_options, .replicas = 3));
		assert_int_equal(choir_strategy_workers(s), 1);
		works(choir_strategy_run_workers(s, count_worker, &replicas));
		assert_int_equal(atomic_load(&replicas), 3);
		choir_strategy_free(s);
	}
}

// spec: 2.14, 2.15
TEST(test_round_robin)
{
	const deal two = { "cpu:0", "far:0,cpu:1,far:1", 2, 2, CHOIR_ON };
	static const char *const expected[] = { "far:0", "cpu:1", "far:1", "far:0", "cpu:1" };
	choir_strategy *s = open_deal(&two, 0);
	choir_scope scope, beside;
	assert_int_equal(choir_strategy_parameter_devices(s), 3);
	for (int i = 0; i < 5; i++) {
		char name[24];
		snprintf(name, sizeof name, "v%d", i);
		choir_variable *v = make(s, name, 3, CHOIR_SYNCHRONIZATION_AUTO);
		choir_device *d = choir_device_find(expected[i]);
		assert_int_equal(choir_variable_copies(v), 1);
		assert_ptr_equal(choir_variable_device(v, 0), d);
		works(choir_scope_enter(&scope, s)); // what is colocated takes no turn
		works(choir_scope_colocate(&beside, choir_variable_as_value(v)));
		strcat(name, "/m");
		choir_variable *slot = choir_variable_new(name, CHOIR_SHAPE(3), NULL);
		assert_ptr_equal(choir_variable_device(slot, 0), d);
		works(choir_scope_exit(&beside));
		works(choir_scope_exit(&scope));
	}
	choir_strategy_free(s);
}

// ---- Nothing is lost.

typedef struct {
	choir_variable *v, *other;
	choir_optimizer *optimizer;
	choir_metric *metric;
	bool locked;
	int fails; // worker
	atomic_int flag;
} shared;

static choir_status add_one(choir_replica *r, void *user)
{
	const shared *a = user;
	return choir_variable_assign_add(a->v, choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(5), 1));
}

static choir_status add_often(choir_strategy *group, int worker, void *user)
{
	(void) worker;
	for (int i = 0; i < STEPS; i++)
		CHOIR_TRY(choir_strategy_run(group, add_one, user, NULL, NULL));
	return CHOIR_OK;
}

// Without locks what two do at the same time may lose one of the two, or, where one is kept
// waiting in the middle, all that the other has done meanwhile; and an element is whole.
static void check_count(const float *x, int64_t n, double all, double one, bool locked)
{
	for (int64_t i = 0; i < n; i++) {
		const double count = (double) x[i] / one;
		assert_true(count == (double) (int64_t) count);
		assert_true(locked ? count == all : count >= 1 && count <= all);
	}
}

TEST(test_sums_of_all_workers)
{
	for (int i = 0; i < DEALS; i++) {
		choir_strategy *s = open_deal(&deals[i], 0);
		shared a = { .v = make(s, "v", 5, CHOIR_SYNCHRONIZATION_AUTO) };
		works(choir_strategy_run_workers(s, add_often, &a));
		const bool locked = deals[i].locked == CHOIR_ON;
		const float *x = fetch(a.v);
		if (locked)
			check_count(x, 5, STEPS * deals[i].replicas, 1, true);
		for (int k = 0; k < 5; k++)
			assert_true(x[k] >= 1 && x[k] <= (float) (STEPS * deals[i].replicas));
		choir_strategy_free(s);
	}
}

// The gradient of -sum(v) / replicas is the same for all elements, so they stay equal.
static choir_status descend(choir_replica *r, void *user)
{
	const shared *a = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *x = choir_variable_read(a->v, r->frame);
	choir_tensor *again = choir_variable_read(a->v, r->frame);
	NEED(x != NULL && again == x); // one tensor while a tape records
	if (a->locked) { // an update is seen as a whole
		choir_tensor *first = choir_mean(x, CHOIR_ALL_AXES);
		float host[LARGE];
		CHOIR_TRY(choir_tensor_to_host(x, host, sizeof host));
		for (int i = 1; i < LARGE; i++)
			NEED(host[i] == host[0]);
		NEED(first != NULL);
	}
	choir_tensor *loss = choir_scale(choir_sum(x, CHOIR_ALL_AXES), -1.0 / choir_replica_count(r));
	return choir_optimizer_minimize(a->optimizer, loss, tape);
}

static choir_status descend_often(choir_strategy *group, int worker, void *user)
{
	(void) worker;
	for (int i = 0; i < STEPS; i++)
		CHOIR_TRY(choir_strategy_run(group, descend, user, NULL, NULL));
	return CHOIR_OK;
}

TEST(test_updates_of_all_workers)
{
	for (int i = 0; i < DEALS; i++) {
		choir_strategy *s = open_deal(&deals[i], 0);
		shared a = { .v = make(s, "v", LARGE, CHOIR_SYNCHRONIZATION_AUTO),
			.locked = deals[i].locked == CHOIR_ON };
		CHOIR_SCOPE (s)
			a.optimizer = choir_optimizer_new(
					CHOIR_SGD, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.5));
		const bool exact = deals[i].replicas % deals[i].workers == 0;
		works(choir_strategy_run_workers(s, descend_often, &a));
		if (exact) // thirds are not
			check_count(fetch(a.v), LARGE, STEPS * deals[i].workers, 0.5, a.locked);
		choir_strategy_free(s);
	}
}

// Each shard has a lock of its own, and is whole by itself.
// spec: D16, 2.15
TEST(test_shards_of_all_workers)
{
	static const deal cut[] = {
		{ "cpu:0,cpu:1", "cpu:0,cpu:1", 4, 4, CHOIR_ON },
		{ "cpu:0,cpu:1", "cpu:0,cpu:1", 4, 4, CHOIR_OFF },
		{ "cpu:0,far:0", "far:0,cpu:0", 2, 4, CHOIR_ON },
	};
	for (int i = 0; i < 3; i++) {
		choir_strategy *s = open_cut(&cut[i], 0, 3);
		const bool locked = cut[i].locked == CHOIR_ON;
		shared a = { .v = make(s, "v", LARGE, CHOIR_SYNCHRONIZATION_AUTO) };
		assert_int_equal(choir_variable_shards(a.v), 3);
		CHOIR_SCOPE (s)
			a.optimizer = choir_optimizer_new(
					CHOIR_SGD, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.5));
		works(choir_strategy_run_workers(s, descend_often, &a));
		check_count(fetch(a.v), LARGE, STEPS * cut[i].workers, 0.5, locked);
		// By assignment, too.
		a.v = make(s, "few", 5, CHOIR_SYNCHRONIZATION_AUTO);
		works(choir_strategy_run_workers(s, add_often, &a));
		if (locked)
			check_count(fetch(a.v), 5, STEPS * cut[i].replicas, 1, true);
		choir_strategy_free(s);
	}
}

static choir_status descend_with_momentum(choir_strategy *group, int worker, void *user)
{
	return descend_often(group, worker, user);
}

// Slots go with their variable's lock: with momentum 1 the k-th update of all adds k halves.
TEST(test_slots_of_all_workers)
{
	const deal d = { "cpu:0,cpu:1", "cpu:0", 4, 4, CHOIR_ON };
	choir_strategy *s = open_deal(&d, 0);
	shared a = { .v = make(s, "v", LARGE, CHOIR_SYNCHRONIZATION_AUTO), .locked = true };
	CHOIR_SCOPE (s)
		a.optimizer = choir_optimizer_new(CHOIR_MOMENTUM,
				CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.5, .momentum = 0.5));
	works(choir_strategy_run_workers(s, descend_with_momentum, &a));
	double velocity = 0, x = 0;
	for (int k = 0; k < 4 * STEPS; k++) {
		velocity = (double) (float) (0.5 * velocity - 1);
		x = (double) (float) (x - 0.5 * velocity);
	}
	const float *found = fetch(a.v);
	for (int i = 0; i < LARGE; i++)
		assert_true(fabs((double) found[i] - x) < 1e-3 * fabs(x));
	choir_strategy_free(s);
}

// ---- Parts, metrics, reads.

static choir_status count_here(choir_replica *r, void *user)
{
	const shared *a = user;
	choir_tensor *one = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 1);
	CHOIR_TRY(choir_variable_assign_add(a->v, one));
	return choir_metric_update(a->metric, one, NULL);
}

static choir_status count_and_look(choir_strategy *group, int worker, void *user)
{
	const shared *a = user;
	for (int i = 0; i < STEPS; i++) {
		CHOIR_TRY(choir_strategy_run(group, count_here, user, NULL, NULL));
		NEED(choir_metric_result(a->metric) > 0); // others may be between total and count
		choir_frame *f = choir_frame_new(NULL);
		choir_tensor *all = choir_variable_read(a->v, f);
		float seen[2] = { 0 };
		const choir_status status = choir_tensor_to_host(all, seen, sizeof seen);
		choir_frame_free(f);
		CHOIR_TRY(status);
		NEED(seen[0] >= (float) i + 1);
		if (worker == 1)
			NEED(choir_strategy_reduce(
						 group, CHOIR_SUM, choir_variable_as_value(a->v), CHOIR_NO_AXIS) != NULL);
	}
	return CHOIR_OK;
}

// spec: D19
TEST(test_parts_of_all_workers)
{
	for (int i = 0; i < DEALS; i++) {
		choir_strategy *s = open_deal(&deals[i], 0);
		shared a = { .v = make(s, "v", 2, CHOIR_SYNCHRONIZATION_ON_READ) };
		CHOIR_SCOPE (s)
			a.metric = choir_metric_new("mean", CHOIR_METRIC_MEAN);
		assert_int_equal(choir_variable_copies(a.v), deals[i].replicas);
		works(choir_strategy_run_workers(s, count_and_look, &a));
		const float *x = fetch(a.v);
		assert_true(x[0] == (float) (STEPS * deals[i].replicas) && x[1] == x[0]);
		assert_true(choir_metric_result(a.metric) == 1);
		choir_strategy_free(s);
	}
}

static choir_status return_part(choir_update *u, void *user)
{
	choir_tensor *own = choir_variable_read(*(choir_variable **) user, u->frame);
	return choir_update_return(u, "part", choir_copy(own, u->frame));
}

static choir_status update_own_part(choir_replica *r, void *user)
{
	shared *a = user;
	const int first = choir_strategy_first_replica_id(choir_replica_strategy(r));
	const double own = 1 + choir_replica_id(r) + 10 * first;
	CHOIR_TRY(choir_variable_assign(a->v, choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), own)));
	CHOIR_TRY(choir_replica_update(r, a->v, return_part, &a->v));
	NEED(choir_tensor_number(choir_mean(choir_replica_result(r, "part"), CHOIR_ALL_AXES)) == own);
	return CHOIR_OK;
}

static choir_status run_update_own_part(choir_strategy *group, int worker, void *user)
{
	(void) worker;
	return choir_strategy_run(group, update_own_part, user, NULL, NULL);
}

// What an update of the parts of all workers returned, every replica gets of its own.
TEST(test_updates_of_parts)
{
	choir_strategy *s =
			open_deal(&deals[2], 0); // of 5 replicas, which its workers have 3 and 2 of
	shared a = { .v = make(s, "v", 2, CHOIR_SYNCHRONIZATION_ON_READ) };
	works(choir_strategy_run_workers(s, run_update_own_part, &a));
	choir_strategy_free(s);
}

static choir_status keep_a_read(choir_replica *r, void *user)
{
	shared *a = user;
	choir_tensor *x = choir_variable_read(a->v, r->frame);
	NEED(x != NULL);
	atomic_store(&a->flag, 1);
	while (atomic_load(&a->flag) != 2)
		sched_yield();
	NEED(choir_tensor_number(choir_sum(x, CHOIR_ALL_AXES)) == 0); // as it was
	x = choir_variable_read(a->v, r->frame);
	NEED(choir_tensor_number(choir_sum(x, CHOIR_ALL_AXES)) == 5);
	return CHOIR_OK;
}

static choir_status one_reads_one_writes(choir_strategy *group, int worker, void *user)
{
	shared *a = user;
	if (worker == 0)
		return choir_strategy_run(group, keep_a_read, user, NULL, NULL);
	while (atomic_load(&a->flag) != 1)
		sched_yield();
	const choir_status status = choir_strategy_run(group, add_one, user, NULL, NULL);
	atomic_store(&a->flag, 2);
	return status;
}

TEST(test_reads_are_copies)
{
	for (int i = 0; i < DEALS; i++) {
		deal two = deals[i];
		two.workers = two.replicas = 2;
		choir_strategy *s = open_deal(&two, 0);
		shared a = { .v = make(s, "v", 5, CHOIR_SYNCHRONIZATION_AUTO) };
		works(choir_strategy_run_workers(s, one_reads_one_writes, &a));
		choir_strategy_free(s);
	}
}

// ---- Failures.

static choir_status fail_in_one(choir_strategy *group, int worker, void *user)
{
	const shared *a = user;
	if (worker == a->fails)
		return choir_fail(CHOIR_IO, "its own trouble");
	choir_status status = CHOIR_OK;
	while (status == CHOIR_OK) // until it is told to stop
		status = choir_strategy_run(group, add_one, user, NULL, NULL);
	return status;
}

TEST(test_a_worker_fails)
{
	const deal d = { "cpu:0,cpu:1", "cpu:0", 4, 4, CHOIR_ON };
	choir_strategy *s = open_deal(&d, 0);
	shared a = { .v = make(s, "v", 5, CHOIR_SYNCHRONIZATION_AUTO) };
	for (a.fails = 0; a.fails < 4; a.fails++) {
		char text[32];
		snprintf(text, sizeof text, "worker %d: ", a.fails);
		failed(choir_strategy_run_workers(s, fail_in_one, &a), CHOIR_IO, text, "trouble");
		works(choir_strategy_run_workers(s, add_often, &a));
	}
	failed(choir_strategy_run_workers(s, NULL, &a), CHOIR_INVALID, "run_workers", "NULL");
	choir_strategy_free(s);
}

static choir_status read_other(choir_update *u, void *user)
{
	const shared *a = user;
	return choir_variable_assign(a->v, choir_variable_read(a->other, u->frame));
}

static choir_status update_from_other(choir_replica *r, void *user)
{
	const shared *a = user;
	return choir_replica_update(r, a->v, read_other, user);
}

static choir_status hold(choir_update *u, void *user)
{
	shared *a = user;
	(void) u;
	atomic_store(&a->flag, 1);
	while (atomic_load(&a->flag) != 2)
		sched_yield();
	return CHOIR_OK;
}

static choir_status update_and_hold(choir_replica *r, void *user)
{
	const shared *a = user;
	return choir_replica_update(r, a->v, hold, user);
}

static choir_status wait_for_holder(choir_strategy *group, int worker, void *user)
{
	shared *a = user;
	if (worker == 0)
		return choir_strategy_run(group, update_and_hold, user, NULL, NULL);
	while (atomic_load(&a->flag) != 1)
		sched_yield();
	const choir_status status = choir_strategy_run(group, add_one, user, NULL, NULL);
	atomic_store(&a->flag, 2);
	return status;
}

TEST(test_updates_wait_with_a_deadline)
{
	const deal d = { "cpu:0,cpu:1", "cpu:0", 2, 2, CHOIR_ON };
	choir_strategy *s = open_deal(&d, 0.6);
	shared a = { .v = make(s, "v", 5, CHOIR_SYNCHRONIZATION_AUTO),
		.other = make(s, "other", 5, CHOIR_SYNCHRONIZATION_AUTO) };
	failed(choir_strategy_run_workers(s, wait_for_holder, &a), CHOIR_TIMEOUT,
			"worker 1:", "variable \"v\":*0.6");
	failed(choir_strategy_run(s, update_from_other, &a, NULL, NULL), CHOIR_STATE, "\"other\"",
			"before");
	works(choir_strategy_run_workers(s, add_often, &a));
	choir_strategy_free(s);
}

TEST(test_refused)
{
	assert_null(choir_parameter_server_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
			.workers = 2, .locked_updates = CHOIR_OFF, .parameter_devices = "far:0")));
	failed(choir_error_status(), CHOIR_INVALID, "without", "far:0");
	assert_null(choir_parameter_server_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .workers = 3, .replicas = 2)));
	failed(choir_error_status(), CHOIR_INVALID, "2 replicas", "3 workers");
	assert_null(choir_parameter_server_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .workers = -1)));
	failed(choir_error_status(), CHOIR_INVALID, "workers*-1", "1 to 1024");
	assert_null(choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options, .workers = 1)));
	failed(choir_error_status(), CHOIR_INVALID, "\"mirrored\"", ".workers");
	const deal d = { "cpu:0", NULL, 2, 2, CHOIR_ON };
	choir_strategy *s = open_deal(&d, 0);
	const choir_loss_scale moving = { .size = sizeof moving, .kind = CHOIR_LOSS_SCALE_DYNAMIC };
	CHOIR_SCOPE (s)
		assert_null(choir_optimizer_new(
				CHOIR_SGD, CHOIR_OPTIONS(choir_optimizer_options, .loss_scale = &moving)));
	failed(choir_error_status(), CHOIR_UNSUPPORTED, "loss scale", "2 workers");
	choir_strategy_free(s);
}
