// Updates: once for each copy, slots beside the target writable and others not, and what a failure
// leaves.
#include "choir/op.h"

#include "strategy/strategy.h"
#include "strategy/world.h"
#include "test.h"

#include <string.h>

static choir_strategy *strategy;
static int replicas;
static choir_variable *target, *slot, *other, *others_slot;

static void on_every_deal(void (*test)(void))
{
	for (int i = 0; i < world_deal_count; i++) {
		replicas = world_deals[i].replicas;
		strategy = world_new(replicas, world_deals[i].devices, 0);
		choir_scope scope, beside;
		world_ok(choir_scope_enter(&scope, strategy));
		target = choir_variable_new("target", CHOIR_SHAPE(3), NULL);
		other = choir_variable_new("other", CHOIR_SHAPE(3), NULL);
		world_ok(choir_scope_colocate(&beside, choir_variable_as_value(target)));
		slot = choir_variable_new("slot", CHOIR_SHAPE(3),
				CHOIR_OPTIONS(choir_variable_options, .initializer = CHOIR_INITIALIZER_ONES));
		world_ok(choir_scope_exit(&beside));
		world_ok(choir_scope_colocate(&beside, choir_variable_as_value(other)));
		others_slot = choir_variable_new("other/slot", CHOIR_SHAPE(3), NULL);
		world_ok(choir_scope_exit(&beside));
		world_ok(choir_scope_exit(&scope));
		assert_non_null(slot);
		assert_non_null(others_slot);
		test();
		world_works(strategy);
		choir_strategy_free(strategy);
	}
}

// The sum of a variable's elements, the same in all copies.
static int value_of(choir_variable *v)
{
	float host[3];
	world_ok(chi_variable_to_host(v, 0, host));
	for (int i = 1; i < choir_variable_copies(v); i++) {
		float again[3];
		world_ok(chi_variable_to_host(v, i, again));
		assert_memory_equal(again, host, sizeof host);
	}
	return (int) (host[0] + host[1] + host[2]);
}

typedef struct {
	int calls, copies; // a bit for each copy
	int how;
} tally;

static choir_status add_and_remember(choir_update *u, void *user)
{
	tally *t = user;
	t->calls++;
	t->copies |= 1 << choir_update_copy(u);
	choir_frame *f = u->frame;
	WORLD_NEED(choir_update_variable(u) == target);
	WORLD_NEED(choir_update_elements(u) == 3);
	WORLD_NEED(choir_in_cross_replica_context() && choir_replica_current() == NULL);
	WORLD_NEED(choir_strategy_current() == strategy);
	choir_tensor *g = choir_update_arg(u, "g"), *rate = choir_update_arg(u, "rate");
	choir_tensor *w = choir_update_arg(u, "w");
	WORLD_NEED(choir_tensor_variable(w) == target);
	WORLD_NEED(choir_tensor_frame(g) == f);
	CHOIR_TRY(choir_variable_assign_add(slot, g));
	choir_tensor *m = choir_variable_read(slot, f);
	CHOIR_TRY(choir_variable_assign_sub(target, choir_multiply(rate, choir_add(g, m))));
	choir_update_return(u, "copy", choir_number(f, choir_update_copy(u)));
	return choir_update_return(u, "new", choir_variable_read(target, f));
}

static choir_status sum_and_update(choir_cross *x, void *user)
{
	choir_value *g = choir_cross_arg(x, "g");
	CHOIR_TRY(choir_cross_set_arg(
			x, "g", choir_cross_reduce_to(x, CHOIR_SUM, g, choir_variable_as_value(target))));
	CHOIR_TRY(choir_cross_set_arg(x, "rate", choir_tensor_as_value(choir_number(x->frame, 2))));
	CHOIR_TRY(choir_cross_set_arg(x, "w", choir_variable_as_value(target)));
	CHOIR_TRY(choir_cross_update(x, target, NULL, add_and_remember, user));
	choir_value *copy = choir_cross_result(x, "copy");
	WORLD_NEED(choir_value_kind_of(copy) == CHOIR_VALUE_MIRRORED);
	WORLD_NEED(choir_value_local_count(copy) == choir_variable_copies(target));
	for (int i = 0; i < choir_value_local_count(copy); i++)
		WORLD_NEED((int) choir_tensor_number(choir_value_local(copy, i)) == i);
	return choir_cross_return(x, "new", choir_cross_result(x, "new"));
}

