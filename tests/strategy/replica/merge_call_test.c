// Merge calls: what the merge function sees, what it gives back, what it may call, and runs inside
// it.
#include "choir/op.h"

#include "strategy/world.h"
#include "test.h"

#include <stdatomic.h>
#include <string.h>

static choir_variable *weight;

static choir_variable *make_weight(choir_strategy *s)
{
	choir_variable *v = NULL;
	CHOIR_SCOPE (s)
		v = choir_variable_new("weight", CHOIR_SHAPE(2),
				CHOIR_OPTIONS(choir_variable_options, .initializer = CHOIR_INITIALIZER_ONES));
	assert_non_null(v);
	return v;
}

static choir_status look(choir_cross *x, void *user)
{
	const int n = choir_strategy_replicas(choir_cross_strategy(x));
	choir_value *same = choir_cross_arg(x, "same"), *own = choir_cross_arg(x, "own");
	choir_value *variable = choir_cross_arg(x, "variable");
	++*(int *) user;
	WORLD_NEED(choir_in_cross_replica_context());
	WORLD_NEED(choir_replica_current() == NULL);
	WORLD_NEED(choir_strategy_current() == choir_cross_strategy(x));
	WORLD_NEED(choir_strategy_cross(choir_cross_strategy(x)) == x);
	WORLD_NEED(choir_value_kind_of(same) == CHOIR_VALUE_PLAIN);
	WORLD_NEED((int) choir_tensor_number(choir_value_tensor(same)) == 3);
	WORLD_NEED(choir_value_kind_of(own) == CHOIR_VALUE_PER_REPLICA);
	WORLD_NEED(choir_value_local_count(own) == n);
	for (int i = 0; i < n; i++) {
		choir_tensor *t = choir_value_local(own, i);
		WORLD_NEED(choir_tensor_frame(t) == x->frame);
		WORLD_NEED((int) choir_tensor_number(choir_sum(t, CHOIR_ALL_AXES)) == 2 * i);
	}
	WORLD_NEED(choir_value_variable(variable) == weight);
	choir_cross_return(x, "same", same);
	choir_cross_return(x, "own", own);
	choir_cross_return(x, "variable", variable);
	return choir_cross_return(x, "new", choir_tensor_as_value(choir_number(x->frame, 11)));
}

static choir_status give_all_kinds(choir_replica *r, void *user)
{
	const int id = choir_replica_id(r);
	choir_replica_set_arg(r, "own", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 99));
	// Replaces.
	choir_replica_set_arg(r, "own", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), id));
	choir_replica_set_arg(r, "same", choir_number(r->frame, 3));
	choir_replica_set_arg(r, "variable", choir_variable_component(weight, r->frame));
	CHOIR_TRY(choir_replica_merge_call(r, look, user));
	choir_tensor *own = choir_replica_result(r, "own");
	WORLD_NEED((int) choir_tensor_number(choir_sum(own, CHOIR_ALL_AXES)) == 2 * id);
	WORLD_NEED((int) choir_tensor_number(choir_replica_result(r, "same")) == 3);
	WORLD_NEED((int) choir_tensor_number(choir_replica_result(r, "new")) == 11);
	WORLD_NEED(choir_tensor_variable(choir_replica_result(r, "variable")) == weight);
	return CHOIR_OK;
}

// spec: A3, A4, A5, C6, C15, C28, M14, 2.1, 2.6
TEST(all_kinds_of_leaves)
{
	for (int i = 0; i < world_deal_count; i++) {
		choir_strategy *s = world_new(world_deals[i].replicas, world_deals[i].devices, 0);
		weight = make_weight(s);
		int calls = 0;
		for (int k = 0; k < 3; k++)
			world_ok(choir_strategy_run(s, give_all_kinds, &calls, NULL, NULL));
		assert_int_equal(calls, 3);
		choir_strategy_free(s);
	}
}

static choir_status pass_on(choir_cross *x, void *user)
{
	(void) user;
	choir_tensor *first = choir_value_local(choir_cross_arg(x, "x"), 0);
	return choir_cross_return(x, "x", choir_tensor_as_value(first));
}

