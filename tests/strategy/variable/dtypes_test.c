// Variables of every dtype, in every context, to the bit: also 64-bit integers that no f64 holds.
#include "choir/op.h"

#include "strategy/strategy.h"
#include "strategy/world.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static choir_strategy *strategy;
static int replicas;

enum { N = 3, BYTES = N * 8 };

static const int64_t large = ((int64_t) 1 << 53) + 1; // no f64

// A pattern of a dtype, different for each number.
static void pattern(choir_dtype dtype, int number, char out[BYTES])
{
	memset(out, 0, BYTES);
	for (int i = 0; i < N; i++)
		if (dtype == CHOIR_I64)
			((int64_t *) (void *) out)[i] = (i == 1 ? -large : large) + number;
		else
			chi_dtype_store(
					dtype, out, i, dtype == CHOIR_BOOL ? (i + number) % 2 : 10 * number + i);
}

static choir_tensor *tensor_of(choir_frame *f, choir_dtype dtype, int number)
{
	_Alignas(8) char data[BYTES];
	pattern(dtype, number, data);
	return choir_constant(f, dtype, CHOIR_SHAPE(N), data);
}

static bool is(choir_tensor *t, choir_dtype dtype, int number)
{
	_Alignas(8) char expected[BYTES];
	_Alignas(8) char got[BYTES] = { 0 };
	pattern(dtype, number, expected);
	return choir_tensor_dtype(t) == dtype &&
			choir_tensor_to_host(t, got, N * chi_dtype_size(dtype)) == CHOIR_OK &&
			memcmp(got, expected, BYTES) == 0;
}

typedef struct {
	choir_dtype dtype;
	choir_variable *mirrored, *part; // ONLY_FIRST_REPLICA, which all dtypes have
} pair;

static choir_variable *make(const char *kind, choir_dtype dtype, choir_synchronization how,
		choir_aggregation aggregation)
{
	_Alignas(8) char initial[BYTES];
	char name[32];
	choir_variable *v = NULL;
	pattern(dtype, 0, initial);
	snprintf(name, sizeof name, "%s %s", kind, choir_dtype_name(dtype));
	CHOIR_SCOPE (strategy)
		v = choir_variable_new(name, CHOIR_SHAPE(N),
				CHOIR_OPTIONS(choir_variable_options, .dtype = dtype, .synchronization = how,
						.aggregation = aggregation, .initial_value = initial));
	if (v == NULL)
		fail_msg("%s", choir_error());
	return v;
}

static choir_status write_in_update(choir_update *u, void *user)
{
	const pair *p = user;
	WORLD_NEED(is(choir_variable_read(p->mirrored, u->frame), p->dtype, 2));
	CHOIR_TRY(choir_variable_assign(p->mirrored, tensor_of(u->frame, p->dtype, 3)));
	WORLD_NEED(is(choir_variable_read(p->mirrored, u->frame), p->dtype, 3));
	return CHOIR_OK;
}

static choir_status write_in_merge(choir_cross *x, void *user)
{
	const pair *p = user;
	CHOIR_TRY(choir_variable_assign(p->mirrored, tensor_of(x->frame, p->dtype, 2)));
	WORLD_NEED(is(choir_variable_read(p->mirrored, x->frame), p->dtype, 2));
	CHOIR_TRY(choir_cross_update(x, p->mirrored, NULL, write_in_update, user));
	WORLD_NEED(is(choir_variable_read(p->part, x->frame), p->dtype, 1)); // replica 0's
	return CHOIR_OK;
}

static choir_status write_in_replica(choir_replica *r, void *user)
{
	const pair *p = user;
	const int id = choir_replica_id(r);
	WORLD_NEED(is(choir_variable_read(p->mirrored, r->frame), p->dtype, 0));
	WORLD_NEED(is(choir_variable_read(p->part, r->frame), p->dtype, 0));
	CHOIR_TRY(choir_variable_assign(p->mirrored, tensor_of(r->frame, p->dtype, 1 + id)));
	WORLD_NEED(is(choir_variable_read(p->mirrored, r->frame), p->dtype, 1));
	CHOIR_TRY(choir_variable_assign(p->part, tensor_of(r->frame, p->dtype, 1 + id)));
	WORLD_NEED(is(choir_variable_read(p->part, r->frame), p->dtype, 1 + id));
	CHOIR_TRY(choir_replica_merge_call(r, write_in_merge, user));
	WORLD_NEED(is(choir_variable_read(p->mirrored, r->frame), p->dtype, 3));
	return CHOIR_OK;
}

