// Scopes: what they govern, how they nest, and what happens when they are left in another order.
#include "choir/op.h"

#include "strategy/world.h"
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static choir_strategy *s;

static int make_strategy(void **state)
{
	(void) state;
	s = world_new(2, "cpu:0,cpu:1", 0);
	return 0;
}

static int free_strategy(void **state)
{
	(void) state;
	choir_strategy_free(s);
	return 0;
}

// spec: A9, A10, B31, C2
TEST_WITHIN(a_scope_is_current, make_strategy, free_strategy)
{
	choir_scope outer, inner;
	assert_ptr_equal(choir_strategy_current(), choir_default_strategy());
	world_ok(choir_scope_enter(&outer, s));
	assert_ptr_equal(choir_strategy_current(), s);
	assert_true(choir_has_strategy());
	assert_true(choir_in_cross_replica_context());
	assert_null(choir_replica_current());
	world_ok(choir_scope_enter(&inner, s)); // again is fine
	world_ok(choir_scope_exit(&inner));
	assert_ptr_equal(choir_strategy_current(), s);
	world_works(s); // runs in it
	world_ok(choir_scope_exit(&outer));
	assert_ptr_equal(choir_strategy_current(), choir_default_strategy());
	assert_false(choir_has_strategy());
	assert_non_null(choir_replica_current());
}

// spec: B31, E3, E5, 2.2, 2.19
TEST_WITHIN(scopes_of_two_strategies_do_not_mix, make_strategy, free_strategy)
{
	choir_strategy *other = world_new(1, "cpu:0", 0);
	choir_scope scope, inner;
	world_ok(choir_scope_enter(&scope, s));
	char one[32], two[32]; // which of two mirrored strategies is which
	world_failed(choir_scope_enter(&inner, other), CHOIR_STATE, "mixing strategies", NULL);
	assert_int_equal(sscanf(choir_error(), "%*[^#]%31[#0-9],%*[^#]%31s", one, two), 2);
	assert_string_not_equal(one, two);
	world_failed(choir_scope_exit(&inner), CHOIR_STATE, "not entered", NULL);
	world_failed(choir_scope_enter(&inner, choir_default_strategy()), CHOIR_STATE,
			"default strategy's scope", NULL);
	assert_ptr_equal(choir_strategy_current(), s);
	assert_null(choir_strategy_cross(other));
	assert_int_equal(choir_error_status(), CHOIR_STATE);
	world_failed(choir_strategy_set_current(other), CHOIR_STATE, "inside a scope", NULL);
	world_ok(choir_scope_exit(&scope));
	world_ok(choir_scope_enter(&scope, choir_default_strategy()));
	world_failed(choir_scope_enter(&inner, s), CHOIR_STATE, "mixing strategies", NULL);
	world_ok(choir_scope_exit(&scope));
	world_failed(choir_scope_enter(&scope, NULL), CHOIR_INVALID, "NULL", NULL);
	choir_strategy_free(other);
}

// spec: B31, E5, M25, 2.2, 2.19
TEST_WITHIN(exit_out_of_order, make_strategy, free_strategy)
{
	choir_scope outer, inner, colocated;
	world_ok(choir_scope_enter(&outer, s));
	choir_variable *v = choir_variable_new("v", CHOIR_SCALAR, NULL);
	world_ok(choir_scope_replica_local(&inner, CHOIR_AGGREGATION_SUM));
	world_ok(choir_scope_colocate(&colocated, choir_variable_as_value(v)));
	world_failed(choir_scope_exit(&outer), CHOIR_STATE, "still open", NULL);
	world_failed(choir_scope_exit(&inner), CHOIR_STATE, "still open", NULL);
	world_ok(choir_scope_exit(&colocated)); // the scopes stayed entered
	world_ok(choir_scope_exit(&inner));
	world_ok(choir_scope_exit(&outer));
	world_failed(choir_scope_exit(&outer), CHOIR_STATE, "not entered", NULL);
}

// spec: A47, C24, V4
TEST_WITHIN(what_scopes_make, make_strategy, free_strategy)
{
	choir_variable_options o = { .size = sizeof o };
	choir_scope outer, local;
	const choir_variable *outside = choir_variable_new("outside", CHOIR_SCALAR, NULL);
	world_ok(choir_scope_enter(&outer, s));
	choir_variable *v = choir_variable_new("v", CHOIR_SCALAR, NULL);
	world_ok(choir_scope_replica_local(&local, CHOIR_AGGREGATION_MEAN));
	choir_variable *l = choir_variable_new("l", CHOIR_SCALAR, // the scope's word counts
			CHOIR_OPTIONS(choir_variable_options, .trainable = CHOIR_ON,
					.aggregation = CHOIR_AGGREGATION_SUM));
	world_ok(choir_scope_exit(&local));
	choir_variable *w = choir_variable_new("w", CHOIR_SCALAR, NULL);
	world_ok(choir_scope_exit(&outer));
	world_ok(choir_variable_describe(l, &o));
	assert_int_equal(o.synchronization, CHOIR_SYNCHRONIZATION_ON_READ);
	assert_int_equal(o.aggregation, CHOIR_AGGREGATION_MEAN);
	assert_int_equal(o.trainable, CHOIR_OFF);
	assert_int_equal(choir_variable_copies(l), 2);
	assert_int_equal(choir_variable_copies(v), 1);
	world_ok(choir_variable_describe(w, &o));
	assert_int_equal(o.synchronization, CHOIR_SYNCHRONIZATION_ON_WRITE);
	assert_true(choir_strategy_variable_created_in_scope(s, w));
	assert_non_null(outside);
	assert_false(choir_strategy_variable_created_in_scope(s, outside));
	assert_true(choir_strategy_variable_created_in_scope(choir_default_strategy(), outside));
	assert_false(choir_strategy_variable_created_in_scope(NULL, w));
	assert_false(choir_strategy_variable_created_in_scope(s, NULL));
}