// The memory that replica 0 lends dies with its function, which may return before others look.
static choir_status lend(choir_replica *r, void *user)
{
	(void) user;
	float memory[2] = { (float) (5 + choir_replica_id(r)), 0 };
	choir_replica_set_arg(r, "x", choir_borrow(r->frame, CHOIR_F32, CHOIR_SHAPE(2), memory));
	memory[1] = 77; // what is given is copied
	CHOIR_TRY(choir_replica_merge_call(r, pass_on, NULL));
	memory[0] = 77;
	choir_tensor *t = choir_replica_result(r, "x");
	WORLD_NEED((int) choir_tensor_number(choir_sum(t, CHOIR_ALL_AXES)) == 5);
	return choir_replica_return(r, "x", t);
}

TEST(borrowed_memory_is_copied)
{
	for (int i = 0; i < world_deal_count; i++) {
		choir_strategy *s = world_new(world_deals[i].replicas, world_deals[i].devices, 0);
		choir_values *results = NULL;
		for (int k = 0; k < 5; k++)
			world_ok(choir_strategy_run(s, lend, NULL, NULL, &results));
		choir_values_free(results);
		choir_strategy_free(s);
	}
}

typedef struct {
	int depth, deepest;
	atomic_int runs;
	bool by_strategy; // choir_strategy_run, not choir_cross_run
	int fails_at;
} nest;

static choir_status descend(choir_replica *r, void *user);

static choir_status run_inside(choir_cross *x, void *user)
{
	nest *n = user;
	n->depth++;
	choir_status status = CHOIR_INTERNAL;
	if (n->by_strategy) {
		CHOIR_SCOPE (choir_cross_strategy(x)) // a scope inside stays inside the merge call
			status = choir_strategy_run(choir_cross_strategy(x), descend, n, NULL, NULL);
	} else {
		choir_cross_set_arg(x, "v", choir_cross_arg(x, "v"));
		status = choir_cross_run(x, descend, n);
		choir_value *sum = status == CHOIR_OK ? choir_cross_result(x, "v") : NULL;
		if (status == CHOIR_OK)
			status = choir_cross_return(x, "v", sum);
	}
	n->depth--;
	return status;
}

static choir_status descend(choir_replica *r, void *user)
{
	nest *n = user;
	const int depth = n->depth; // changes only while all wait
	n->runs++;
	choir_tensor *v = depth == 0 || n->by_strategy
			? choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), choir_replica_id(r))
			: choir_replica_arg(r, "v");
	v = choir_add(v, choir_number(r->frame, 1));
	if (depth == n->fails_at && choir_replica_id(r) == choir_replica_count(r) - 1)
		return choir_fail(CHOIR_IO, "deep down");
	choir_replica_set_arg(r, "v", v);
	if (depth < n->deepest) {
		CHOIR_TRY(choir_replica_merge_call(r, run_inside, n));
		if (!n->by_strategy)
			v = choir_replica_result(r, "v");
	}
	if (choir_replica_all_reduce(r, CHOIR_SUM, v) == NULL)
		return choir_error_status();
	return choir_replica_return(r, "v", v);
}

enum { DEEPEST = 4 };

// spec: 2.1
TEST(runs_inside_merge_functions)
{
	for (int i = 0; i < world_deal_count; i++) {
		const int replicas = world_deals[i].replicas;
		choir_strategy *s = world_new(replicas, world_deals[i].devices, 0);
		choir_values *results = NULL;
		for (int by_strategy = 0; by_strategy < 2; by_strategy++)
			for (int k = 0; k < 2; k++) {
				nest n = { .deepest = DEEPEST, .by_strategy = by_strategy == 1, .fails_at = -1 };
				world_ok(choir_strategy_run(s, descend, &n, NULL, &results));
				assert_int_equal(n.runs, (DEEPEST + 1) * replicas);
				for (int r = 0; r < replicas; r++) {
					choir_tensor *t = choir_value_local(choir_values_find(results, "v"), r);
					assert_int_equal((int) choir_tensor_number(choir_sum(t, CHOIR_ALL_AXES)),
							2 * (r + (by_strategy ? 1 : DEEPEST + 1)));
				}
			}
		choir_values_free(results);
		choir_strategy_free(s);
	}
}

