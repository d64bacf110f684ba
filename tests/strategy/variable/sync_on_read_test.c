// Reading on-read variables as a whole inside replicas, the names by which replicas find each
// other's variables, and parts of several workers.
#include "choir/op.h"
#include "choir/tape.h"

#include "strategy/world.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static choir_strategy *strategy;
static int replicas;

static choir_variable *make(
		const char *name, choir_dtype dtype, bool on_read, choir_aggregation aggregation)
{
	return world_variable(strategy, name, CHOIR_SHAPE(2),
			CHOIR_OPTIONS(choir_variable_options, .dtype = dtype, .aggregation = aggregation,
					.synchronization = on_read ? CHOIR_SYNCHRONIZATION_ON_READ
											   : CHOIR_SYNCHRONIZATION_ON_WRITE));
}

typedef struct {
	choir_variable *v;
	double expected;
} reading;

static double sum_of(choir_tensor *t)
{
	return choir_tensor_number(choir_sum(t, CHOIR_ALL_AXES));
}

static choir_status read_both_ways(choir_replica *r, void *user)
{
	const reading *w = user;
	choir_scope scope;
	const int own = 1 + choir_replica_id(r);
	CHOIR_TRY(choir_variable_assign(w->v, choir_number(r->frame, own)));
	WORLD_NEED(sum_of(choir_variable_read(w->v, r->frame)) == 2 * own);
	CHOIR_TRY(choir_scope_sync_on_read(&scope));
	choir_tensor *t = choir_variable_read(w->v, r->frame);
	WORLD_NEED(sum_of(t) == 2 * w->expected);
	// Every read in it, also as an operand; a write still is of the own part.
	CHOIR_TRY(choir_variable_assign_add(w->v, choir_number(r->frame, 0)));
	t = choir_add(choir_variable_read(w->v, r->frame), choir_number(r->frame, 1));
	WORLD_NEED(sum_of(t) == 2 * w->expected + 2);
	CHOIR_TRY(choir_scope_exit(&scope));
	WORLD_NEED(sum_of(choir_variable_read(w->v, r->frame)) == 2 * own);
	return CHOIR_OK;
}

static choir_status read_whole(choir_replica *r, void *user)
{
	choir_scope scope;
	CHOIR_TRY(choir_scope_sync_on_read(&scope));
	choir_variable_read(user, r->frame); // nobody looks
	return choir_scope_exit(&scope);
}

static void read_by_aggregation(void)
{
	static const choir_aggregation all[] = { CHOIR_AGGREGATION_SUM, CHOIR_AGGREGATION_MEAN,
		CHOIR_AGGREGATION_ONLY_FIRST_REPLICA, CHOIR_AGGREGATION_SUM };
	const double sum = replicas * (replicas + 1) / 2.0;
	const double expected[] = { sum, sum / replicas, 1, sum };
	for (int i = 0; i < 4; i++) {
		char name[8] = { 'v', (char) ('0' + i), '\0' };
		reading w = { make(name, i < 3 ? CHOIR_F64 : CHOIR_I64, true, all[i]), expected[i] };
		world_ok(choir_strategy_run(strategy, read_both_ways, &w, NULL, NULL));
		choir_frame *f = choir_frame_new(NULL);
		assert_true(sum_of(choir_variable_read(w.v, f)) == 2 * expected[i]); // the same
		choir_frame_free(f);
	}
	reading none = { make("none", CHOIR_F64, true, CHOIR_AGGREGATION_NONE), 0 };
	world_failed(choir_strategy_run(strategy, read_whole, none.v, NULL, NULL), CHOIR_INVALID,
			"\"none\": it is ON_READ without an aggregation", NULL);
}

// spec: D12, M4
TEST(every_read_is_of_the_whole)
{
	world_on_every_deal(&strategy, &replicas, 1, read_by_aggregation);
}

static choir_status read_mirrored(choir_replica *r, void *user)
{
	choir_scope scope;
	CHOIR_TRY(choir_scope_sync_on_read(&scope));
	if (choir_replica_id(r) == 0) // no meeting
		WORLD_NEED(sum_of(choir_variable_read(user, r->frame)) == 0);
	return choir_scope_exit(&scope);
}

