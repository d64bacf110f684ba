// Gathers across replicas: along every axis, counted from both ends, of unequal sizes.
#include "strategy/world.h"

#include "choir/op.h"
#include "test.h"

#include <string.h>

static choir_strategy *strategy;
static int replicas;

enum { MAX = 5, ROWS = 2 };

// Replica r has r + 1 columns, or as many rows, of numbers 100 r + 10 row + column.
static choir_status bring(choir_replica *r, void *user)
{
	const int id = choir_replica_id(r), n = id + 1;
	float wide[ROWS * (MAX + 1)], tall[ROWS * (MAX + 1)];
	(void) user;
	for (int i = 0; i < ROWS; i++)
		for (int k = 0; k < n; k++) {
			wide[i * n + k] = (float) (100 * id + 10 * i + k);
			tall[k * ROWS + i] = (float) (100 * id + 10 * k + i);
		}
	choir_frame *f = r->frame;
	choir_replica_return(r, "wide", choir_constant(f, CHOIR_F32, CHOIR_SHAPE(ROWS, n), wide));
	choir_replica_return(r, "tall", choir_constant(f, CHOIR_F32, CHOIR_SHAPE(n, ROWS), tall));
	choir_replica_return(
			r, "ranks", choir_fill(f, CHOIR_F32, id == 0 ? CHOIR_SHAPE(2) : CHOIR_SHAPE(2, 1), 1));
	choir_replica_return(
			r, "dtypes", choir_fill(f, id == 0 ? CHOIR_F32 : CHOIR_I32, CHOIR_SHAPE(2), 1));
	choir_replica_return(r, "number", choir_number(f, 1));
	return choir_replica_return(r, "none", choir_fill(f, CHOIR_F32, CHOIR_SHAPE(id % 2, 3), 4));
}

static void check_gathered(choir_tensor *t, int columns_axis)
{
	float have[ROWS * MAX * (MAX + 1) / 2];
	const int all = replicas * (replicas + 1) / 2;
	const choir_shape *shape = choir_tensor_shape(t);
	assert_non_null(t);
	assert_int_equal(shape->rank, 2);
	assert_int_equal(shape->dim[columns_axis], all);
	assert_int_equal(shape->dim[1 - columns_axis], ROWS);
	world_ok(choir_tensor_to_host(t, have, (size_t) (ROWS * all) * sizeof *have));
	for (int r = 0, first = 0; r < replicas; first += ++r)
		for (int k = 0; k <= r; k++)
			for (int i = 0; i < ROWS; i++) {
				const int at = first + k;
				if (columns_axis == 1)
					assert_int_equal((int) have[i * all + at], 100 * r + 10 * i + k);
				else
					assert_int_equal((int) have[at * ROWS + i], 100 * r + 10 * k + i);
			}
}

static void gather(void)
{
	choir_values *results = NULL;
	world_ok(choir_strategy_run(strategy, bring, NULL, NULL, &results));
	choir_cross *x = choir_strategy_cross(strategy);
	choir_value *wide = choir_values_find(results, "wide"),
				*tall = choir_values_find(results, "tall");
	check_gathered(choir_cross_gather(x, wide, 1), 1);
	check_gathered(choir_cross_gather(x, wide, -1), 1);
	check_gathered(choir_cross_gather(x, tall, 0), 0);
	check_gathered(choir_cross_gather(x, tall, -2), 0);
	choir_tensor *t = choir_cross_gather(x, choir_values_find(results, "none"), 0);
	assert_int_equal(choir_tensor_shape(t)->dim[0], replicas / 2);
	choir_frame_clear(x->frame);
	choir_values_free(results);
}

// spec: D8, M19
TEST(along_every_axis)
{
	world_on_every_deal(&strategy, &replicas, 1, gather);
}

// spec: D8, M19, 2.19
TEST(what_does_not_fit)
{
	static const struct {
		const char *name;
		int axis;
		const char *text;
	} wrong[] = {
		{ "wide", 0, "replica 0*f32 [2, 1]*replica 1*f32 [2, 2]*axis 0" },
		{ "wide", -2, "only axis 0 may differ" },
		{ "wide", 2, "axis 2*rank 2" },
		{ "wide", -3, "axis -3*rank 2" },
		{ "ranks", 0, "replica 0 has f32 [2], replica 1 f32 [2, 1]" },
		{ "dtypes", 0, "replica 0 has f32 [2], replica 1 i32 [2]" },
		{ "number", 0, "each replica" },
	};
	strategy = world_new(2, "cpu:0,far:0", 0);
	choir_values *results = NULL;
	choir_cross *x = choir_strategy_cross(strategy);
	world_ok(choir_strategy_run(strategy, bring, NULL, NULL, &results));
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_null(
				choir_cross_gather(x, choir_values_find(results, wrong[i].name), wrong[i].axis));
		world_failed(choir_error_status(), CHOIR_INVALID, wrong[i].text, NULL);
		choir_frame_clear(x->frame);
	}
	choir_values_free(results);
	choir_strategy_free(strategy);
}

TEST_BEFORE(world_watch)