// It travels outward through every level, with its own text.
// spec: 2.1
TEST(a_failure_deep_down)
{
	for (int i = 0; i < world_deal_count; i++) {
		choir_strategy *s = world_new(world_deals[i].replicas, world_deals[i].devices, 0);
		for (int by_strategy = 0; by_strategy < 2; by_strategy++)
			for (int at = 0; at <= DEEPEST; at++) {
				nest n = { .deepest = DEEPEST, .by_strategy = by_strategy == 1, .fails_at = at };
				world_failed(choir_strategy_run(s, descend, &n, NULL, NULL), CHOIR_IO, "deep down",
						NULL);
			}
		world_works(s);
		choir_strategy_free(s);
	}
}

static choir_status fail_inside(choir_replica *r, void *user)
{
	(void) r, (void) user;
	return choir_fail(CHOIR_IO, "inside");
}

static choir_status fine_inside(choir_replica *r, void *user)
{
	(void) user;
	return choir_replica_return(r, "id", choir_number(r->frame, choir_replica_id(r)));
}

// Handled by the merge function: the nested run is over, the outer one goes on.
static choir_status handle(choir_cross *x, void *user)
{
	(void) user;
	choir_strategy *s = choir_cross_strategy(x);
	WORLD_NEED(choir_strategy_run(s, fail_inside, NULL, NULL, NULL) == CHOIR_IO);
	choir_values *results = NULL;
	CHOIR_TRY(choir_strategy_run(s, fine_inside, NULL, NULL, &results));
	WORLD_NEED((int) world_number_of(results, "id", choir_strategy_replicas(s) - 1) ==
			choir_strategy_replicas(s) - 1);
	choir_values_free(results);
	return CHOIR_OK;
}

static choir_status call_handle(choir_replica *r, void *user)
{
	CHOIR_TRY(choir_replica_merge_call(r, handle, user));
	choir_tensor *one = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(5000), 1);
	choir_tensor *sum = choir_replica_all_reduce(r, CHOIR_SUM, one);
	return choir_replica_return(r, "sum", sum);
}

// spec: 2.1
TEST(a_nested_failure_may_be_handled)
{
	for (int i = 0; i < world_deal_count; i++) {
		choir_strategy *s = world_new(world_deals[i].replicas, world_deals[i].devices, 0);
		world_ok(choir_strategy_run(s, call_handle, NULL, NULL, NULL));
		world_works(s);
		choir_strategy_free(s);
	}
}

static choir_status misuse(choir_cross *x, void *user)
{
	choir_strategy *other = user;
	choir_scope scope;
	WORLD_NEED(choir_strategy_run(other, fine_inside, NULL, NULL, NULL) == CHOIR_STATE);
	WORLD_NEED(text_holds(choir_error(), "strategies"));
	WORLD_NEED(choir_scope_enter(&scope, other) == CHOIR_STATE);
	WORLD_NEED(choir_strategy_set_current(NULL) == CHOIR_STATE);
	WORLD_NEED(choir_cross_run(x, NULL, NULL) == CHOIR_INVALID);
	WORLD_NEED(choir_frame_status(x->frame) == CHOIR_INVALID); // which stays, and fails the merge
	WORLD_NEED(choir_cross_return(NULL, "x", NULL) == CHOIR_INVALID);
	WORLD_NEED(choir_cross_set_arg(NULL, "x", NULL) == CHOIR_INVALID);
	WORLD_NEED(choir_cross_arg(NULL, "x") == NULL && choir_cross_result(NULL, "x") == NULL);
	WORLD_NEED(choir_cross_strategy(NULL) == NULL);
	return CHOIR_OK;
}

static choir_status call_misuse(choir_replica *r, void *user)
{
	return choir_replica_merge_call(r, misuse, user);
}

// spec: 2.2, 2.19
TEST(misuse_in_merge_functions)
{
	choir_strategy *s = world_new(2, "cpu:0,cpu:1", 0), *other = world_new(1, "cpu:0", 0);
	world_failed(choir_strategy_run(s, call_misuse, other, NULL, NULL), CHOIR_INVALID,
			"run: the function is NULL", NULL);
	world_works(s);
	choir_strategy_free(s);
	choir_strategy_free(other);
}

