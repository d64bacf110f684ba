// Plain products, convolutions and pools against their definitions in f64, over random shapes.
#include "op/kernel_oracles.h"
#include "tensor/tensor.h"
#include "short.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const choir_dtype real[] = { CHOIR_F32, CHOIR_F64 };

TEST(matmul)
{
	uint64_t seed = 21;
	for (int i = 0; i < 120; i += SERIAL_STRIDE) {
		kernel_case c = matmul_case(real[i % 2], &seed, i >= 80);
		kernels_plain("matmul", c.n, c.in, &c.out, &c.matmul);
		kernel_case_check("matmul", &c, matmul_value);
		kernel_case_free(&c);
	}
}

// Each element is a sum in the order of k, without contraction: what a reader's three loops give.
TEST(matmul_has_the_bits_of_three_loops)
{
	enum { M = 29, N = 37, K = 700 };
	uint64_t seed = 22;
	choir_buffer in[2] = { kernels_buffer(CHOIR_F32, CHOIR_SHAPE(M, K)),
		kernels_buffer(CHOIR_F32, CHOIR_SHAPE(K, N)) };
	choir_buffer out = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(M, N));
	kernels_fill(&in[0], &seed, -1, 1);
	kernels_fill(&in[1], &seed, -1, 1);
	kernels_plain("matmul", 2, in, &out, &(choir_matmul_attributes){ 0 });
	const float *a = in[0].data, *b = in[1].data, *c = out.data;
	for (int i = 0; i < M; i++)
		for (int j = 0; j < N; j++) {
			float sum = 0;
			for (int p = 0; p < K; p++)
				sum += a[i * K + p] * b[p * N + j];
			assert_true(sum == c[i * N + j]);
		}
	kernels_free(2, in);
	kernels_free(1, &out);
}

TEST(products_of_nothing_are_zero)
{
	choir_buffer in[2] = { kernels_buffer(CHOIR_F32, CHOIR_SHAPE(3, 0)),
		kernels_buffer(CHOIR_F32, CHOIR_SHAPE(0, 2)) };
	choir_buffer out = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(3, 2));
	kernels_set(&out, 4, 9);
	kernels_plain("matmul", 2, in, &out, &(choir_matmul_attributes){ 0 });
	for (int i = 0; i < 6; i++)
		kernels_assert_near("matmul", &out, i, 0, 0);
	kernels_free(2, in);
	kernels_free(1, &out);
	choir_buffer none[2] = { kernels_buffer(CHOIR_F32, CHOIR_SHAPE(0, 5, 5, 2)),
		kernels_buffer(CHOIR_F32, CHOIR_SHAPE(0, 3, 3, 4)) };
	choir_buffer filter = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(3, 3, 2, 4));
	kernels_set(&filter, 4, 9);
	kernels_plain("conv2d_gradient_filter", 2, none, &filter,
			&(choir_conv2d_attributes){ .stride = 1, .dilation = 1, .groups = 1 });
	for (int i = 0; i < 3 * 3 * 2 * 4; i++)
		kernels_assert_near("conv2d_gradient_filter", &filter, i, 0, 0);
	kernels_free(2, none);
	kernels_free(1, &filter);
}

TEST(dense)
{
	uint64_t seed = 23;
	for (int i = 0; i < 80; i += SERIAL_STRIDE) {
		kernel_case c = dense_case(real[i % 2], &seed, i >= 60);
		kernels_plain("dense", c.n, c.in, &c.out, &c.dense);
		kernel_case_check("dense", &c, dense_value);
		kernel_case_free(&c);
	}
}

TEST(conv2d)
{
	uint64_t seed = 24;
	for (int i = 0; i < 120; i += SERIAL_STRIDE) {
		kernel_case c = conv2d_case(real[i % 2], &seed, i >= 80);
		kernels_plain("conv2d", c.n, c.in, &c.out, &c.conv2d);
		kernel_case_check("conv2d", &c, conv2d_value);
		kernel_case_free(&c);
	}
}

TEST(conv2d_gradients)
{
	uint64_t seed = 25;
	for (int i = 0; i < 80; i += SERIAL_STRIDE) {
		kernel_case f = conv2d_case(real[i % 2], &seed, i >= 72);
		kernel_case c = conv2d_gradient_input_case(&f, &seed);
		kernels_plain("conv2d_gradient_input", c.n, c.in, &c.out, &c.conv2d);
		kernel_case_check("conv2d_gradient_input", &c, conv2d_gradient_input_value);
		kernel_case_free(&c);
		f = conv2d_case(real[i % 2], &seed, i >= 72);
		c = conv2d_gradient_filter_case(&f, &seed);
		kernels_plain("conv2d_gradient_filter", c.n, c.in, &c.out, &c.conv2d);
		kernel_case_check("conv2d_gradient_filter", &c, conv2d_gradient_filter_value);
		kernel_case_free(&c);
	}
}

