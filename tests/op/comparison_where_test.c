// Comparisons, logic and the choice between tensors: values, special numbers, and refusals.
#include "op/given.h"
#include "test.h"

#include <math.h>

static choir_tensor *constant(given *g, choir_dtype dtype, choir_shape shape, const void *values)
{
	choir_tensor *t = choir_constant(g->frame, dtype, shape, values);
	assert_non_null(t);
	return t;
}

static void is_bool(choir_tensor *t, size_t n, const double expected[])
{
	assert_non_null(t);
	assert_int_equal(choir_tensor_dtype(t), CHOIR_BOOL);
	given_equal(t, n, expected);
}

TEST(comparisons_broadcast)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *a = constant(&g, CHOIR_F32, CHOIR_SHAPE(2, 1), (const float[]){ 1, 3 });
	choir_tensor *b = constant(&g, CHOIR_F32, CHOIR_SHAPE(3), (const float[]){ 1, 2, 3 });
	is_bool(choir_equal(a, b), 6, (const double[]){ 1, 0, 0, 0, 0, 1 });
	is_bool(choir_not_equal(a, b), 6, (const double[]){ 0, 1, 1, 1, 1, 0 });
	is_bool(choir_less(a, b), 6, (const double[]){ 0, 1, 1, 0, 0, 0 });
	is_bool(choir_less_equal(a, b), 6, (const double[]){ 1, 1, 1, 0, 0, 1 });
	is_bool(choir_greater(a, b), 6, (const double[]){ 0, 0, 0, 1, 1, 0 });
	is_bool(choir_greater_equal(a, b), 6, (const double[]){ 1, 0, 0, 1, 1, 1 });
	is_bool(choir_greater(b, choir_number(g.frame, 1.5)), 3, (const double[]){ 0, 1, 1 });
	given_close(&g);
}

TEST(comparisons_of_every_dtype)
{
	static const choir_dtype dtypes[] = { CHOIR_F32, CHOIR_F64, CHOIR_I32, CHOIR_I64, CHOIR_U8,
		CHOIR_BOOL };
	given g;

	given_open(&g, "cpu:0", 1);
	for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
		choir_tensor *one = choir_fill(g.frame, dtypes[i], CHOIR_SHAPE(2), 1);
		choir_tensor *zero = choir_fill(g.frame, dtypes[i], CHOIR_SHAPE(2), 0);
		is_bool(choir_equal(one, one), 2, (const double[]){ 1, 1 });
		is_bool(choir_less(zero, one), 2, (const double[]){ 1, 1 });
		is_bool(choir_greater(zero, one), 2, (const double[]){ 0, 0 });
		given_equal(choir_where(choir_less(zero, one), one, zero), 2, (const double[]){ 1, 1 });
	}
	const int64_t wide[] = { 9007199254740993, -5 }; // beyond the whole numbers of f64
	choir_tensor *x = constant(&g, CHOIR_I64, CHOIR_SHAPE(2), wide);
	choir_tensor *y =
			constant(&g, CHOIR_I64, CHOIR_SHAPE(2), (const int64_t[]){ 9007199254740992, -5 });
	is_bool(choir_equal(x, y), 2, (const double[]){ 0, 1 });
	given_close(&g);
}

TEST(nan_is_equal_to_nothing)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *x = constant(
			&g, CHOIR_F64, CHOIR_SHAPE(4), (const double[]){ NAN, INFINITY, -INFINITY, 0 });
	is_bool(choir_equal(x, x), 4, (const double[]){ 0, 1, 1, 1 });
	is_bool(choir_not_equal(x, x), 4, (const double[]){ 1, 0, 0, 0 });
	is_bool(choir_less_equal(x, x), 4, (const double[]){ 0, 1, 1, 1 });
	is_bool(choir_is_finite(x), 4, (const double[]){ 0, 0, 0, 1 });
	is_bool(choir_is_finite(choir_cast(x, CHOIR_BF16)), 4, (const double[]){ 0, 0, 0, 1 });
	is_bool(choir_is_finite(choir_fill(g.frame, CHOIR_I32, CHOIR_SHAPE(1), 7)), 1,
			(const double[]){ 1 });
	given_close(&g);
}

TEST(logic)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *a = constant(&g, CHOIR_I32, CHOIR_SHAPE(4), (const int32_t[]){ 0, 0, 7, -1 });
	choir_tensor *b = constant(&g, CHOIR_F32, CHOIR_SHAPE(4), (const float[]){ 0, 0.5f, 0, 2 });
	is_bool(choir_logical_and(a, b), 4, (const double[]){ 0, 0, 0, 1 });
	is_bool(choir_logical_or(a, b), 4, (const double[]){ 0, 1, 1, 1 });
	is_bool(choir_logical_not(a), 4, (const double[]){ 1, 1, 0, 0 });
	given_close(&g);
}

TEST(where_takes_from_both)
{
	given g;

	given_open(&g, "cpu:0", 1);
	choir_tensor *c = choir_cast(
			constant(&g, CHOIR_I32, CHOIR_SHAPE(2, 1), (const int32_t[]){ 1, 0 }), CHOIR_BOOL);
	choir_tensor *a = constant(&g, CHOIR_U8, CHOIR_SHAPE(2), (const uint8_t[]){ 10, 20 });
	choir_tensor *b = constant(&g, CHOIR_U8, CHOIR_SHAPE(1), (const uint8_t[]){ 5 });
	given_equal(choir_where(c, a, b), 4, (const double[]){ 10, 20, 5, 5 });
	given_equal(choir_where(c, a, choir_number(g.frame, 3)), 4, (const double[]){ 10, 20, 3, 3 });
	choir_tensor *numbers = choir_where(c, choir_number(g.frame, 2.5), choir_number(g.frame, -1));
	given_equal(numbers, 2, (const double[]){ 2.5, -1 });
	choir_tensor *half = choir_cast(
			choir_where(c, choir_cast(a, CHOIR_BF16), choir_cast(b, CHOIR_BF16)), CHOIR_F32);
	given_equal(half, 4, (const double[]){ 10, 20, 5, 5 });
	assert_null(choir_where(a, a, b));
	given_failure(&g, CHOIR_INVALID, "where:*condition*u8*bool");
	assert_null(choir_less(choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(2), 1),
			choir_fill(g.frame, CHOIR_I32, CHOIR_SHAPE(2), 1)));
	given_failure(&g, CHOIR_INVALID, "less:*f32*i32");
	assert_null(choir_greater(choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(2), 1),
			choir_fill(g.frame, CHOIR_F32, CHOIR_SHAPE(3), 1)));
	given_failure(&g, CHOIR_INVALID, "greater:*[3]*[2]");
	given_close(&g);
}