static choir_status add_own(choir_replica *r, void *user)
{
	(void) user;
	choir_tensor *x = choir_replica_arg(r, "x");
	return choir_replica_return(r, "y", choir_add(x, choir_number(r->frame, choir_replica_id(r))));
}

// The program's own context: give, run, take, with no merge call in sight.
// spec: A9, B11, C15, 2.2
TEST(the_programs_own_context)
{
	for (int i = 0; i < world_deal_count; i++) {
		const int n = world_deals[i].replicas;
		choir_strategy *s = world_new(n, world_deals[i].devices, 0);
		choir_cross *x = choir_strategy_cross(s);
		assert_ptr_equal(choir_strategy_cross(s), x);
		for (int k = 0; k < 3; k++) {
			choir_frame_clear(x->frame);
			choir_tensor *ten = choir_fill(x->frame, CHOIR_F32, CHOIR_SHAPE(3), 10);
			world_ok(choir_cross_set_arg(x, "x", choir_tensor_as_value(ten)));
			world_ok(choir_cross_run(x, add_own, NULL));
			choir_value *y = choir_cross_result(x, "y");
			assert_int_equal(choir_value_local_count(y), n);
			choir_tensor *sum = choir_cross_reduce(x, CHOIR_SUM, y, CHOIR_ALL_AXES);
			assert_int_equal((int) choir_tensor_number(sum), 30 * n + 3 * n * (n - 1) / 2);
			choir_tensor *all = choir_cross_gather(x, y, -1);
			assert_int_equal(choir_tensor_shape(all)->dim[0], 3 * n);
		}
		assert_int_equal(choir_cross_run(x, add_own, NULL), CHOIR_NOT_FOUND); // nothing was given
		choir_strategy_free(s);
	}
}

// Adds its id to all elements, when the memory of what was freed before has been used again.
static choir_status spoil_and_add(choir_replica *r, void *user)
{
	WORLD_NEED(choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(1000), 77) != NULL);
	return add_own(r, user);
}

static choir_status chain(choir_cross *x, void *user)
{
	(void) user;
	choir_tensor *ten = choir_fill(x->frame, CHOIR_F32, CHOIR_SHAPE(1000), 10);
	CHOIR_TRY(choir_cross_set_arg(x, "x", choir_tensor_as_value(ten)));
	for (int i = 0; i < 3; i++) {
		CHOIR_TRY(choir_cross_run(x, spoil_and_add, NULL));
		choir_value *y = choir_cross_result(x, "y");
		CHOIR_TRY(choir_cross_return(x, i == 0 ? "first" : "last", y));
		CHOIR_TRY(choir_cross_set_arg(x, "x", y));
	}
	return CHOIR_OK;
}

static choir_status chain_in_merge(choir_replica *r, void *user)
{
	CHOIR_TRY(choir_replica_merge_call(r, chain, user));
	const double id = choir_replica_id(r);
	choir_tensor *first = choir_mean(choir_replica_result(r, "first"), CHOIR_ALL_AXES);
	choir_tensor *last = choir_mean(choir_replica_result(r, "last"), CHOIR_ALL_AXES);
	WORLD_NEED(choir_tensor_number(first) == 10 + id);
	WORLD_NEED(choir_tensor_number(last) == 10 + 3 * id);
	return CHOIR_OK;
}

// What one run returned is the next one's argument, and what replicas take after the last.
TEST(what_was_taken_is_given_and_returned)
{
	for (int i = 0; i < world_deal_count; i++) {
		const int n = world_deals[i].replicas;
		choir_strategy *s = world_new(n, world_deals[i].devices, 0);
		choir_cross *x = choir_strategy_cross(s);
		world_ok(chain(x, NULL));
		choir_tensor *sum =
				choir_cross_reduce(x, CHOIR_SUM, choir_cross_result(x, "y"), CHOIR_ALL_AXES);
		assert_int_equal((int) choir_tensor_number(sum), 10000 * n + 3000 * n * (n - 1) / 2);
		world_ok(choir_strategy_run(s, chain_in_merge, NULL, NULL, NULL));
		choir_strategy_free(s);
	}
}