static choir_status train(choir_replica *r, void *user)
{
	choir_tensor *before = choir_variable_read(target, r->frame);
	WORLD_NEED(before != NULL);
	choir_replica_set_arg(r, "g", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), 1));
	CHOIR_TRY(choir_replica_merge_call(r, sum_and_update, user));
	choir_tensor *now = choir_variable_read(target, r->frame),
				 *new = choir_replica_result(r, "new");
	WORLD_NEED(choir_tensor_number(choir_sum(now, CHOIR_ALL_AXES)) ==
			choir_tensor_number(choir_sum(new, CHOIR_ALL_AXES)));
	return CHOIR_OK;
}

static void update_once_a_copy(void)
{
	const int copies = choir_variable_copies(target);
	int w = 0, m = 1;
	for (int k = 1; k < 4; k++) {
		tally t = { 0 };
		world_ok(choir_strategy_run(strategy, train, &t, NULL, NULL));
		assert_int_equal(t.calls, copies);
		assert_int_equal(t.copies, (1 << copies) - 1);
		m += replicas;
		w -= 2 * (replicas + m);
		assert_int_equal(value_of(slot), 3 * m);
		assert_int_equal(value_of(target), 3 * w);
	}
	assert_int_equal(value_of(other), 0);
}

// spec: A11, A23, A24, A25, A28, A37, A41, A43, B4, C16, C23, C25, M14, 2.6
TEST(once_for_each_copy)
{
	on_every_deal(update_once_a_copy);
}

static choir_status return_an_old_read(choir_update *u)
{
	choir_tensor *old = choir_variable_read(target, u->frame);
	CHOIR_TRY(choir_variable_assign(target, choir_fill(u->frame, CHOIR_F32, CHOIR_SHAPE(3), 0)));
	return choir_update_return(u, "x", old);
}

static choir_status misbehave(choir_update *u, void *user)
{
	const tally *t = user;
	choir_frame *f = u->frame;
	const bool last = choir_update_copy(u) == choir_variable_copies(target) - 1;
	switch (t->how) {
	case 0:
		return choir_variable_assign(other, choir_number(f, 1));
	case 1:
		world_unseen(choir_variable_assign_add(other, choir_number(f, 1)));
		return CHOIR_OK; // nobody looks
	case 2:
		choir_update_arg(u, "nothing");
		return CHOIR_OK;
	case 3:
		choir_update_data(u, other);
		return CHOIR_OK;
	case 4:
		world_unseen(choir_variable_assign(target, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2), 1)));
		return CHOIR_OK;
	case 5:
		return choir_variable_new("new", CHOIR_SCALAR, NULL) == NULL ? choir_error_status()
																	 : CHOIR_OK;
	case 6:
		return choir_strategy_run(strategy, train, NULL, NULL, NULL);
	case 7:
		return last ? choir_fail(CHOIR_IO, "the last copy") : CHOIR_OK;
	case 8:
		return CHOIR_UNSUPPORTED;
	case 9:
		return choir_update_return(u, "", choir_number(f, 1));
	case 10:
		return last ? CHOIR_OK : choir_update_return(u, "some", choir_number(f, 1));
	case 11:
		return choir_update_return(u, "x", NULL);
	case 13:
		return choir_variable_assign(others_slot, choir_number(f, 1));
	default:
		return return_an_old_read(u);
	}
}

static choir_status update_wrongly(choir_cross *x, void *user)
{
	return choir_cross_update(x, target, NULL, misbehave, user);
}

static choir_status call_wrongly(choir_replica *r, void *user)
{
	return choir_replica_merge_call(r, update_wrongly, user);
}

static void misuse_updates(void)
{
	struct {
		choir_status status;
		const char *text;
	} const expected[] = {
		{ CHOIR_INVALID, "\"other\" is not colocated" },
		{ CHOIR_INVALID, "\"other\" is not colocated" },
		{ CHOIR_NOT_FOUND, "update of \"target\"" },
		{ CHOIR_INVALID, "\"other\" is not colocated" },
		{ CHOIR_INVALID, "value has shape [2]" },
		{ CHOIR_STATE, "in an update function" },
		{ CHOIR_STATE, "not possible in an update function" },
		{ CHOIR_IO, "the last copy" },
		{ CHOIR_UNSUPPORTED, "update of \"target\": the function returned CHOIR_UNSUPPORTED" },
		{ CHOIR_INVALID, "a leaf needs a name" },
		{ CHOIR_INVALID, "the function returned no \"some\" for copy 1" },
		{ CHOIR_INVALID, "return" },
		{ CHOIR_STATE, "target: has changed since this tensor was read" },
		{ CHOIR_INVALID, "update of \"target\": variable \"other/slot\" is not colocated" },
	};
	for (int how = 0; how < 14; how++) {
		tally t = { .how = how };
		if (how == 10 && choir_variable_copies(target) == 1)
			continue;
		world_failed(choir_strategy_run(strategy, call_wrongly, &t, NULL, NULL),
				expected[how].status, expected[how].text, NULL);
		if (how == 4) // refused, so nothing was written
			assert_int_equal(value_of(target), 0);
		if (how != 12)
			continue;
		// It was written before it failed: undefined until assigned.
		choir_frame *f = choir_frame_new(NULL);
		assert_null(choir_variable_read(target, f));
		choir_frame_clear(f);
		world_ok(choir_variable_assign(target, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(3), 0)));
		assert_non_null(choir_variable_read(target, f));
		choir_frame_free(f);
	}
	assert_int_equal(value_of(target), 0); // nothing was written
	assert_int_equal(value_of(other), 0);
	assert_int_equal(value_of(others_slot), 0);
}