// spec: A37, C21, E4, E24, 2.2, 2.19
TEST_WITHIN(what_needs_a_scope, make_strategy, free_strategy)
{
	choir_strategy *other = world_new(1, "cpu:0", 0);
	choir_scope scope, colocated;
	choir_variable *nobodys = choir_variable_new("nobody's", CHOIR_SCALAR, NULL);
	world_ok(choir_scope_enter(&scope, other));
	choir_variable *foreign = choir_variable_new("foreign", CHOIR_SCALAR, NULL);
	world_ok(choir_scope_exit(&scope));
	world_failed(choir_scope_colocate(&colocated, choir_variable_as_value(foreign)), CHOIR_STATE,
			"colocate*scope", NULL);
	world_failed(choir_scope_replica_local(&colocated, CHOIR_AGGREGATION_SUM), CHOIR_STATE,
			"replica_local*scope", NULL);
	world_ok(choir_scope_enter(&scope, s));
	world_failed(choir_scope_colocate(&colocated, choir_variable_as_value(foreign)), CHOIR_INVALID,
			"\"foreign\"*another strategy", NULL);
	world_failed(choir_scope_colocate(&colocated, choir_variable_as_value(nobodys)), CHOIR_INVALID,
			"\"nobody's\"*another strategy", NULL);
	world_failed(choir_scope_colocate(&colocated, NULL), CHOIR_INVALID, "needs a variable", NULL);
	world_ok(choir_scope_exit(&scope));
	choir_strategy_free(other);
}

static int return_from_scopes(int where)
{
	CHOIR_SCOPE (s) {
		if (where == 0)
			return 0;
		CHOIR_SCOPE (s) {
			if (where == 1)
				return 1;
		}
		if (where == 2)
			break;
		return 3;
	}
	return 4;
}

// spec: B31, C2
TEST_WITHIN(blocks_are_left_whichever_way, make_strategy, free_strategy)
{
	static const int expected[] = { 0, 1, 4, 3 };
	for (int where = 0; where < 4; where++) {
		assert_int_equal(return_from_scopes(where), expected[where]);
		assert_ptr_equal(choir_strategy_current(), choir_default_strategy());
	}
	int times = 0;
	CHOIR_SCOPE (s)
		times++;
	CHOIR_SCOPE (s) {
		CHOIR_SCOPE (choir_default_strategy())
			times += 100; // cannot be entered: the block is skipped
	}
	assert_int_equal(times, 1);
	assert_ptr_equal(choir_strategy_current(), choir_default_strategy());
}

static void *look(void *user)
{
	*(choir_strategy **) user = choir_strategy_current();
	return NULL;
}

// spec: 2.2
TEST_WITHIN(a_scope_is_its_threads, make_strategy, free_strategy)
{
	choir_strategy *seen = NULL;
	pthread_t id;
	CHOIR_SCOPE (s) {
		pthread_create(&id, NULL, look, &seen);
		pthread_join(id, NULL);
	}
	assert_ptr_equal(seen, choir_default_strategy());
}

// spec: D24, E5, 2.19
TEST_WITHIN(set_current_without_a_block, make_strategy, free_strategy)
{
	choir_strategy *other = world_new(1, "cpu:0", 0);
	choir_scope scope;
	world_ok(choir_strategy_set_current(s));
	assert_ptr_equal(choir_strategy_current(), s);
	assert_true(choir_in_cross_replica_context());
	assert_null(choir_replica_current());
	world_works(s);
	choir_variable *v = choir_variable_new("v", CHOIR_SCALAR, NULL);
	assert_true(choir_strategy_variable_created_in_scope(s, v));
	world_failed(choir_scope_enter(&scope, other), CHOIR_STATE, "another strategy (\"mirrored\" #",
			NULL);
	assert_null(choir_strategy_cross(other));
	world_ok(choir_scope_enter(&scope, s));
	world_ok(choir_scope_exit(&scope));
	world_ok(choir_strategy_set_current(other));
	choir_strategy_free(other); // is current no more
	assert_ptr_equal(choir_strategy_current(), choir_default_strategy());
	world_ok(choir_strategy_set_current(NULL));
}

TEST_BEFORE(world_watch)
