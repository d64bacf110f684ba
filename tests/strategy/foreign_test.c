// Values of other strategies' replicas, and their variables as values and destinations: refused by
// every call that reduces or copies.
#include "strategy/world.h"

#include "choir/op.h"
#include "test.h"

static choir_status return_one(choir_replica *r, void *user)
{
	(void) user;
	return choir_replica_return(
			r, "same", choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), choir_replica_id(r)));
}

// A variable of another strategy as value or destination; what comes of it.
static const void *use_foreign(int how, choir_strategy *s, choir_value *theirs)
{
	choir_cross *x = choir_strategy_cross(s);
	choir_value *place = choir_cross_destination(x, "cpu:0");
	choir_value *one = choir_tensor_as_value(choir_number(x->frame, 1));
	choir_reduction items[] = { { one, place, NULL }, { one, theirs, NULL } };
	switch (how) {
	case 0:
		return choir_strategy_reduce(s, CHOIR_SUM, theirs, CHOIR_NO_AXIS);
	case 1:
		return choir_cross_reduce(x, CHOIR_MEAN, theirs, CHOIR_AXIS(0));
	case 2:
		return choir_cross_reduce_to(x, CHOIR_SUM, theirs, place);
	case 3:
		return choir_cross_reduce_to(x, CHOIR_MEAN, one, theirs);
	case 4:
		return choir_cross_broadcast_to(x, one, theirs);
	default:
		assert_int_equal(choir_cross_batch_reduce_to(x, CHOIR_MEAN, 2, items, NULL), CHOIR_STATE);
		return items[0].result;
	}
}

// spec: A40, E3, 2.2, 2.19
TEST(values_of_other_strategies)
{
	choir_strategy *two = world_new(2, "cpu:0", 0), *three = world_new(3, "cpu:0", 0);
	choir_values *of_two = NULL;
	world_ok(choir_strategy_run(two, return_one, NULL, NULL, &of_two));
	choir_value *v = choir_values_find(of_two, "same");
	assert_null(choir_strategy_reduce(three, CHOIR_SUM, v, CHOIR_NO_AXIS));
	world_failed(choir_error_status(), CHOIR_INVALID, "2 replicas*3", NULL);
	choir_variable *foreign = world_variable(two, "foreign", CHOIR_SHAPE(2),
			CHOIR_OPTIONS(choir_variable_options, .aggregation = CHOIR_AGGREGATION_SUM,
					.synchronization = CHOIR_SYNCHRONIZATION_ON_READ));
	choir_cross *x = choir_strategy_cross(three);
	choir_value *theirs = choir_variable_as_value(foreign);
	for (int how = 0; how < 6; how++) {
		assert_null(use_foreign(how, three, theirs));
		world_failed(choir_error_status(), CHOIR_STATE,
				": mixing strategies: variable \"foreign\" belongs to \"mirrored\"", NULL);
		choir_frame_clear(x->frame);
	}
	assert_null(choir_strategy_reduce(two, (choir_reduce_op) 3, theirs, CHOIR_NO_AXIS));
	world_failed(choir_error_status(), CHOIR_INVALID, "reduce: *operation*3", NULL);
	choir_frame_clear(choir_strategy_cross(two)->frame);
	assert_null(choir_cross_reduce_to(x, CHOIR_SUM, v, v));
	choir_frame_clear(x->frame);
	assert_null(choir_cross_gather(x, v, 0));
	choir_frame_clear(x->frame);
	choir_values_free(of_two);
	choir_strategy_free(two);
	choir_strategy_free(three);
}

TEST_BEFORE(world_watch)