static choir_status add_half(choir_update *u, void *user)
{
	choir_variable *v = user;
	choir_tensor *one = choir_fill(u->frame, CHOIR_F16, CHOIR_SHAPE(2), 1);
	choir_tensor *row = choir_constant(u->frame, CHOIR_I32, CHOIR_SHAPE(2), (int32_t[]){ 0, 1 });
	return choir_variable_scatter(v, CHOIR_SCATTER_ADD, row, one);
}

// What no kernel can do changes nothing, so the variable stays what it was.
// spec: A11
TEST(what_is_refused_leaves_the_variable)
{
	choir_strategy *s = world_new(2, "cpu:0", 10);
	choir_variable *v = world_variable(
			s, "half", CHOIR_SHAPE(2), CHOIR_OPTIONS(choir_variable_options, .dtype = CHOIR_F16));
	world_failed(choir_cross_update(choir_strategy_cross(s), v, NULL, add_half, v),
			CHOIR_UNSUPPORTED, NULL, NULL);
	choir_frame *f = choir_frame_new(NULL);
	assert_true(choir_tensor_number(choir_sum(
						choir_cast(choir_variable_read(v, f), CHOIR_F32), CHOIR_ALL_AXES)) == 0);
	choir_frame_free(f);
	choir_strategy_free(s);
}

static choir_status update_by_each(choir_cross *x, void *user)
{
	CHOIR_TRY(choir_cross_set_arg(x, "g", choir_cross_arg(x, "g")));
	return choir_cross_update(x, target, NULL, add_and_remember, user);
}

static choir_status give_own(choir_replica *r, void *user)
{
	choir_replica_set_arg(
			r, "g", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), choir_replica_id(r)));
	return choir_replica_merge_call(r, update_by_each, user);
}

static void update_by_replicas(void)
{
	tally t = { 0 };
	world_failed(choir_strategy_run(strategy, give_own, &t, NULL, NULL), CHOIR_INVALID,
			"update of \"target\":*\"g\"*between replicas", NULL);
	assert_int_equal(t.calls, 0);
	assert_int_equal(value_of(target), 0);
}

// spec: A42
TEST(per_replica_arguments_are_refused)
{
	on_every_deal(update_by_replicas);
}

// spec: A41, 2.2, 2.19, A11
TEST(wrong_updates)
{
	on_every_deal(misuse_updates);
}

static choir_status write_and_fail(choir_update *u, void *user)
{
	const tally *t = user;
	CHOIR_TRY(choir_variable_assign(target, choir_number(u->frame, 5)));
	if (t->how == 1)
		CHOIR_TRY(choir_variable_assign(slot, choir_number(u->frame, 5)));
	return choir_update_copy(u) == t->copies ? choir_fail(CHOIR_IO, "half way") : CHOIR_OK;
}

static choir_status update_half(choir_cross *x, void *user)
{
	return choir_cross_update(x, target, NULL, write_and_fail, user);
}

static choir_status call_half(choir_replica *r, void *user)
{
	return choir_replica_merge_call(r, update_half, user);
}

static choir_status read_target(choir_replica *r, void *user)
{
	(void) user;
	return choir_variable_read(target, r->frame) == NULL ? choir_error_status() : CHOIR_OK;
}