static void write_every_dtype(void)
{
	choir_frame *f = choir_frame_new(NULL);
	for (int d = CHOIR_F32; d <= CHOIR_BF16; d++) {
		const choir_dtype dtype = (choir_dtype) d;
		pair p = { dtype,
			make("mirrored", dtype, CHOIR_SYNCHRONIZATION_ON_WRITE,
					CHOIR_AGGREGATION_ONLY_FIRST_REPLICA),
			make("part", dtype, CHOIR_SYNCHRONIZATION_ON_READ,
					CHOIR_AGGREGATION_ONLY_FIRST_REPLICA) };
		world_ok(choir_strategy_run(strategy, write_in_replica, &p, NULL, NULL));
		assert_true(is(choir_variable_read(p.mirrored, f), dtype, 3));
		world_ok(choir_variable_assign(p.part, tensor_of(f, dtype, 2)));
		assert_true(is(choir_variable_read(p.part, f), dtype, 2));
		world_ok(choir_variable_assign(p.mirrored, choir_number(f, 1)));
		choir_tensor *ones = choir_cast(choir_variable_read(p.mirrored, f), CHOIR_F64);
		assert_true(choir_tensor_number(choir_sum(ones, CHOIR_ALL_AXES)) == N);
		// What has no arithmetic says so, and stays as it was.
		const choir_status status = choir_variable_assign_sub(p.mirrored, tensor_of(f, dtype, 0));
		if (dtype == CHOIR_BOOL)
			world_failed(status, CHOIR_UNSUPPORTED, choir_dtype_name(dtype), NULL);
		else
			world_ok(status);
		choir_frame_clear(f);
		assert_non_null(choir_variable_read(p.mirrored, f));
		choir_frame_clear(f);
	}
	choir_frame_free(f);
}

// spec: A12, A13, A14, A15, A16, A17, 2.4, 2.5
TEST(every_dtype_in_every_context)
{
	world_on_every_deal(&strategy, &replicas, 1, write_every_dtype);
}

static choir_status add_large(choir_replica *r, void *user)
{
	return choir_variable_assign_add(user, tensor_of(r->frame, CHOIR_I64, 0));
}

static void add_64_bits(void)
{
	choir_variable *sum =
			make("sum", CHOIR_I64, CHOIR_SYNCHRONIZATION_ON_WRITE, CHOIR_AGGREGATION_SUM);
	choir_variable *part =
			make("shares", CHOIR_I64, CHOIR_SYNCHRONIZATION_ON_READ, CHOIR_AGGREGATION_SUM);
	choir_frame *f = choir_frame_new(NULL);
	world_ok(choir_strategy_run(strategy, add_large, sum, NULL, NULL));
	int64_t got[N];
	world_ok(choir_tensor_to_host(choir_variable_read(sum, f), got, sizeof got));
	for (int i = 0; i < N; i++)
		assert_true(got[i] == (1 + replicas) * (i == 1 ? -large : large));
	// Dealt out and added up again: the same, to the last bit.
	world_ok(choir_variable_assign(part, tensor_of(f, CHOIR_I64, 5)));
	assert_true(is(choir_variable_read(part, f), CHOIR_I64, 5));
	choir_frame_free(f);
}

// spec: A13, A17, M9, 2.5
TEST(sums_of_64_bit_integers)
{
	world_on_every_deal(&strategy, &replicas, 1, add_64_bits);
}

static void refuse_means(void)
{
	for (int d = CHOIR_F32; d <= CHOIR_BF16; d++)
		for (int on_read = 0; on_read < 2; on_read++) {
			const bool real = chi_dtype_is_float((choir_dtype) d);
			char name[32];
			snprintf(name, sizeof name, "mean %d %d", d, on_read);
			choir_variable *v = NULL;
			CHOIR_SCOPE (strategy)
				v = choir_variable_new(name, CHOIR_SCALAR,
						CHOIR_OPTIONS(choir_variable_options, .dtype = (choir_dtype) d,
								.aggregation = CHOIR_AGGREGATION_MEAN,
								.synchronization = on_read ? CHOIR_SYNCHRONIZATION_ON_READ
														   : CHOIR_SYNCHRONIZATION_ON_WRITE));
			assert_int_equal(v != NULL, real);
			if (!real)
				world_failed(choir_error_status(), CHOIR_INVALID,
						"aggregation MEAN needs a floating-point dtype", name);
		}
}

// spec: A13, E20, M2, 2.19
TEST(means_of_integers_are_refused)
{
	world_on_every_deal(&strategy, &replicas, 1, refuse_means);
	assert_null(choir_variable_new("mean of the default strategy", CHOIR_SCALAR,
			CHOIR_OPTIONS(choir_variable_options, .dtype = CHOIR_I32,
					.aggregation = CHOIR_AGGREGATION_MEAN)));
}

TEST_BEFORE(world_watch)