// Visits the elements of x in the window of element i of y, in order; gives their number.
static int64_t window(const kernel_case *c, int64_t i, int64_t indices[16])
{
	const choir_shape *x = &c->in[0].shape, *y = &c->out.shape;
	const choir_pool2d_attributes *a = &c->pool2d;
	const int64_t channel = i % y->dim[3], pixel = i / y->dim[3];
	const int64_t image = pixel / y->dim[2] / y->dim[1];
	const int64_t top = pixel / y->dim[2] % y->dim[1] * a->stride - a->top;
	const int64_t left = pixel % y->dim[2] * a->stride - a->left;
	int64_t n = 0;
	for (int64_t row = top; row < top + a->window; row++)
		for (int64_t column = left; column < left + a->window; column++)
			if (row >= 0 && row < x->dim[1] && column >= 0 && column < x->dim[2])
				indices[n++] =
						((image * x->dim[1] + row) * x->dim[2] + column) * x->dim[3] + channel;
	return n;
}

static void check_max(const kernel_case *c, const choir_buffer *dy, double *gradient)
{
	int64_t at[16];
	for (int64_t i = 0; i < choir_shape_elements(&c->out.shape); i++) {
		const int64_t n = window(c, i, at);
		int64_t best = 0;
		for (int64_t j = 1; j < n; j++)
			if (kernels_get(&c->in[0], at[j]) > kernels_get(&c->in[0], at[best]))
				best = j;
		kernels_assert_near(
				"max_pool2d", &c->out, i, n > 0 ? kernels_get(&c->in[0], at[best]) : 0, 0);
		if (n > 0)
			gradient[at[best]] += kernels_get(dy, i);
	}
}

static void check_average(const kernel_case *c, const choir_buffer *dy, double *gradient)
{
	int64_t at[16];
	const double epsilon = c->out.dtype == CHOIR_F32 ? 0x1p-21 : 0x1p-50;
	for (int64_t i = 0; i < choir_shape_elements(&c->out.shape); i++) {
		const int64_t n = window(c, i, at);
		double sum = 0;
		for (int64_t j = 0; j < n; j++) {
			sum += kernels_get(&c->in[0], at[j]);
			gradient[at[j]] += kernels_get(dy, i) / (double) n;
		}
		kernels_assert_near("average_pool2d", &c->out, i, n > 0 ? sum / (double) n : 0, epsilon);
	}
}

static void try_pool(choir_dtype dtype, bool max, uint64_t *seed)
{
	kernel_case c = pool2d_case(dtype, seed);
	const int64_t n = choir_shape_elements(&c.in[0].shape);
	for (int64_t i = 0; i < n; i++) // so that there are equals
		kernels_set(&c.in[0], i, floor(kernels_get(&c.in[0], i) * 4));
	choir_buffer dy = kernels_buffer(dtype, c.out.shape),
				 dx = kernels_buffer(dtype, c.in[0].shape);
	kernels_fill(&dy, seed, -1, 1);
	memset(dx.data, 0xff, (size_t) n * chi_dtype_size(dtype)); // all of it must be written
	double *gradient = calloc((size_t) n, sizeof *gradient);
	assert_non_null(gradient);
	if (max) {
		kernels_plain("max_pool2d", 1, c.in, &c.out, &c.pool2d);
		check_max(&c, &dy, gradient);
		choir_buffer in[3] = { c.in[0], c.out, dy };
		kernels_plain("max_pool2d_gradient", 3, in, &dx, &c.pool2d);
	} else {
		kernels_plain("average_pool2d", 1, c.in, &c.out, &c.pool2d);
		check_average(&c, &dy, gradient);
		kernels_plain("average_pool2d_gradient", 1, &dy, &dx, &c.pool2d);
	}
	for (int64_t i = 0; i < n; i++)
		kernels_assert_near(
				"pool gradient", &dx, i, gradient[i], dtype == CHOIR_F32 ? 1e-6 : 1e-14);
	free(gradient);
	kernels_free(1, &dy);
	kernels_free(1, &dx);
	kernel_case_free(&c);
}

TEST(pools)
{
	uint64_t seed = 26;
	for (int i = 0; i < 400; i++)
		try_pool(real[i % 2], i % 4 < 2, &seed);
}