static void fail_half_way(void)
{
	choir_frame *f = choir_frame_new(NULL);
	for (int copy = 0; copy < choir_variable_copies(target); copy++)
		for (int how = 0; how < 2; how++) {
			tally t = { .how = how, .copies = copy };
			world_failed(choir_strategy_run(strategy, call_half, &t, NULL, NULL), CHOIR_IO,
					"half way", NULL);
			world_failed(choir_strategy_run(strategy, read_target, NULL, NULL, NULL), CHOIR_STATE,
					"\"target\"*an update failed half", NULL);
			assert_int_equal(choir_variable_read(slot, f) == NULL, how == 1);
			choir_frame_clear(f);
			world_ok(choir_variable_assign(target, choir_number(f, 1)));
			world_ok(choir_variable_assign(slot, choir_number(f, 1)));
			world_ok(choir_strategy_run(strategy, read_target, NULL, NULL, NULL));
			assert_int_equal(value_of(target), 3);
			choir_frame_clear(f);
		}
	choir_frame_free(f);
}

// spec: A41, 2.19
TEST(half_an_update_is_undefined)
{
	on_every_deal(fail_half_way);
}

static choir_status write_data(choir_update *u, void *user)
{
	(void) user;
	float *data = choir_update_data(u, target);
	const bool host =
			strncmp(choir_device_name(choir_variable_device(target, choir_update_copy(u))), "cpu",
					3) == 0;
	WORLD_NEED((data != NULL) == host);
	for (int i = 0; host && i < 3; i++)
		data[i] += 4;
	if (!host)
		CHOIR_TRY(choir_variable_assign_add(target, choir_number(u->frame, 4)));
	return choir_update_return(u, "copy", choir_number(u->frame, choir_update_copy(u)));
}

static choir_status update_by_replica(choir_replica *r, void *user)
{
	choir_tensor *before = choir_variable_read(target, r->frame);
	choir_replica_set_arg(r, "n", choir_number(r->frame, 1)); // the same for all
	CHOIR_TRY(choir_replica_update(r, target, write_data, user));
	WORLD_NEED(choir_add(before, before) == NULL); // it has changed
	choir_frame_clear(r->frame);
	choir_tensor *now = choir_variable_read(target, r->frame);
	WORLD_NEED((int) choir_tensor_number(choir_sum(now, CHOIR_ALL_AXES)) == 12);
	// What was returned for the copy on this replica's device.
	const int copy = (int) choir_tensor_number(choir_replica_result(r, "copy"));
	choir_device *d = choir_variable_device(target, copy);
	WORLD_NEED(chi_device_shares(d, choir_replica_device(r)));
	return CHOIR_OK;
}

static choir_status update_with_own(choir_replica *r, void *user)
{
	choir_replica_set_arg(r, "g", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), 1));
	return choir_replica_update(r, target, write_data, user);
}

static choir_status update_nothing(choir_replica *r, void *user)
{
	return choir_replica_update(
			r, *(int *) user == 0 ? NULL : target, *(int *) user == 0 ? write_data : NULL, NULL);
}

static void update_from_replicas(void)
{
	world_ok(choir_strategy_run(strategy, update_by_replica, NULL, NULL, NULL));
	world_failed(choir_strategy_run(strategy, update_with_own, NULL, NULL, NULL), CHOIR_INVALID,
			"update of \"target\": \"g\" differs between replicas", NULL);
	assert_int_equal(value_of(target), 12); // refused before anything changed
	for (int how = 0; how < 2; how++)
		world_failed(choir_strategy_run(strategy, update_nothing, &how, NULL, NULL), CHOIR_INVALID,
				how == 0 ? "the variable is NULL" : "the function is NULL", NULL);
}

// spec: A42, D11, E12, M11, V3, V6, 2.19
TEST(updates_from_replicas)
{
	on_every_deal(update_from_replicas);
}

static choir_status return_twice(choir_update *u, void *user)
{
	(void) user;
	choir_frame *f = u->frame;
	WORLD_NEED(choir_fill(f, CHOIR_F32, CHOIR_SHAPE(3), 77) != NULL); // in memory that was freed
	return choir_update_return(u, "g", choir_scale(choir_update_arg(u, "g"), 2));
}

// What one update returned is the argument of the next.
static void update_in_turns(choir_cross *x)
{
	choir_tensor *ones = choir_fill(x->frame, CHOIR_F32, CHOIR_SHAPE(3), 1);
	world_ok(choir_cross_set_arg(x, "g", choir_tensor_as_value(ones)));
	for (int i = 0; i < 3; i++) {
		world_ok(choir_cross_update(x, target, NULL, return_twice, NULL));
		world_ok(choir_cross_set_arg(x, "g", choir_cross_result(x, "g")));
	}
	choir_value *g = choir_cross_result(x, "g");
	for (int i = 0; i < choir_value_local_count(g); i++) {
		float host[3];
		world_ok(choir_tensor_to_host(choir_value_local(g, i), host, sizeof host));
		assert_int_equal((int) (host[0] + host[1] + host[2]), 24);
	}
}

