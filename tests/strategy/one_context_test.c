// What code that is valid in both contexts asks: at any time a thread is in exactly one of a
// replica and cross-replica context.
#include "strategy/world.h"

#include "choir/op.h"
#include "test.h"

static bool is_in_one(bool cross)
{
	return choir_in_cross_replica_context() == cross && (choir_replica_current() == NULL) == cross;
}

static choir_status in_update(choir_update *u, void *user)
{
	(void) u, (void) user;
	WORLD_NEED(is_in_one(true));
	return CHOIR_OK;
}

static choir_status in_nested_replica(choir_replica *r, void *user)
{
	(void) user;
	WORLD_NEED(is_in_one(false) && choir_replica_current() == r);
	return CHOIR_OK;
}

static choir_status in_merge(choir_cross *x, void *user)
{
	WORLD_NEED(is_in_one(true));
	CHOIR_TRY(choir_cross_run(x, in_nested_replica, NULL));
	WORLD_NEED(is_in_one(true));
	CHOIR_TRY(choir_cross_update(x, user, NULL, in_update, NULL));
	WORLD_NEED(is_in_one(true));
	// What the function returned nothing of is not there to be taken.
	WORLD_NEED(choir_cross_result(x, "nothing") == NULL);
	WORLD_NEED(choir_frame_status(x->frame) == CHOIR_NOT_FOUND);
	return choir_fail(CHOIR_IO, "as far as this");
}

static choir_status in_replica(choir_replica *r, void *user)
{
	WORLD_NEED(is_in_one(false) && choir_replica_current() == r);
	return choir_replica_merge_call(r, in_merge, user);
}

static choir_strategy *strategy;
static int replicas;

static void ask_everywhere(void)
{
	choir_variable *v = NULL;
	assert_true(is_in_one(false)); // the default replica
	CHOIR_SCOPE (strategy) {
		assert_true(is_in_one(true));
		v = choir_variable_new("v", CHOIR_SHAPE(2), NULL);
	}
	assert_true(is_in_one(false));
	world_failed(choir_strategy_run(strategy, in_replica, v, NULL, NULL), CHOIR_IO,
			"as far as this", NULL);
	assert_true(is_in_one(false));
}

// spec: A31, C29, M14, 2.2
TEST(exactly_one_of_the_two)
{
	world_on_every_deal(&strategy, &replicas, 1, ask_everywhere);
}

TEST_BEFORE(world_watch)
