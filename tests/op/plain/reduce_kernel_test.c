// Plain sums, argmax, chunk squares and softmax against loops in f64, over random shapes and axes.
#include "base/status.h"
#include "op/kernel_calls.h"
#include "tensor/tensor.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const choir_dtype arithmetic[] = { CHOIR_F32, CHOIR_F64, CHOIR_I32, CHOIR_I64, CHOIR_U8 };
static const choir_dtype real[] = { CHOIR_F32, CHOIR_F64 };

static double epsilon_of(choir_dtype dtype)
{
	return dtype == CHOIR_F32 ? 0x1p-23 : dtype == CHOIR_F64 ? 0x1p-52 : 0;
}

static choir_shape random_shape(uint64_t *seed, int min_rank)
{
	choir_shape s = { .rank = (int) kernels_integer(seed, min_rank, 5) };
	for (int i = 0; i < s.rank; i++)
		s.dim[i] = kernels_integer(seed, 1, kernels_integer(seed, 0, 3) == 0 ? 150 : 6);
	while (choir_shape_elements(&s) > 300000)
		s.dim[--s.rank] = 0;
	return s;
}

static choir_shape without(const choir_shape *s, uint32_t axes)
{
	choir_shape out = { .rank = 0 };
	for (int i = 0; i < s->rank; i++)
		if (!(axes >> i & 1))
			out.dim[out.rank++] = s->dim[i];
	return out;
}

// The element of the sum that element i of x belongs to.
static int64_t above(const choir_shape *s, uint32_t axes, int64_t i)
{
	int64_t at = 0, stride = 1;
	for (int d = s->rank - 1; d >= 0; d--) {
		if (!(axes >> d & 1)) {
			at += i % s->dim[d] * stride;
			stride *= s->dim[d];
		}
		i /= s->dim[d];
	}
	return at;
}

static void try_sum(choir_dtype dtype, uint64_t *seed)
{
	const choir_shape shape = random_shape(seed, 0);
	const uint32_t axes = (uint32_t) kernels_integer(seed, 0, (1 << shape.rank) - 1);
	choir_buffer x = kernels_buffer(dtype, shape),
				 out = kernels_buffer(dtype, without(&shape, axes));
	kernels_fill(&x, seed, dtype == CHOIR_U8 ? 0 : -100, 100);
	const int64_t n = choir_shape_elements(&shape), results = choir_shape_elements(&out.shape);
	double *expected = calloc((size_t) results, 2 * sizeof *expected), *sizes = expected + results;
	assert_non_null(expected);
	for (int64_t i = 0; i < n; i++) {
		expected[above(&shape, axes, i)] += kernels_get(&x, i);
		sizes[above(&shape, axes, i)] += fabs(kernels_get(&x, i));
	}
	kernels_plain("sum", 1, &x, &out, &(choir_sum_attributes){ .axes = axes });
	for (int64_t i = 0; i < results; i++) {
		const double wrapped = dtype == CHOIR_U8 ? fmod(expected[i], 256) : expected[i];
		kernels_assert_near("sum", &out, i, wrapped, sizes[i] * 8 * epsilon_of(dtype));
	}
	free(expected);
	kernels_free(1, &x);
	kernels_free(1, &out);
}

TEST(sums_over_any_axes)
{
	uint64_t seed = 11;
	for (size_t d = 0; d < sizeof arithmetic / sizeof arithmetic[0]; d++)
		for (int i = 0; i < 60; i++)
			try_sum(arithmetic[d], &seed);
}

TEST(long_sums_keep_their_digits)
{
	enum { N = 3000001 };
	choir_buffer x = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(N));
	choir_buffer out = kernels_buffer(CHOIR_F32, CHOIR_SCALAR);
	kernels_plain("fill", 0, NULL, &x, &(choir_fill_attributes){ .value = 0.1 });
	kernels_plain("sum", 1, &x, &out, &(choir_sum_attributes){ .axes = 1 });
	kernels_assert_near("sum", &out, 0, (double) 0.1f * N, 0.3);
	x.shape = CHOIR_SHAPE(N / 3, 3);
	choir_buffer three = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(3));
	kernels_plain("sum", 1, &x, &three, &(choir_sum_attributes){ .axes = 1 });
	for (int i = 0; i < 3; i++)
		kernels_assert_near("sum of rows", &three, i, (double) 0.1f * (N / 3), 0.1);
	kernels_free(1, &x);
	kernels_free(1, &out);
	kernels_free(1, &three);
}

TEST(sum_of_nothing_is_zero)
{
	choir_buffer x = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(0, 3));
	choir_buffer rows = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(3));
	choir_buffer none = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(0));
	kernels_set(&rows, 1, 5);
	kernels_plain("sum", 1, &x, &rows, &(choir_sum_attributes){ .axes = 1 });
	for (int i = 0; i < 3; i++)
		kernels_assert_near("sum", &rows, i, 0, 0);
	kernels_plain("sum", 1, &x, &none, &(choir_sum_attributes){ .axes = 2 });
	kernels_free(1, &x);
	kernels_free(1, &rows);
	kernels_free(1, &none);
}