static choir_status leave_out(choir_replica *r, void *user)
{
	choir_scope scope;
	CHOIR_TRY(choir_scope_sync_on_read(&scope));
	if (choir_replica_id(r) == 0)
		choir_variable_read(user, r->frame);
	return choir_scope_exit(&scope);
}

static void who_must_come(void)
{
	choir_variable *v = make("v", CHOIR_F32, false, CHOIR_AGGREGATION_SUM);
	choir_variable *part = make("part", CHOIR_F32, true, CHOIR_AGGREGATION_SUM);
	world_ok(choir_strategy_run(strategy, read_mirrored, v, NULL, NULL));
	world_failed(choir_strategy_run(strategy, leave_out, part, NULL, NULL), CHOIR_STATE,
			"all replicas must make the same number of calls",
			"replica 0 was in read of \"part\"");
}

typedef struct {
	choir_variable *v[2];
} swapped;

// The last replica reads them the other way round: parts of one would be added to the other's.
static choir_status read_in_another_order(choir_replica *r, void *user)
{
	const swapped *w = user;
	choir_scope scope;
	const int last = choir_replica_id(r) == choir_replica_count(r) - 1;
	CHOIR_TRY(choir_scope_sync_on_read(&scope));
	for (int i = 0; i < 2; i++)
		choir_variable_read(w->v[i ^ last], r->frame);
	return choir_scope_exit(&scope);
}

static void order_matters(void)
{
	for (int how = 0; how < 2; how++) {
		const choir_aggregation a =
				how == 0 ? CHOIR_AGGREGATION_SUM : CHOIR_AGGREGATION_ONLY_FIRST_REPLICA;
		swapped w = { .v = { make(how == 0 ? "a" : "c", CHOIR_F32, true, a),
							  make(how == 0 ? "b" : "d", CHOIR_F32, true, a) } };
		world_failed(choir_strategy_run(strategy, read_in_another_order, &w, NULL, NULL),
				CHOIR_STATE, how == 0 ? "read of \"a\"" : "read of \"c\"",
				how == 0 ? "read of \"b\"" : "read of \"d\"");
	}
}

// spec: D12, E6, 2.1
TEST(variables_read_in_another_order)
{
	world_on_every_deal(&strategy, &replicas, 2, order_matters);
}

// spec: D12, 2.1
TEST(it_is_a_meeting)
{
	world_on_every_deal(&strategy, &replicas, 2, who_must_come);
}

static choir_status go_back(choir_replica *r, void *user)
{
	choir_scope scope;
	choir_tape *tape = choir_tape_begin(r->frame);
	CHOIR_TRY(choir_scope_sync_on_read(&scope));
	choir_tensor *whole = choir_variable_read(user, r->frame), *gradient = NULL;
	CHOIR_TRY(choir_scope_exit(&scope));
	choir_tensor *own = choir_variable_read(user, r->frame); // what is differentiated by
	choir_tensor *loss = choir_sum(choir_scale(whole, 3), CHOIR_ALL_AXES);
	CHOIR_TRY(choir_tape_gradient(tape, loss, 1, &own, &gradient));
	WORLD_NEED(sum_of(gradient) == 2 * 3 * choir_replica_count(r));
	return CHOIR_OK;
}

static void differentiate(void)
{
	choir_variable *v = make("v", CHOIR_F32, true, CHOIR_AGGREGATION_SUM);
	world_ok(choir_strategy_run(strategy, go_back, v, NULL, NULL));
}

// spec: D12, A32
TEST(gradients_flow_to_the_own_part)
{
	world_on_every_deal(&strategy, &replicas, 1, differentiate);
}

// A function that reads a metric's state is the same code wherever it is called.
static choir_status read_anywhere(choir_frame *f, choir_variable *v, double expected)
{
	choir_scope scope;
	CHOIR_TRY(choir_scope_sync_on_read(&scope));
	WORLD_NEED(sum_of(choir_variable_read(v, f)) == expected);
	CHOIR_TRY(choir_scope_exit(&scope));
	WORLD_NEED(choir_scope_exit(&scope) == CHOIR_STATE); // it has been left
	return CHOIR_OK;
}

