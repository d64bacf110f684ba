// The definitions of products and convolutions.
#include "op/kernel_oracles.h"

#include "tensor/tensor.h"

#include <math.h>
#include <stdlib.h>

static double activated(choir_activation activation, double x)
{
	switch (activation) {
	case CHOIR_RELU:
		return x > 0 ? x : 0;
	case CHOIR_TANH:
		return tanh(x);
	case CHOIR_SIGMOID:
		return 1 / (1 + exp(-x));
	default:
		return x;
	}
}

static choir_buffer random_buffer(choir_dtype dtype, choir_shape shape, uint64_t *seed)
{
	choir_buffer b = kernels_buffer(dtype, shape);
	kernels_fill(&b, seed, -1, 1);
	return b;
}

static int64_t random_size(uint64_t *seed, bool large)
{
	static const int64_t special[] = { 1, 12, 16, 32, 144, 145, 512, 600 };
	if (kernels_integer(seed, 0, 2) == 0)
		return special[kernels_integer(seed, 0, large ? 7 : 3)];
	return kernels_integer(seed, 1, large ? 300 : 40);
}

static choir_shape with_matrix(const choir_shape *leading, int64_t rows, int64_t columns)
{
	choir_shape s = *leading;
	s.dim[s.rank++] = rows;
	s.dim[s.rank++] = columns;
	return s;
}

kernel_case matmul_case(choir_dtype dtype, uint64_t *seed, bool large)
{
	const int64_t m = random_size(seed, large), n = random_size(seed, large);
	const int64_t k = random_size(seed, large);
	const choir_transposed which = (choir_transposed) kernels_integer(seed, 0, 2);
	choir_shape leading = { .rank = (int) kernels_integer(seed, 0, large ? 0 : 2) }, none = { 0 };
	for (int i = 0; i < leading.rank; i++)
		leading.dim[i] = kernels_integer(seed, 1, 3);
	const bool at = which == CHOIR_TRANSPOSED_A, bt = which == CHOIR_TRANSPOSED_B;
	const bool same = kernels_integer(seed, 0, 1);
	kernel_case c = { .n = 2, .matmul.transposed = which };
	c.in[0] = random_buffer(dtype, with_matrix(&leading, at ? k : m, at ? m : k), seed);
	c.in[1] = random_buffer(
			dtype, with_matrix(same ? &leading : &none, bt ? n : k, bt ? k : n), seed);
	c.out = kernels_buffer(dtype, with_matrix(&leading, m, n));
	return c;
}

kernel_case dense_case(choir_dtype dtype, uint64_t *seed, bool large)
{
	const int64_t m = random_size(seed, large), n = random_size(seed, large);
	const int64_t k = random_size(seed, large);
	kernel_case c = { .n = (size_t) kernels_integer(seed, 2, 3) };
	c.dense.activation = (choir_activation) kernels_integer(seed, 0, 3);
	c.in[0] = random_buffer(dtype, CHOIR_SHAPE(m, k), seed);
	c.in[1] = random_buffer(dtype, CHOIR_SHAPE(k, n), seed);
	c.in[2] = c.n > 2 ? random_buffer(dtype, CHOIR_SHAPE(n), seed) : (choir_buffer){ 0 };
	c.out = kernels_buffer(dtype, CHOIR_SHAPE(m, n));
	return c;
}

kernel_case conv2d_case(choir_dtype dtype, uint64_t *seed, bool large)
{
	const int64_t kh = kernels_integer(seed, 1, 5), kw = kernels_integer(seed, 1, 5);
	int64_t h = kh + kernels_integer(seed, 0, 9), w = kw + kernels_integer(seed, 0, 9);
	const int64_t groups = kernels_integer(seed, 0, 2) ? 1 : kernels_integer(seed, 2, 3);
	const int64_t channels = groups * kernels_integer(seed, 1, large ? 40 : 5);
	const int64_t out = groups * kernels_integer(seed, 1, large ? 40 : 9);
	const int64_t n = kernels_integer(seed, 1, 4);
	kernel_case c = { .n = (size_t) kernels_integer(seed, 2, 3) };
	choir_conv2d_attributes *a = &c.conv2d;
	a->stride = (int) kernels_integer(seed, 1, 3);
	a->groups = groups;
	a->dilation = kernels_integer(seed, 0, 2) ? 1 : (int) kernels_integer(seed, 2, 3);
	const int64_t high = (kh - 1) * a->dilation + 1, wide = (kw - 1) * a->dilation + 1;
	h += high - kh;
	w += wide - kw;
	a->top = (int) kernels_integer(seed, 0, kh - 1);
	a->bottom = (int) kernels_integer(seed, 0, kh - 1);
	a->left = (int) kernels_integer(seed, 0, kw - 1);
	a->right = (int) kernels_integer(seed, 0, kw - 1);
	a->activation = (choir_activation) kernels_integer(seed, 0, 3);
	c.in[0] = random_buffer(dtype, CHOIR_SHAPE(n, h, w, channels), seed);
	c.in[1] = random_buffer(dtype, CHOIR_SHAPE(kh, kw, channels / groups, out), seed);
	c.in[2] = c.n > 2 ? random_buffer(dtype, CHOIR_SHAPE(out), seed) : (choir_buffer){ 0 };
	c.out = kernels_buffer(dtype,
			CHOIR_SHAPE(n, (h + a->top + a->bottom - high) / a->stride + 1,
					(w + a->left + a->right - wide) / a->stride + 1, out));
	return c;
}