static void try_argmax(choir_dtype dtype, uint64_t *seed)
{
	const choir_shape shape = random_shape(seed, 1);
	const int axis = (int) kernels_integer(seed, 0, shape.rank - 1);
	choir_buffer x = kernels_buffer(dtype, shape);
	choir_buffer out = kernels_buffer(CHOIR_I64, without(&shape, 1u << axis));
	kernels_fill(&x, seed, 0, 8);
	for (int64_t i = 0; i < choir_shape_elements(&shape); i++)
		kernels_set(&x, i, floor(kernels_get(&x, i))); // so that there are equals
	kernels_plain("argmax", 1, &x, &out, &(choir_argmax_attributes){ .axis = axis });
	int64_t inner = 1;
	for (int i = axis + 1; i < shape.rank; i++)
		inner *= shape.dim[i];
	for (int64_t i = 0; i < choir_shape_elements(&out.shape); i++) {
		const int64_t first = i / inner * inner * shape.dim[axis] + i % inner;
		int64_t best = 0;
		for (int64_t j = 1; j < shape.dim[axis]; j++)
			if (kernels_get(&x, first + j * inner) > kernels_get(&x, first + best * inner))
				best = j;
		kernels_assert_near("argmax", &out, i, (double) best, 0);
	}
	kernels_free(1, &x);
	kernels_free(1, &out);
}

TEST(argmax_takes_the_first_of_equals)
{
	uint64_t seed = 12;
	for (size_t d = 0; d < sizeof arithmetic / sizeof arithmetic[0]; d++)
		for (int i = 0; i < 20; i++)
			try_argmax(arithmetic[d], &seed);
}

TEST(argmax_passes_by_nans)
{
	choir_buffer x = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(4));
	choir_buffer out = kernels_buffer(CHOIR_I64, CHOIR_SCALAR);
	const double values[] = { NAN, -INFINITY, 2, NAN };
	for (int i = 0; i < 4; i++)
		kernels_set(&x, i, values[i]);
	kernels_plain("argmax", 1, &x, &out, &(choir_argmax_attributes){ .axis = 0 });
	kernels_assert_near("argmax", &out, 0, 2, 0);
	kernels_free(1, &x);
	kernels_free(1, &out);
}

TEST(chunk_squares)
{
	enum { N = 1003, CHUNK = 100 };
	uint64_t seed = 13;
	for (int d = 0; d < 2; d++) {
		choir_buffer x = kernels_buffer(real[d], CHOIR_SHAPE(N));
		choir_buffer out = kernels_buffer(CHOIR_F64, CHOIR_SHAPE(11));
		kernels_fill(&x, &seed, -3, 3);
		kernels_plain(
				"chunk_squares", 1, &x, &out, &(choir_chunk_squares_attributes){ .chunk = CHUNK });
		for (int64_t c = 0; c < 11; c++) {
			double sum = 0;
			for (int64_t i = c * CHUNK; i < N && i < (c + 1) * CHUNK; i++)
				sum += kernels_get(&x, i) * kernels_get(&x, i);
			kernels_assert_near("chunk_squares", &out, c, sum, 1e-12 * sum);
		}
		kernels_free(1, &x);
		kernels_free(1, &out);
	}
}

enum { ROWS = 7 };

static void softmax_values(const choir_buffer *x, int64_t row, int64_t classes, double *out)
{
	double max = -INFINITY, sum = 0;
	for (int64_t j = 0; j < classes; j++)
		max = fmax(max, kernels_get(x, row * classes + j));
	for (int64_t j = 0; j < classes; j++)
		sum += out[j] = exp(kernels_get(x, row * classes + j) - max);
	for (int64_t j = 0; j < classes; j++)
		out[j] /= sum;
}

