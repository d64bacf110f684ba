// Kernels that change rows in place, against a loop over elements; indices that stand several
// times count as often, in their order.
#include "op/kernel_calls.h"
#include "op/op.h"
#include "test.h"

#include <math.h>
#include <string.h>

static const choir_dtype dtypes[] = { CHOIR_F32, CHOIR_F64, CHOIR_I32, CHOIR_I64, CHOIR_U8,
	CHOIR_BOOL, CHOIR_F16, CHOIR_BF16 };

static double combined(const char *op, choir_dtype dtype, double a, double b)
{
	if (!strcmp(op, "scatter_update"))
		return b;
	if (!strcmp(op, "scatter_add"))
		return a + b;
	if (!strcmp(op, "scatter_subtract"))
		return a - b;
	if (!strcmp(op, "scatter_multiply"))
		return a * b;
	if (!strcmp(op, "scatter_minimum"))
		return fmin(a, b);
	if (!strcmp(op, "scatter_maximum"))
		return fmax(a, b);
	return dtype <= CHOIR_F64 ? a / b : b == 0 ? 0 : trunc(a / b);
}

// One step of the oracle, rounded and wrapped as the dtype does.
static void step(const char *op, choir_buffer *target, int64_t at, double value)
{
	const double x = combined(op, target->dtype, kernels_get(target, at), value);
	kernels_set(target, at, target->dtype == CHOIR_U8 ? (double) ((int64_t) x & 255) : x);
}

static void try_scatter(const char *op, choir_dtype dtype, choir_dtype index_dtype, uint64_t *seed)
{
	const int64_t rows = kernels_integer(seed, 1, 5), width = kernels_integer(seed, 1, 40);
	const int64_t n = kernels_integer(seed, 1, 9);
	choir_buffer in[3] = { kernels_buffer(dtype, CHOIR_SHAPE(rows, width)),
		kernels_buffer(index_dtype, CHOIR_SHAPE(n)),
		kernels_buffer(dtype, CHOIR_SHAPE(n, width)) };
	choir_buffer expected = kernels_buffer(dtype, in[0].shape), out = in[0];
	kernels_fill(&in[0], seed, 0, 3);
	kernels_fill(&in[1], seed, 0, (double) rows);
	kernels_fill(&in[2], seed, 0, 3);
	memcpy(expected.data, in[0].data, (size_t) (rows * width) * chi_dtype_size(dtype));
	for (int64_t i = 0; i < n; i++)
		for (int64_t k = 0; k < width; k++)
			step(op, &expected, (int64_t) kernels_get(&in[1], i) * width + k,
					kernels_get(&in[2], i * width + k));
	kernels_plain(op, 3, in, &out, NULL);
	assert_memory_equal(out.data, expected.data, (size_t) (rows * width) * chi_dtype_size(dtype));
	kernels_free(3, in);
	kernels_free(1, &expected);
}

// spec: D13, 2.5
TEST(rows_change_one_after_another)
{
	static const char *const ops[] = { "scatter_add", "scatter_subtract", "scatter_multiply",
		"scatter_divide", "scatter_minimum", "scatter_maximum", "scatter_update" };
	uint64_t seed = 5;
	for (int o = 0; o < 7; o++)
		for (int d = 0; d < (o < 6 ? 5 : 8); d++)
			for (int i = 0; i < 30; i++)
				try_scatter(ops[o], dtypes[d], i % 2 == 0 ? CHOIR_I32 : CHOIR_I64, &seed);
}

TEST(there_is_no_arithmetic_in_bool)
{
	choir_buffer in[3] = { kernels_buffer(CHOIR_BOOL, CHOIR_SHAPE(2)),
		kernels_buffer(CHOIR_I32, CHOIR_SHAPE(1)), kernels_buffer(CHOIR_BOOL, CHOIR_SHAPE(1)) };
	choir_buffer out = in[0];
	assert_int_equal(
			kernels_run(chi_plain_list, "scatter_add", 3, in, &out, NULL), CHOIR_UNSUPPORTED);
	kernels_free(3, in);
}

TEST(a_nan_is_least_and_largest)
{
	static const char *const ops[] = { "scatter_minimum", "scatter_maximum" };
	for (int o = 0; o < 2; o++) {
		choir_buffer in[3] = { kernels_buffer(CHOIR_F32, CHOIR_SHAPE(2)),
			kernels_buffer(CHOIR_I64, CHOIR_SHAPE(2)), kernels_buffer(CHOIR_F32, CHOIR_SHAPE(2)) };
		choir_buffer out = in[0];
		kernels_set(&in[0], 0, (double) NAN);
		kernels_set(&in[1], 1, 1);
		kernels_set(&in[2], 1, (double) NAN);
		kernels_plain(ops[o], 3, in, &out, NULL);
		assert_true(isnan(kernels_get(&out, 0)) && isnan(kernels_get(&out, 1)));
		kernels_free(3, in);
	}
}
