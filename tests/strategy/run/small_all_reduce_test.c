// Light sums, on machines that have fewer processors than replicas too: they are opened by hand.
#include "strategy/run/small_all_reduce.h"

#include "choir/op.h"

#include "base/alloc.h"
#include "base/processors.h"
#include "collective/oracle.h"
#include "strategy/world.h"
#include "short.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5, MAX_ELEMENTS = CHI_SMALL_ALL_REDUCE_BYTES / 4 };

static choir_strategy *light_new(int replicas, double timeout)
{
	char devices[256];
	choir_strategy *s = world_new(replicas, world_cpus(replicas, devices), timeout);
	if (s->run->small_all_reduce == NULL) {
		s->run->spin = true;
		world_ok(chi_small_all_reduce_open(s->run));
	}
	assert_non_null(s->run->small_all_reduce);
	return s;
}

typedef struct {
	choir_dtype dtype;
	int64_t elements;
	const void *all; // of the replicas, one after the other
	const void *expected;
	bool borrowed;
} sum;

// Every round has another sum, and every other one is summed in a frame that is rewound.
static choir_status sum_rounds(choir_replica *r, void *user)
{
	const sum *s = user;
	const size_t bytes = (size_t) s->elements * oracle_size(s->dtype);
	const char *own = (const char *) s->all + (size_t) choir_replica_id(r) * bytes;
	const choir_shape shape = CHOIR_SHAPE(s->elements);
	for (int i = 0; i < ROUNDS; i++) {
		const size_t mark = choir_frame_mark(r->frame);
		choir_tensor *x = s->borrowed ? choir_borrow(r->frame, s->dtype, shape, own)
									  : choir_constant(r->frame, s->dtype, shape, own);
		choir_tensor *y = choir_replica_all_reduce(r, CHOIR_SUM, x);
		WORLD_NEED(y != NULL && memcmp(y->data, s->expected, bytes) == 0);
		WORLD_NEED(memcmp(x->data, own, bytes) == 0);
		if (i % 2 == 0)
			choir_frame_rewind(r->frame, mark);
	}
	WORLD_NEED(chi_replica_of(r)->small_all_reduces == ROUNDS);
	return CHOIR_OK;
}

// spec: A22, A32
TEST(sums_have_the_bits_of_the_tree)
{
	static const choir_dtype dtypes[] = { CHOIR_F32, CHOIR_F64, CHOIR_I32 };
	static const int64_t sizes[] = { 0, 1, 511, 512, 513, 2048, MAX_ELEMENTS };
	static char all[CHI_SMALL_ALL_REDUCE_REPLICAS * MAX_ELEMENTS * 8], expected[MAX_ELEMENTS * 8];
	for (int n = 2; n <= CHI_SMALL_ALL_REDUCE_REPLICAS; n++) {
		choir_strategy *s = light_new(n, 0);
		for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0] * 7; i++) {
			sum one = { dtypes[i / 7], sizes[i % 7], all, expected, i % 2 == 0 };
			if ((size_t) one.elements * oracle_size(one.dtype) > CHI_SMALL_ALL_REDUCE_BYTES)
				continue;
			oracle_fill(one.dtype, all, n, one.elements, i);
			oracle_sum(one.dtype, all, 0, n, one.elements, expected);
			world_ok(choir_strategy_run(s, sum_rounds, &one, NULL, NULL));
		}
		choir_strategy_free(s);
	}
}

static choir_status sum_twice(choir_replica *r, void *user)
{
	(void) user;
	choir_tensor *x = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), choir_replica_id(r));
	x = choir_replica_all_reduce(r, CHOIR_SUM, x);
	return choir_replica_return(r, "x", choir_replica_all_reduce(r, CHOIR_SUM, x));
}

