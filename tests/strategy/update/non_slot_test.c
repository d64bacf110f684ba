// Non-slot variables: where they lie, who may write them, and what cannot be their place.
#include "choir/op.h"

#include "strategy/world.h"
#include "test.h"

static choir_strategy *strategy;
static int replicas;
static choir_variable *weight, *slot, *power;

static choir_status make_variables(choir_cross *x, void *user)
{
	(void) user;
	choir_scope scope, beside;
	CHOIR_TRY(choir_scope_enter(&scope, strategy));
	weight = choir_variable_new("weight", CHOIR_SHAPE(2), NULL);
	CHOIR_TRY(choir_scope_colocate(&beside, choir_variable_as_value(weight)));
	slot = choir_variable_new("weight/m", CHOIR_SHAPE(2), NULL);
	CHOIR_TRY(choir_scope_exit(&beside));
	choir_value *place = choir_cross_non_slot_devices(x, 1, &weight);
	CHOIR_TRY(choir_scope_colocate(&beside, place));
	power = choir_variable_new("beta_power", CHOIR_SCALAR,
			CHOIR_OPTIONS(choir_variable_options, .initializer = CHOIR_INITIALIZER_ONES));
	CHOIR_TRY(choir_scope_exit(&beside));
	return choir_scope_exit(&scope);
}

static void on_every_deal(void (*test)(void))
{
	for (int i = 0; i < world_deal_count; i++) {
		replicas = world_deals[i].replicas;
		strategy = world_new(replicas, world_deals[i].devices, 10);
		world_ok(make_variables(choir_strategy_cross(strategy), NULL));
		assert_non_null(power);
		test();
		choir_frame_clear(choir_strategy_cross(strategy)->frame);
		world_works(strategy);
		choir_strategy_free(strategy);
	}
}

static double value_of(choir_variable *v)
{
	choir_frame *f = choir_frame_new(NULL);
	const double x = choir_tensor_number(choir_mean(choir_variable_read(v, f), CHOIR_ALL_AXES));
	choir_frame_free(f);
	return x;
}

static void look_at_the_place(void)
{
	choir_cross *x = choir_strategy_cross(strategy);
	choir_value *place = choir_cross_non_slot_devices(x, 0, NULL); // the list is not looked at
	assert_int_equal(choir_value_kind_of(place), CHOIR_VALUE_DESTINATION);
	assert_int_equal(choir_value_local_count(place), choir_variable_copies(weight));
	assert_int_equal(choir_variable_copies(power), choir_variable_copies(weight));
	for (int i = 0; i < choir_variable_copies(weight); i++) {
		assert_ptr_equal(choir_variable_device(power, i), choir_variable_device(weight, i));
		int k = 0; // they are parameter devices
		while (choir_strategy_parameter_device(strategy, k) != choir_variable_device(power, i))
			assert_true(k++ < choir_strategy_parameter_devices(strategy));
	}
	choir_variable *const one_missing[] = { weight, NULL };
	assert_null(choir_cross_non_slot_devices(x, 2, one_missing));
	world_failed(choir_error_status(), CHOIR_INVALID, "variable 1 of 2 is NULL", NULL);
	choir_frame_clear(x->frame);
}

// spec: A27, A38, C11
TEST(they_lie_where_mirrored_variables_do)
{
	on_every_deal(look_at_the_place);
}

typedef struct {
	int calls, how;
} tally;

static choir_status halve(choir_update *u, void *user)
{
	tally *t = user;
	WORLD_NEED(choir_update_variable(u) == NULL);
	WORLD_NEED(choir_update_copy(u) == t->calls);
	WORLD_NEED(choir_update_elements(u) == 0);
	WORLD_NEED(choir_in_cross_replica_context() && choir_strategy_current() == strategy);
	t->calls++;
	choir_tensor *by = choir_update_arg(u, "by"), *now = choir_variable_read(power, u->frame);
	WORLD_NEED(choir_tensor_variable(choir_update_arg(u, "of")) == power);
	CHOIR_TRY(choir_variable_assign(power, choir_multiply(now, by)));
	return choir_update_return(u, "now", choir_variable_read(power, u->frame));
}

static choir_status halve_all(choir_cross *x, void *user)
{
	tally *t = user;
	t->calls = 0;
	choir_tensor *by = choir_fill(x->frame, CHOIR_F32, CHOIR_SCALAR, 0.5);
	choir_value *place = choir_cross_non_slot_devices(x, 1, &weight);
	CHOIR_TRY(choir_cross_set_arg(x, "by", choir_tensor_as_value(by)));
	CHOIR_TRY(choir_cross_set_arg(x, "of", choir_variable_as_value(power)));
	CHOIR_TRY(choir_cross_update_non_slot(x, place, halve, t));
	return choir_cross_return(x, "now", choir_cross_result(x, "now"));
}

static choir_status halve_in_a_merge(choir_replica *r, void *user)
{
	choir_variable_read(power, r->frame); // before it changes
	CHOIR_TRY(choir_replica_merge_call(r, halve_all, user));
	WORLD_NEED(choir_tensor_number(choir_replica_result(r, "now")) == 0.25);
	WORLD_NEED(choir_tensor_number(choir_variable_read(power, r->frame)) == 0.25);
	return CHOIR_OK;
}