static choir_status read_in_merge(choir_cross *x, void *user)
{
	return read_anywhere(x->frame, user, 8);
}

static choir_status read_in_replica(choir_replica *r, void *user)
{
	CHOIR_TRY(read_anywhere(r->frame, user, 8));
	return choir_replica_merge_call(r, read_in_merge, user);
}

// spec: D12, 2.2
TEST(outside_replicas_it_changes_nothing)
{
	strategy = world_new(4, "cpu:0,cpu:1", 0);
	choir_variable *v = make("v", CHOIR_F32, true, CHOIR_AGGREGATION_SUM);
	choir_frame *f = choir_frame_new(NULL);
	world_ok(choir_variable_assign(v, choir_number(f, 4)));
	world_ok(read_anywhere(f, v, 8));
	world_ok(read_anywhere(choir_replica_current()->frame, v, 8));
	choir_frame_clear(choir_replica_current()->frame);
	CHOIR_SCOPE (strategy)
		world_ok(read_anywhere(f, v, 8));
	world_ok(choir_strategy_run(strategy, read_in_replica, v, NULL, NULL));
	choir_frame_free(f);
	choir_strategy_free(strategy);
}

static choir_variable *found[8][3];

static choir_status make_with_numbers(choir_replica *r, void *user)
{
	(void) user;
	const int id = choir_replica_id(r);
	char name[64];
	snprintf(name, sizeof name, "layer_%d/part_%d/w", id + 1, 10 * id);
	found[id][0] = choir_variable_new(name, CHOIR_SHAPE(2), NULL);
	snprintf(name, sizeof name, "w_%d", 10 + id);
	found[id][1] = choir_variable_new(name, CHOIR_SHAPE(2), NULL);
	// As "w_11" is "w", so the second "w" is another one: they are found in their order.
	snprintf(name, sizeof name, "w_%d", 100 + id);
	found[id][2] = choir_variable_new(name, CHOIR_SHAPE(2), NULL);
	return CHOIR_OK;
}

static choir_status make_with_shapes(choir_replica *r, void *user)
{
	(void) user;
	const int id = choir_replica_id(r);
	char name[64];
	snprintf(name, sizeof name, "b_%d", id);
	choir_variable_new(name, CHOIR_SHAPE(id == 1 ? 3 : 2), NULL);
	return CHOIR_OK;
}

static choir_status make_other_names(choir_replica *r, void *user)
{
	static const char *const names[][2] = { { "x_1", "x_1a" }, { "x_", "x" }, { "x1", "x2" },
		{ "x_1_2", "x" }, { "a_1b/x", "ab/x" } };
	choir_variable_new(names[*(int *) user][choir_replica_id(r) > 0], CHOIR_SHAPE(2), NULL);
	return CHOIR_OK;
}

static void find_by_canonical_name(void)
{
	world_ok(choir_strategy_run(strategy, make_with_numbers, NULL, NULL, NULL));
	for (int i = 0; i < replicas; i++)
		for (int k = 0; k < 3; k++)
			assert_ptr_equal(found[i][k], found[0][k]);
	assert_ptr_not_equal(found[0][1], found[0][2]);
	assert_string_equal(choir_variable_name(found[0][0]), "layer_1/part_0/w"); // replica 0's
	assert_string_equal(choir_variable_name(found[0][2]), "w_100");
	if (replicas == 1)
		return;
	world_failed(choir_strategy_run(strategy, make_with_shapes, NULL, NULL, NULL), CHOIR_STATE,
			"the creation of variable \"b_", "replica 1");
	for (int how = 0; how < 5; how++)
		world_failed(choir_strategy_run(strategy, make_other_names, &how, NULL, NULL), CHOIR_STATE,
				"the creation of variable \"", NULL);
}

// spec: E7, M3, 2.3
TEST(numbers_in_names_do_not_matter)
{
	world_on_every_deal(&strategy, &replicas, 1, find_by_canonical_name);
}