// Whatever cannot be allocated, before or after a replica has shown its part: it fails, the others
// come home, and the next run works.
TEST(every_allocation_may_fail)
{
	bool failed = true;
	for (uint64_t n = 1; failed; n += SERIAL_STRIDE) {
		choir_strategy *s = light_new(3, 20);
		choir_values *results = NULL;
		chi_alloc_fail(n, n % 2 == 0);
		const choir_status status = choir_strategy_run(s, sum_twice, NULL, NULL, &results);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		if (failed)
			world_failed(status, CHOIR_NO_MEMORY, "out of memory", NULL);
		else
			assert_float_equal((float) world_number_of(results, "x", 0), 9, 0);
		choir_values_free(results);
		world_works(s);
		choir_strategy_free(s);
	}
}

// Replica 1 sums something else, forgets that it failed, and sums again: nobody is there any more.
static choir_status go_on(choir_replica *r, void *user)
{
	(void) user;
	const bool other = choir_replica_id(r) == 1;
	for (int i = 0; i < 3; i++) {
		choir_tensor *x = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(other ? 2 : 3), 1);
		WORLD_NEED(choir_replica_all_reduce(r, CHOIR_SUM, x) == NULL);
		if (i > 0)
			WORLD_NEED(choir_error_status() == CHOIR_CANCELLED);
		choir_frame_clear(r->frame);
	}
	WORLD_NEED(chi_replica_of(r)->small_all_reduces <= 1);
	return CHOIR_OK;
}

// spec: 2.1
TEST(who_failed_comes_to_no_more_sums)
{
	choir_strategy *s = light_new(3, 20);
	world_failed(choir_strategy_run(s, go_on, NULL, NULL, NULL), CHOIR_STATE,
			"all_reduce of f32 [", "the same calls in the same order");
	world_works(s);
	choir_strategy_free(s);
}

static choir_status nothing(choir_cross *x, void *user)
{
	(void) x, (void) user;
	return CHOIR_OK;
}

// The counts of sums and of meetings wrap, and none of them runs into another or into the flags.
static choir_status many_of_both(choir_replica *r, void *user)
{
	const bool leaves = choir_replica_id(r) == *(const int *) user;
	const size_t mark = choir_frame_mark(r->frame);
	for (int i = 0; i < 33000; i++) {
		choir_tensor *x = choir_replica_all_reduce(
				r, CHOIR_SUM, choir_fill(r->frame, CHOIR_I32, CHOIR_SHAPE(1), i));
		WORLD_NEED(x != NULL && ((const int32_t *) x->data)[0] == 2 * i);
		choir_frame_rewind(r->frame, mark);
		if (i % 1000 == 0)
			CHOIR_TRY(choir_replica_merge_call(r, nothing, NULL));
	}
	if (leaves)
		return CHOIR_OK;
	(void) choir_replica_all_reduce(r, CHOIR_SUM, choir_number(r->frame, 1));
	return CHOIR_OK;
}

TEST(counts_wrap)
{
	if (chi_processor_count() < 2)
		skip();
	choir_strategy *s = light_new(2, 60);
	int leaves = 1;
	world_failed(choir_strategy_run(s, many_of_both, &leaves, NULL, NULL), CHOIR_STATE,
			"replica 1 returned, replica 0 was in all_reduce", NULL);
	world_works(s);
	choir_strategy_free(s);
}

// Where a frame is rewound after each sum, parts and sums do not take turns in the same memory.
static choir_status keep_apart(choir_replica *r, void *user)
{
	enum { AGAIN = 12, WARM = 4 };
	const void *part[AGAIN];
	(void) user;
	for (int i = 0; i < AGAIN; i++) {
		const size_t mark = choir_frame_mark(r->frame);
		choir_tensor *x = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(700), i);
		choir_tensor *y = choir_replica_all_reduce(r, CHOIR_SUM, x);
		WORLD_NEED(y != NULL);
		part[i] = x->data;
		for (int k = WARM; k <= i; k++)
			WORLD_NEED(part[k] != y->data);
		choir_frame_rewind(r->frame, mark);
	}
	return CHOIR_OK;
}

TEST(parts_and_sums_keep_their_memory)
{
	choir_strategy *s = light_new(2, 60);
	world_ok(choir_strategy_run(s, keep_apart, NULL, NULL, NULL));
	world_ok(choir_strategy_run(s, keep_apart, NULL, NULL, NULL));
	choir_strategy_free(s);
}

TEST_BEFORE(world_watch)