static choir_status merge_default(choir_cross *x, void *user)
{
	++*(int *) user;
	WORLD_NEED(choir_in_cross_replica_context() && choir_replica_current() == NULL);
	WORLD_NEED(choir_strategy_current() == choir_default_strategy());
	WORLD_NEED(choir_cross_strategy(x) == choir_default_strategy());
	choir_value *v = choir_cross_arg(x, "v");
	return choir_cross_return(x, "v", choir_cross_reduce_to(x, CHOIR_SUM, v, v));
}

static choir_status fail_default(choir_cross *x, void *user)
{
	(void) x, (void) user;
	return choir_fail(CHOIR_IO, "not today");
}

// Outside any strategy there is the default replica, 0 of 1, whose merge calls work, also after
// one failed.
// spec: A10, C5, C6, 2.1, 2.2
TEST(the_default_replica)
{
	choir_replica *r = choir_replica_current();
	assert_non_null(r);
	assert_int_equal(choir_replica_id(r), 0);
	assert_int_equal(choir_replica_count(r), 1);
	assert_ptr_equal(choir_replica_strategy(r), choir_default_strategy());
	assert_false(choir_has_strategy());
	assert_false(choir_in_cross_replica_context());
	int calls = 0;
	for (int i = 0; i < 4; i++) {
		choir_replica_set_arg(r, "v", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), i));
		world_ok(choir_replica_merge_call(r, merge_default, &calls));
		choir_tensor *v = choir_replica_result(r, "v");
		assert_int_equal((int) choir_tensor_number(choir_sum(v, CHOIR_ALL_AXES)), 2 * i);
		assert_ptr_equal(choir_tensor_frame(choir_replica_all_reduce(r, CHOIR_MEAN, v)), r->frame);
		assert_int_equal(choir_tensor_shape(choir_replica_all_gather(r, v, 0))->dim[0], 2);
		world_failed(choir_replica_merge_call(r, fail_default, NULL), CHOIR_IO, "not today", NULL);
		assert_null(choir_replica_all_reduce(r, CHOIR_SUM, v)); // the frame has failed
		choir_frame_clear(r->frame);
	}
	assert_int_equal(calls, 4);
	world_works(choir_default_strategy());
	assert_ptr_equal(choir_replica_current(), r);
}

static choir_status return_what_is_read(choir_cross *x, void *user)
{
	return choir_cross_return(x, "v", choir_tensor_as_value(choir_variable_read(user, x->frame)));
}

// On one device replica 0 takes, writes its part, which is what was read, and returns before
// replica 1 takes.
static choir_status write_what_was_taken(choir_replica *r, void *user)
{
	choir_variable *v = user;
	CHOIR_TRY(choir_variable_assign(v, choir_number(r->frame, 10 + choir_replica_id(r))));
	CHOIR_TRY(choir_replica_merge_call(r, return_what_is_read, user));
	choir_tensor *taken = choir_replica_result(r, "v");
	WORLD_NEED(taken != NULL && choir_tensor_number(taken) == 10);
	return choir_variable_assign(v, choir_number(r->frame, 0));
}

// spec: 2.1, 2.4
TEST(a_part_is_taken_as_it_was)
{
	for (int i = 0; i < world_deal_count; i++) {
		choir_strategy *s = world_new(world_deals[i].replicas, world_deals[i].devices, 20);
		choir_variable *v = NULL;
		CHOIR_SCOPE (s)
			v = choir_variable_new("v", CHOIR_SCALAR,
					CHOIR_OPTIONS(choir_variable_options,
							.synchronization = CHOIR_SYNCHRONIZATION_ON_READ,
							.aggregation = CHOIR_AGGREGATION_ONLY_FIRST_REPLICA));
		assert_non_null(v);
		world_ok(choir_strategy_run(s, write_what_was_taken, v, NULL, NULL));
		choir_strategy_free(s);
	}
}

TEST_BEFORE(world_watch)
