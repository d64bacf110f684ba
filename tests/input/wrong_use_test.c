// Distributed datasets that are asked for what they cannot do.
#include "input/dealt.h"
#include "test.h"

static choir_distributed_dataset *inner;
static choir_status read_inside(choir_replica *r, void *user)
{
	choir_values **batch = user;
	(void) r;
	return choir_distributed_dataset_next(inner, batch);
}

static choir_status distribute_inside(choir_replica *r, void *user)
{
	(void) user;
	return choir_strategy_distribute_dataset(
				   choir_replica_strategy(r), choir_dataset_batch(counting(4), 2), NULL) == NULL
			? choir_error_status()
			: CHOIR_OK;
}

// spec: B13, E31, 2.2, 2.19
TEST(replicas_cannot_read)
{
	choir_strategy *s = mirrored(2, NULL);
	choir_values *batch = NULL;
	inner = dealt(s, choir_dataset_batch(counting(6), 2), 0);
	assert_int_equal(choir_strategy_run(s, read_inside, &batch, NULL, NULL), CHOIR_STATE);
	assert_failed(CHOIR_STATE, "distributed");
	assert_null(batch);
	assert_int_equal(choir_strategy_run(s, distribute_inside, NULL, NULL, NULL), CHOIR_STATE);
	assert_failed(CHOIR_STATE, "distribute_dataset");
	choir_strategy_free(s);
}

// spec: E3, E14, E29, 2.19
TEST(wrong_use_is_refused)
{
	choir_strategy *s = mirrored(2, NULL), *other = mirrored(2, NULL);
	assert_null(choir_strategy_distribute_dataset(s, counting(4), NULL));
	assert_failed(CHOIR_INVALID, "single examples*batch");
	assert_null(choir_strategy_distribute_dataset(
			s, counting(4), CHOIR_OPTIONS(choir_input_options, .global_batch = -3)));
	assert_failed(CHOIR_INVALID, "global batch*-3*1");
	assert_null(choir_strategy_distribute_dataset(s, NULL, NULL));
	assert_failed(CHOIR_INVALID, "dataset:*NULL");
	assert_null(choir_strategy_distribute_dataset(s, choir_dataset_batch(counting(4), 0), NULL));
	assert_failed(CHOIR_INVALID, "batch:*0"); // the first cause stays
	assert_null(choir_strategy_distribute_dataset(NULL, counting(4), NULL));
	assert_failed(CHOIR_INVALID, "strategy:*NULL");
	const choir_input_options wrong = { .size = 3 };
	assert_null(choir_strategy_distribute_dataset(s, counting(4), &wrong));
	assert_failed(CHOIR_INVALID, "distribute_dataset:*options*3*CHOIR_OPTIONS");

	choir_values *batch = choir_values_new(other);
	choir_distributed_dataset *data = dealt(s, choir_dataset_batch(counting(4), 2), 0);
	assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_INVALID);
	assert_failed(CHOIR_INVALID, "strategy");
	assert_int_equal(choir_distributed_dataset_next(NULL, &batch), CHOIR_INVALID);
	assert_failed(CHOIR_INVALID, "next:*dataset*NULL");
	assert_int_equal(choir_distributed_dataset_next(data, NULL), CHOIR_INVALID);
	assert_failed(CHOIR_INVALID, "next:*batch*NULL");
	assert_int_equal(choir_distributed_dataset_rewind(NULL), CHOIR_INVALID);
	assert_failed(CHOIR_INVALID, "rewind:*dataset*NULL");
	CHOIR_SCOPE (other) {
		choir_values *mine = NULL;
		assert_int_equal(choir_distributed_dataset_next(data, &mine), CHOIR_STATE);
		assert_failed(CHOIR_STATE, "strategies");
	}
	choir_values_free(batch);
	choir_strategy_free(other);
	choir_strategy_free(s);
}