kernel_case pool2d_case(choir_dtype dtype, uint64_t *seed)
{
	const int window = (int) kernels_integer(seed, 1, 4);
	const int64_t h = window + kernels_integer(seed, 0, 9),
				  w = window + kernels_integer(seed, 0, 9);
	const int64_t channels = kernels_integer(seed, 1, 70), n = kernels_integer(seed, 1, 3);
	kernel_case c = { .n = 1 };
	choir_pool2d_attributes *a = &c.pool2d;
	a->window = window;
	a->stride = kernels_integer(seed, 0, 1) ? window : (int) kernels_integer(seed, 1, window + 1);
	a->top = (int) kernels_integer(seed, 0, window - 1);
	a->bottom = (int) kernels_integer(seed, 0, window - 1);
	a->left = (int) kernels_integer(seed, 0, window - 1);
	a->right = (int) kernels_integer(seed, 0, window - 1);
	c.in[0] = random_buffer(dtype, CHOIR_SHAPE(n, h, w, channels), seed);
	c.out = kernels_buffer(dtype,
			CHOIR_SHAPE(n, (h + a->top + a->bottom - window) / a->stride + 1,
					(w + a->left + a->right - window) / a->stride + 1, channels));
	return c;
}

kernel_case conv2d_gradient_input_case(kernel_case *f, uint64_t *seed)
{
	kernel_case c = { .n = 2, .conv2d = f->conv2d };
	c.in[0] = f->in[1];
	c.in[1] = f->out;
	c.out = f->in[0];
	kernels_fill(&c.in[1], seed, -1, 1);
	kernels_free(1, &f->in[2]);
	return c;
}

kernel_case conv2d_gradient_filter_case(kernel_case *f, uint64_t *seed)
{
	kernel_case c = { .n = 2, .conv2d = f->conv2d };
	c.in[0] = f->in[0];
	c.in[1] = f->out;
	c.out = f->in[1];
	kernels_fill(&c.in[1], seed, -1, 1);
	kernels_free(1, &f->in[2]);
	return c;
}

void kernel_case_free(kernel_case *c)
{
	kernels_free(3, c->in);
	kernels_free(1, &c->out);
}

static void add_term(double *sum, double *size, double term)
{
	*sum += term;
	*size += fabs(term);
}

double matmul_value(const kernel_case *c, int64_t i, double *size)
{
	const choir_shape *a = &c->in[0].shape, *b = &c->in[1].shape, *out = &c->out.shape;
	const int64_t m = out->dim[out->rank - 2], n = out->dim[out->rank - 1];
	const bool at = c->matmul.transposed == CHOIR_TRANSPOSED_A;
	const bool bt = c->matmul.transposed == CHOIR_TRANSPOSED_B;
	const int64_t k = at ? a->dim[a->rank - 2] : a->dim[a->rank - 1];
	const int64_t batch = i / (m * n), row = i / n % m, column = i % n;
	double sum = 0;
	*size = 0;
	for (int64_t p = 0; p < k; p++) {
		const int64_t in_a = batch * m * k + (at ? p * m + row : row * k + p);
		const int64_t in_b =
				(b->rank > 2 ? batch * k * n : 0) + (bt ? column * k + p : p * n + column);
		add_term(&sum, size, kernels_get(&c->in[0], in_a) * kernels_get(&c->in[1], in_b));
	}
	return sum;
}

double dense_value(const kernel_case *c, int64_t i, double *size)
{
	double sum = matmul_value(c, i, size);
	if (c->n > 2)
		add_term(&sum, size, kernels_get(&c->in[2], i % c->out.shape.dim[1]));
	return activated(c->dense.activation, sum);
}

