// Reductions of f16 and bf16: summed in f32, and rounded once to the values' dtype.
#include "choir/tape.h"

#include "strategy/world.h"
#include "test.h"

enum { N = 3 };

static choir_strategy *strategy;
static int replicas;
static choir_dtype dtype;

// The next number is 2 larger, so sums of two in 16 bits would lose the other replicas' 1.
static double first(void)
{
	return dtype == CHOIR_F16 ? 2048 : 256;
}

static choir_tensor *own(choir_replica *r)
{
	return choir_fill(r->frame, dtype, CHOIR_SHAPE(N), choir_replica_id(r) == 0 ? first() : 1);
}

static bool is(choir_tensor *t, double sum)
{
	if (t == NULL || choir_tensor_dtype(t) != dtype)
		return false;
	choir_frame *f = choir_tensor_frame(t);
	choir_tensor *wanted = choir_cast(choir_fill(f, CHOIR_F32, CHOIR_SCALAR, sum), dtype);
	choir_tensor *differs =
			choir_not_equal(choir_cast(t, CHOIR_F32), choir_cast(wanted, CHOIR_F32));
	return choir_tensor_number(choir_sum(choir_cast(differs, CHOIR_F32), CHOIR_ALL_AXES)) == 0;
}

static double sum_of_all(void)
{
	return first() + replicas - 1;
}

static choir_status reduce_to(choir_cross *x, void *user)
{
	(void) user;
	choir_value *v = choir_cross_arg(x, "x");
	choir_reduction both[] = { { .v = v, .to = v }, { .v = v, .to = v } };
	CHOIR_TRY(choir_cross_batch_reduce_to(x, CHOIR_MEAN, 2, both, NULL));
	CHOIR_TRY(choir_cross_return(x, "mean", both[1].result));
	return choir_cross_return(x, "sum", choir_cross_reduce_to(x, CHOIR_SUM, v, v));
}

static choir_status reduce_in_replica(choir_replica *r, void *user)
{
	(void) user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *x = own(r), *gradient;
	choir_tensor *mean = choir_replica_all_reduce(r, CHOIR_MEAN, x);
	WORLD_NEED(is(mean, sum_of_all() / replicas));
	choir_tensor *several[] = { x, choir_fill(r->frame, CHOIR_F32, CHOIR_SCALAR, 1), x };
	CHOIR_TRY(choir_replica_batch_all_reduce(r, CHOIR_SUM, 3, several, several));
	WORLD_NEED(is(several[0], sum_of_all()) && is(several[2], sum_of_all()));
	choir_tensor *counted =
			choir_with_count(x, choir_replica_id(r) == 0 ? 3 : 1); // 3 + replicas - 1 in all
	WORLD_NEED(
			is(choir_replica_all_reduce(r, CHOIR_MEAN, counted), sum_of_all() / (replicas + 2)));
	CHOIR_TRY(choir_tape_gradient(
			tape, choir_sum(choir_cast(mean, CHOIR_F32), CHOIR_ALL_AXES), 1, &x, &gradient));
	WORLD_NEED(is(gradient, 1));
	CHOIR_TRY(choir_replica_set_arg(r, "x", own(r)));
	CHOIR_TRY(choir_replica_merge_call(r, reduce_to, NULL));
	WORLD_NEED(is(choir_replica_result(r, "sum"), sum_of_all()));
	WORLD_NEED(is(choir_replica_result(r, "mean"), sum_of_all() / replicas));
	return choir_replica_return(r, "x", own(r));
}

static choir_status set_component(choir_replica *r, void *v)
{
	return choir_variable_assign(v, own(r));
}

static choir_status reduce_slices(choir_replica *r, void *user)
{
	(void) user;
	choir_tensor *rows = choir_constant(r->frame, CHOIR_I32, CHOIR_SHAPE(N), (int32_t[N]){ 0 });
	choir_tensor *t = choir_indexed_slices(own(r), rows, N);
	return choir_replica_return(r, "y", choir_replica_all_reduce(r, CHOIR_SUM, t));
}

static void reduce_everywhere(void)
{
	for (int i = 0; i < 2; i++) {
		dtype = i == 0 ? CHOIR_F16 : CHOIR_BF16;
		choir_values *results = NULL;
		world_ok(choir_strategy_run(strategy, reduce_in_replica, NULL, NULL, &results));
		choir_value *v = choir_values_find(results, "x");
		assert_true(
				is(choir_strategy_reduce(strategy, CHOIR_SUM, v, CHOIR_NO_AXIS), sum_of_all()));
		assert_true(is(choir_strategy_reduce(strategy, CHOIR_MEAN, v, CHOIR_NO_AXIS),
				sum_of_all() / replicas));
		assert_true(is(
				choir_strategy_reduce(strategy, CHOIR_SUM, v, CHOIR_AXIS(0)), N * sum_of_all()));
		assert_true(is(choir_strategy_reduce(strategy, CHOIR_MEAN, v, CHOIR_AXIS(0)),
				sum_of_all() / replicas));
		choir_values_free(results);
		choir_variable *part = world_variable(strategy, i == 0 ? "f16" : "bf16", CHOIR_SHAPE(N),
				CHOIR_OPTIONS(choir_variable_options, .dtype = dtype,
						.synchronization = CHOIR_SYNCHRONIZATION_ON_READ,
						.aggregation = CHOIR_AGGREGATION_SUM));
		world_ok(choir_strategy_run(strategy, set_component, part, NULL, NULL));
		choir_frame *f = choir_frame_new(NULL);
		assert_true(is(choir_variable_read(part, f), sum_of_all()));
		choir_frame_free(f);
		world_failed(choir_strategy_run(strategy, reduce_slices, NULL, NULL, NULL),
				CHOIR_UNSUPPORTED, "slices", choir_dtype_name(dtype));
	}
}

// spec: A22, B29, 2.8
TEST(sums_of_16_bits_are_rounded_once)
{
	world_on_every_deal(&strategy, &replicas, 1, reduce_everywhere);
}

TEST_BEFORE(world_watch)