static void look_at_copies(void)
{
	choir_variable *v = make("scope/v", CHOIR_F32, false, CHOIR_AGGREGATION_NONE);
	choir_variable *part = make("part", CHOIR_F32, true, CHOIR_AGGREGATION_SUM);
	assert_int_equal(choir_variable_copies(part), replicas);
	choir_variable *const both[] = { v, part };
	for (int k = 0; k < 2; k++)
		for (int i = 0; i < choir_variable_copies(both[k]); i++) {
			char name[64];
			snprintf(name, sizeof name, i == 0 ? "%s" : "%s/replica_%d",
					choir_variable_name(both[k]), i);
			assert_string_equal(choir_variable_copy_name(both[k], i), name);
			assert_non_null(choir_variable_device(both[k], i));
		}
	assert_null(choir_variable_copy_name(v, -1));
	assert_null(choir_variable_copy_name(v, choir_variable_copies(v)));
	assert_null(choir_variable_copy_name(NULL, 0));
	assert_null(choir_variable_device(v, choir_variable_copies(v)));
	// One by one, as local results of the variable as a value.
	world_ok(choir_variable_assign(part, choir_number(choir_strategy_cross(strategy)->frame, 6)));
	choir_values *set = choir_values_new(strategy);
	world_ok(choir_values_set(set, "part", choir_variable_as_value(part)));
	choir_value *value = choir_values_find(set, "part");
	assert_int_equal(choir_value_local_count(value), replicas);
	double sum = 0;
	for (int i = 0; i < replicas; i++)
		sum += sum_of(choir_value_local(value, i));
	assert_float_equal((float) sum, 12, 1e-5);
	choir_values_free(set);
	choir_frame_clear(choir_strategy_cross(strategy)->frame);
}

// spec: A15, B23, 2.3
TEST(copies_one_by_one)
{
	world_on_every_deal(&strategy, &replicas, 1, look_at_copies);
}

// ---- Parts of several groups.

typedef struct {
	choir_variable *part, *mirrored;
} means;

typedef struct {
	const means *all;
	int worker;
	bool last;
} one_worker;

// Each replica's part is the number of its worker; the last one's write the mirrored one, too.
static choir_status assign_numbers(choir_replica *r, void *user)
{
	const one_worker *w = user;
	choir_frame *f = r->frame;
	CHOIR_TRY(choir_variable_assign(
			w->all->part, choir_fill(f, CHOIR_F32, CHOIR_SCALAR, w->worker)));
	choir_tensor *id = choir_fill(f, CHOIR_F32, CHOIR_SCALAR, choir_replica_id(r));
	return w->last ? choir_variable_assign(w->all->mirrored, id) : CHOIR_OK;
}

static choir_status assign_by_worker(choir_strategy *group, int worker, void *user)
{
	one_worker w = { user, worker, worker + 1 == choir_strategy_workers(group) };
	return choir_strategy_run(group, assign_numbers, &w, NULL, NULL);
}

static double number_of(choir_variable *v, choir_frame *f)
{
	return choir_tensor_number(choir_variable_read(v, f));
}

// The mean of all workers' parts is over all of them; that of what is mirrored over the replicas
// of the worker that writes it, here the smaller one.
TEST(means_of_workers)
{
	for (int n = 2; n < 6; n++) {
		choir_strategy *s =
				choir_parameter_server_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
						.workers = 2, .replicas = n, .devices = n % 2 == 0 ? "cpu:0" : "far:0"));
		means m = { NULL, NULL };
		m.part = world_variable(s, "part", CHOIR_SCALAR,
				CHOIR_OPTIONS(choir_variable_options,
						.synchronization = CHOIR_SYNCHRONIZATION_ON_READ,
						.aggregation = CHOIR_AGGREGATION_MEAN));
		m.mirrored = world_variable(s, "mirrored", CHOIR_SCALAR,
				CHOIR_OPTIONS(choir_variable_options, .aggregation = CHOIR_AGGREGATION_MEAN));
		world_ok(choir_strategy_run_workers(s, assign_by_worker, &m));
		const int last = n / 2;
		choir_frame *f = choir_frame_new(NULL);
		assert_true(fabs(number_of(m.part, f) - (double) last / n) < 1e-6);
		assert_true(number_of(m.mirrored, f) == (double) (last - 1) / 2);
		choir_frame_free(f);
		choir_strategy_free(s);
	}
}

TEST_BEFORE(world_watch)