static void update_all(void)
{
	tally t = { 0 };
	choir_cross *x = choir_strategy_cross(strategy);
	world_ok(halve_all(x, &t));
	assert_int_equal(t.calls, choir_variable_copies(power));
	assert_true(value_of(power) == 0.5);
	choir_value *now = choir_cross_result(x, "now");
	assert_int_equal(choir_value_kind_of(now), CHOIR_VALUE_MIRRORED);
	assert_int_equal(choir_value_local_count(now), choir_variable_copies(power));
	world_ok(choir_strategy_run(strategy, halve_in_a_merge, &t, NULL, NULL));
	assert_int_equal(t.calls, choir_variable_copies(power));
	assert_true(value_of(power) == 0.25);
}

// spec: A27, A45, C17
TEST(updated_once_a_copy)
{
	on_every_deal(update_all);
}

static choir_status misbehave(choir_update *u, void *user)
{
	const tally *t = user;
	choir_frame *f = u->frame;
	choir_tensor *one = choir_number(f, 1);
	switch (t->how) {
	case 0:
		return choir_variable_assign(weight, one);
	case 1:
		return choir_variable_assign_add(slot, one);
	case 2:
		return choir_update_data(u, weight) == NULL ? choir_frame_status(f) : CHOIR_OK;
	case 3:
		choir_update_arg(u, "nothing");
		return CHOIR_OK;
	default:
		CHOIR_TRY(choir_variable_assign(power, choir_number(f, 7)));
		return choir_fail(CHOIR_IO, "after a write");
	}
}

static choir_status write_power(choir_update *u, void *user)
{
	(void) user;
	return choir_variable_assign(power, choir_number(u->frame, 3));
}

static void misuse(void)
{
	choir_cross *x = choir_strategy_cross(strategy);
	static const char *const texts[] = {
		"update of \"non-slot variables\": variable \"weight\" is not colocated",
		"\"weight/m\" is not colocated", "\"weight\" is not colocated",
		"update of \"non-slot variables\": values: there is no \"nothing\"", "after a write"
	};
	static const choir_status expected[] = { CHOIR_INVALID, CHOIR_INVALID, CHOIR_INVALID,
		CHOIR_NOT_FOUND, CHOIR_IO };
	for (int how = 0; how < 5; how++) {
		tally t = { .how = how };
		choir_value *place = choir_cross_non_slot_devices(x, 0, NULL);
		world_failed(choir_cross_update_non_slot(x, place, misbehave, &t), expected[how],
				texts[how], NULL);
		choir_frame_clear(x->frame);
	}
	choir_frame *f = choir_frame_new(NULL);
	assert_null(choir_variable_read(power, f));
	world_failed(choir_error_status(), CHOIR_STATE, "\"beta_power\"*an update failed half", NULL);
	choir_frame_free(f);
	// A variable's own update does not write what belongs to no variable.
	world_failed(choir_cross_update(x, weight, NULL, write_power, NULL), CHOIR_INVALID,
			"update of \"weight\": variable \"beta_power\" is not colocated", NULL);
	choir_frame_clear(x->frame);
	world_failed(
			choir_cross_update_non_slot(x, choir_variable_as_value(weight), write_power, NULL),
			CHOIR_INVALID, "update_non_slot", "is no destination");
	choir_frame_clear(x->frame);
	choir_value *place =
			choir_cross_destination(x, "cpu:0,cpu:1,cpu:2,cpu:3,far:0,far:1,far:2,far:3");
	world_failed(choir_cross_update_non_slot(x, place, write_power, NULL), CHOIR_INVALID,
			"has other devices", NULL);
	choir_frame_clear(x->frame);
	world_failed(
			choir_cross_update_non_slot(x, choir_cross_non_slot_devices(x, 0, NULL), NULL, NULL),
			CHOIR_INVALID, "the function is NULL", NULL);
	choir_frame_clear(x->frame);
	world_failed(
			choir_cross_update_non_slot(x, NULL, write_power, NULL), CHOIR_INVALID, NULL, NULL);
	choir_frame_clear(x->frame);
}

// spec: A45, C17, 2.19
TEST(wrong_places_and_writes)
{
	on_every_deal(misuse);
}

// spec: A37, A38, E24, 2.19
TEST(places_of_another_strategy)
{
	choir_scope scope, beside;
	choir_strategy *other = world_new(2, "cpu:0,far:0", 0);
	choir_variable *foreign = NULL;
	CHOIR_SCOPE (other)
		foreign = choir_variable_new("foreign", CHOIR_SCALAR, NULL);
	strategy = world_new(2, "cpu:0,cpu:1", 0);
	choir_cross *x = choir_strategy_cross(strategy);
	assert_null(choir_cross_non_slot_devices(x, 1, &foreign));
	world_failed(
			choir_error_status(), CHOIR_INVALID, "variable \"foreign\"*another strategy", NULL);
	choir_frame_clear(x->frame);
	world_ok(choir_scope_enter(&scope, strategy));
	choir_value *place = choir_cross_destination(x, "far:0");
	world_failed(choir_scope_colocate(&beside, place), CHOIR_INVALID,
			"a variable*non_slot_devices", NULL);
	world_ok(choir_scope_exit(&scope));
	choir_strategy_free(strategy);
	choir_strategy_free(other);
}

TEST_BEFORE(world_watch)