static void update_by_program(void)
{
	choir_cross *x = choir_strategy_cross(strategy);
	update_in_turns(x);
	tally t = { 0 };
	choir_tensor *ones = choir_fill(x->frame, CHOIR_F32, CHOIR_SHAPE(3), 1);
	world_ok(choir_cross_set_arg(x, "g", choir_tensor_as_value(ones)));
	world_ok(choir_cross_set_arg(x, "rate", choir_tensor_as_value(choir_number(x->frame, 1))));
	world_ok(choir_cross_set_arg(x, "w", choir_variable_as_value(target)));
	world_ok(choir_cross_update(x, target,
			CHOIR_OPTIONS(choir_update_options, .elementwise = CHOIR_OFF), add_and_remember, &t));
	assert_int_equal(value_of(target), -9);
	t.how = 2; // asks for what was not given; what was given before is used up
	world_failed(choir_cross_update(x, target, NULL, misbehave, &t), CHOIR_NOT_FOUND,
			"there are none", NULL);
	choir_frame_clear(x->frame);
	const choir_update_options bad = { .size = 1 };
	world_failed(choir_cross_update(x, target, &bad, add_and_remember, &t), CHOIR_INVALID,
			"options' size is 1", NULL);
	choir_frame_clear(x->frame);
	world_failed(choir_cross_update(x, NULL, NULL, add_and_remember, &t), CHOIR_INVALID,
			"the variable is NULL", NULL);
	choir_frame_clear(x->frame);
	choir_strategy *s = world_new(1, "cpu:0", 0);
	choir_variable *foreign = NULL;
	CHOIR_SCOPE (s)
		foreign = choir_variable_new("foreign", CHOIR_SCALAR, NULL);
	world_failed(choir_cross_update(x, foreign, NULL, add_and_remember, &t), CHOIR_STATE,
			"mixing strategies: variable \"foreign\"", NULL);
	choir_frame_clear(x->frame);
	choir_strategy_free(s);
}

// spec: A41, A42, E12, V3, 2.2, 2.19
TEST(updates_by_the_program)
{
	on_every_deal(update_by_program);
}

static choir_status add_id(choir_update *u, void *user)
{
	(void) user;
	choir_variable *v = choir_update_variable(u);
	// Beside parts lies the copy that the part's replica reads.
	choir_tensor *w = choir_variable_read(slot, u->frame);
	WORLD_NEED((int) choir_tensor_number(choir_sum(w, CHOIR_ALL_AXES)) == 3);
	return choir_variable_assign_add(v, choir_number(u->frame, 1 + choir_update_copy(u)));
}

static choir_status add_in_part(choir_update *u, void *user)
{
	(void) user;
	choir_variable *v = choir_update_variable(u);
	CHOIR_TRY(choir_variable_assign(v, choir_number(u->frame, 10 + choir_update_copy(u))));
	return choir_update_return(u, "part", choir_variable_read(v, u->frame));
}

// Of parts a replica takes what was returned for its own.
static choir_status update_parts_by_replica(choir_replica *r, void *user)
{
	CHOIR_TRY(choir_replica_update(r, user, add_in_part, NULL));
	choir_tensor *own = choir_replica_result(r, "part");
	const double x = choir_tensor_number(choir_mean(own, CHOIR_ALL_AXES));
	WORLD_NEED(x == 10 + choir_replica_id(r));
	return CHOIR_OK;
}

static void update_parts(void)
{
	choir_variable *parts = NULL;
	CHOIR_SCOPE (strategy)
		parts = choir_variable_new("parts", CHOIR_SHAPE(3),
				CHOIR_OPTIONS(choir_variable_options,
						.synchronization = CHOIR_SYNCHRONIZATION_ON_READ,
						.aggregation = CHOIR_AGGREGATION_SUM));
	world_ok(choir_cross_update(choir_strategy_cross(strategy), parts, NULL, add_id, NULL));
	for (int i = 0; i < replicas; i++) {
		float host[3];
		world_ok(chi_variable_to_host(parts, i, host));
		assert_float_equal(host[2], (float) (i + 1), 0);
	}
	world_ok(choir_strategy_run(strategy, update_parts_by_replica, parts, NULL, NULL));
}

// spec: A11, A41, D11
TEST(updates_of_parts)
{
	on_every_deal(update_parts);
}

TEST_BEFORE(world_watch)