static void try_softmax(choir_dtype dtype, int64_t classes, uint64_t *seed)
{
	choir_buffer in[2] = { kernels_buffer(dtype, CHOIR_SHAPE(ROWS, classes)),
		kernels_buffer(dtype, CHOIR_SHAPE(ROWS, classes)) };
	choir_buffer y = kernels_buffer(dtype, in[0].shape), dx = kernels_buffer(dtype, in[0].shape);
	double *expected = malloc((size_t) classes * sizeof *expected);
	assert_non_null(expected);
	kernels_fill(&in[0], seed, -20, 100); // without the maximum exp would overflow in f32
	kernels_fill(&in[1], seed, -1, 1);
	kernels_plain("softmax", 1, in, &y, NULL);
	choir_buffer back[2] = { y, in[1] };
	kernels_plain("softmax_gradient", 2, back, &dx, NULL);
	for (int64_t i = 0; i < ROWS; i++) {
		double dot = 0;
		softmax_values(&in[0], i, classes, expected);
		for (int64_t j = 0; j < classes; j++)
			dot += expected[j] * kernels_get(&in[1], i * classes + j);
		for (int64_t j = 0; j < classes; j++) {
			const double dy = kernels_get(&in[1], i * classes + j), e = epsilon_of(dtype);
			kernels_assert_near(
					"softmax", &y, i * classes + j, expected[j], expected[j] * 300 * e + 1e-37);
			kernels_assert_near("softmax_gradient", &dx, i * classes + j, expected[j] * (dy - dot),
					300 * e * expected[j] + 1e-37);
		}
	}
	free(expected);
	kernels_free(2, back);
	kernels_free(1, &in[0]);
	kernels_free(1, &dx);
}

static const choir_cross_entropy_attributes hard = { 0 };

static void try_cross_entropy(
		choir_dtype dtype, choir_dtype label_dtype, int64_t classes, uint64_t *seed)
{
	choir_buffer in[3] = { kernels_buffer(dtype, CHOIR_SHAPE(ROWS, classes)),
		kernels_buffer(label_dtype, CHOIR_SHAPE(ROWS)), kernels_buffer(dtype, CHOIR_SHAPE(ROWS)) };
	choir_buffer loss = kernels_buffer(dtype, CHOIR_SHAPE(ROWS)),
				 dx = kernels_buffer(dtype, in[0].shape);
	double *p = malloc((size_t) classes * sizeof *p);
	assert_non_null(p);
	kernels_fill(&in[0], seed, -30, 30);
	kernels_fill(&in[2], seed, -1, 1);
	for (int64_t i = 0; i < ROWS; i++)
		kernels_set(
				&in[1], i, (double) kernels_integer(seed, 0, classes < 256 ? classes - 1 : 255));
	kernels_plain("softmax_cross_entropy", 2, in, &loss, &hard);
	kernels_plain("softmax_cross_entropy_gradient", 3, in, &dx, &hard);
	for (int64_t i = 0; i < ROWS; i++) {
		const int64_t label = (int64_t) kernels_get(&in[1], i);
		const double dloss = kernels_get(&in[2], i), e = epsilon_of(dtype);
		softmax_values(&in[0], i, classes, p);
		kernels_assert_near("softmax_cross_entropy", &loss, i, -log(p[label]),
				(fabs(log(p[label])) + 10) * 10 * e);
		for (int64_t j = 0; j < classes; j++)
			kernels_assert_near("softmax_cross_entropy_gradient", &dx, i * classes + j,
					(p[j] - (j == label)) * dloss, 100 * e);
	}
	free(p);
	kernels_free(3, in);
	kernels_free(1, &loss);
	kernels_free(1, &dx);
}

TEST(softmax_and_cross_entropy)
{
	static const int64_t classes[] = { 1, 2, 10, 16, 17, 300, 1000 };
	static const choir_dtype labels[] = { CHOIR_U8, CHOIR_I32, CHOIR_I64 };
	uint64_t seed = 14;
	for (size_t c = 0; c < sizeof classes / sizeof classes[0]; c++)
		for (int d = 0; d < 2; d++) {
			try_softmax(real[d], classes[c], &seed);
			for (int l = 0; l < 3; l++)
				try_cross_entropy(real[d], labels[l], classes[c], &seed);
		}
}

TEST(a_label_outside_is_named)
{
	static const choir_dtype dtypes[] = { CHOIR_U8, CHOIR_I32, CHOIR_I64 };
	for (int d = 0; d < 3; d++) {
		choir_buffer in[3] = { kernels_buffer(CHOIR_F32, CHOIR_SHAPE(5, 10)),
			kernels_buffer(dtypes[d], CHOIR_SHAPE(5)), kernels_buffer(CHOIR_F32, CHOIR_SHAPE(5)) };
		choir_buffer loss = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(5));
		kernels_set(&in[1], 3, 12);
		assert_int_equal(kernels_run(chi_plain_list, "softmax_cross_entropy", 2, in, &loss, &hard),
				CHOIR_INVALID);
		assert_text_holds(choir_error(), "label 12*example 3*0*9");
		kernels_set(&in[1], 3, d == 0 ? 10 : -1);
		assert_int_equal(kernels_run(chi_plain_list, "softmax_cross_entropy_gradient", 3, in,
								 &in[0], &hard),
				CHOIR_INVALID);
		assert_string_equal(choir_error(),
				d == 0 ? "label 10 of example 3 is not a class; classes are 0 to 9"
					   : "label -1 of example 3 is not a class; classes are 0 to 9");
		kernels_free(3, in);
		kernels_free(1, &loss);
	}
	chi_error_clear();
}