// One term of a convolution, named by where it is in y and in the filter: the index of x, or
// CHOIR_NONE outside it.
static int64_t index_of_x(const kernel_case *c, const choir_shape *x, const int64_t y[3],
		int64_t i, int64_t j, int64_t channel)
{
	const int64_t row = y[1] * c->conv2d.stride - c->conv2d.top + i * c->conv2d.dilation;
	const int64_t column = y[2] * c->conv2d.stride - c->conv2d.left + j * c->conv2d.dilation;
	if (row < 0 || row >= x->dim[1] || column < 0 || column >= x->dim[2])
		return CHOIR_NONE;
	return ((y[0] * x->dim[1] + row) * x->dim[2] + column) * x->dim[3] + channel;
}

static int64_t index_of_filter(
		const choir_shape *f, int64_t i, int64_t j, int64_t channel, int64_t out)
{
	return ((i * f->dim[1] + j) * f->dim[2] + channel) * f->dim[3] + out;
}

double conv2d_value(const kernel_case *c, int64_t at, double *size)
{
	const choir_shape *x = &c->in[0].shape, *f = &c->in[1].shape, *out = &c->out.shape;
	const int64_t to = at % out->dim[3], pixel = at / out->dim[3];
	const int64_t y[3] = { pixel / out->dim[2] / out->dim[1], pixel / out->dim[2] % out->dim[1],
		pixel % out->dim[2] };
	double sum = 0;
	*size = 0;
	for (int64_t i = 0; i < f->dim[0]; i++)
		for (int64_t j = 0; j < f->dim[1]; j++)
			for (int64_t channel = 0; channel < f->dim[2]; channel++) {
				const int64_t from = index_of_x(
						c, x, y, i, j, to / (f->dim[3] / c->conv2d.groups) * f->dim[2] + channel);
				if (from != CHOIR_NONE)
					add_term(&sum, size,
							kernels_get(&c->in[0], from) *
									kernels_get(&c->in[1], index_of_filter(f, i, j, channel, to)));
			}
	if (c->n > 2)
		add_term(&sum, size, kernels_get(&c->in[2], to));
	return activated(c->conv2d.activation, sum);
}

// Sums over all terms of the convolution in which element at of the gradient takes part.
static double gradient_value(const kernel_case *c, const choir_shape *x, const choir_shape *f,
		const choir_shape *out, bool of_input, int64_t at, double *size)
{
	double sum = 0;
	*size = 0;
	const int64_t only = of_input ? at % x->dim[3] : at / f->dim[3] % f->dim[2];
	for (int64_t pixel = 0; pixel < out->dim[0] * out->dim[1] * out->dim[2]; pixel++) {
		const int64_t y[3] = { pixel / out->dim[2] / out->dim[1],
			pixel / out->dim[2] % out->dim[1], pixel % out->dim[2] };
		for (int64_t t = 0; t < f->dim[0] * f->dim[1] * f->dim[3]; t++) {
			const int64_t i = t / f->dim[3] / f->dim[1], j = t / f->dim[3] % f->dim[1];
			const int64_t to = t % f->dim[3];
			const int64_t first = to / (f->dim[3] / c->conv2d.groups) * f->dim[2];
			const int64_t channel = of_input ? only - first : only;
			if (channel < 0 || channel >= f->dim[2])
				continue;
			const int64_t in_x = index_of_x(c, x, y, i, j, first + channel);
			const int64_t in_f = index_of_filter(f, i, j, channel, to);
			if (in_x == CHOIR_NONE || (of_input ? in_x : in_f) != at)
				continue;
			add_term(&sum, size,
					kernels_get(&c->in[1], pixel * out->dim[3] + to) *
							kernels_get(&c->in[0], of_input ? in_f : in_x));
		}
	}
	return sum;
}

double conv2d_gradient_input_value(const kernel_case *c, int64_t i, double *size)
{
	return gradient_value(c, &c->out.shape, &c->in[0].shape, &c->in[1].shape, true, i, size);
}

double conv2d_gradient_filter_value(const kernel_case *c, int64_t i, double *size)
{
	return gradient_value(c, &c->in[0].shape, &c->out.shape, &c->in[1].shape, false, i, size);
}

void kernel_case_check(const char *what, const kernel_case *c, kernel_value *value)
{
	enum { SAMPLE = 60 };
	const int64_t n = choir_shape_elements(&c->out.shape);
	const int64_t step = n > SAMPLE ? n / SAMPLE | 1 : 1;
	const double epsilon = c->out.dtype == CHOIR_F32 ? 0x1p-24 : 0x1p-53;
	for (int64_t i = 0; i < n; i += i + step < n || i == n - 1 ? step : n - 1 - i) {
		double size;
		const double expected = value(c, i, &size);
		// Rounding errors of k terms grow with sqrt(k); those of an activation come on top.
		kernels_assert_near(what, &c->out, i, expected, (8 * size + 8 * fabs(expected)) * epsilon);
	}
}
