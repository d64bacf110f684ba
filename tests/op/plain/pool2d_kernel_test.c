// Pooling of f16 and bf16 gives the numbers of f32 that are rounded once, in all variants of the
// loops: also for windows that overlap or reach beyond the images, NAN, infinities and zeros.
#include "base/status.h"
#include "op/kernel_calls.h"
#include "op/op.h"
#include "op/plain/half.h"
#include "tensor/tensor.h"
#include "test.h"

#include <math.h>

static const struct {
	int64_t n, h, w, c;
	choir_pool2d_attributes by;
} cases[] = {
	{ 2, 5, 6, 17, { .window = 2, .stride = 2 } }, // a row is in no window
	{ 1, 6, 6, 64, { .window = 3, .stride = 3 } },
	{ 1, 4, 4, 100, { .window = 2, .stride = 2, .top = 1, .left = 1, .bottom = 1, .right = 1 } },
	{ 1, 6, 5, 33, { .window = 3, .stride = 2, .top = 1, .left = 1, .bottom = 1, .right = 1 } },
	{ 2, 5, 5, 16, { .window = 1, .stride = 2 } },
};
enum { CASES = sizeof cases / sizeof cases[0] };

static const choir_dtype dtypes[] = { CHOIR_F16, CHOIR_BF16 };

static choir_shape x_of(int i)
{
	return CHOIR_SHAPE(cases[i].n, cases[i].h, cases[i].w, cases[i].c);
}

static choir_shape y_of(int i)
{
	const choir_pool2d_attributes *a = &cases[i].by;
	return CHOIR_SHAPE(cases[i].n, (cases[i].h + a->top + a->bottom - a->window) / a->stride + 1,
			(cases[i].w + a->left + a->right - a->window) / a->stride + 1, cases[i].c);
}

// Few different numbers, so that many are equal.
static void fill(choir_buffer *b, uint64_t *seed, bool special)
{
	static const double odd[] = { NAN, INFINITY, -INFINITY, -0.0, 0.0, -0.0, 0.0, 1e-6, -1e-6 };
	for (int64_t i = 0; i < choir_shape_elements(&b->shape); i++) {
		const int64_t k = kernels_integer(seed, special ? 0 : 9, 20);
		kernels_set(b, i, k < 9 ? odd[k] : (double) (k - 15) / 8);
	}
}

static choir_buffer converted(const choir_buffer *b, choir_dtype dtype)
{
	choir_buffer out = kernels_buffer(dtype, b->shape);
	for (int64_t i = 0; i < choir_shape_elements(&b->shape); i++)
		kernels_set(&out, i, kernels_get(b, i));
	return out;
}

static void assert_same(const choir_buffer *got, const choir_buffer *wide, const char *what)
{
	choir_buffer expected = converted(wide, got->dtype);
	const uint16_t *bits = got->data, *good = expected.data;
	for (int64_t i = 0; i < choir_shape_elements(&got->shape); i++)
		if (bits[i] != good[i] && !(isnan(kernels_get(got, i)) && isnan(kernels_get(wide, i))))
			fail_msg("%s of %s: element %lld is %g; %g is needed", what,
					choir_dtype_name(got->dtype), (long long) i, kernels_get(got, i),
					kernels_get(&expected, i));
	kernels_free(1, &expected);
}

typedef struct {
	choir_buffer x, y, dy, dx; // of 16 bits
	choir_buffer wide_x, wide_y, wide_dy, wide_dx;
	chi_pool pool;
} sample;

static sample sample_of(int i, choir_dtype dtype, uint64_t *seed)
{
	const choir_shape x = x_of(i), y = y_of(i);
	sample s = { .x = kernels_buffer(dtype, x),
		.y = kernels_buffer(dtype, y),
		.dy = kernels_buffer(dtype, y),
		.dx = kernels_buffer(dtype, x),
		.wide_y = kernels_buffer(CHOIR_F32, y),
		.wide_dx = kernels_buffer(CHOIR_F32, x),
		.pool = { cases[i].n, cases[i].h, cases[i].w, cases[i].c, y.dim[1], y.dim[2],
				&cases[i].by } };
	fill(&s.x, seed, true);
	fill(&s.dy, seed, false);
	s.wide_x = converted(&s.x, CHOIR_F32);
	s.wide_dy = converted(&s.dy, CHOIR_F32);
	const chi_real_loops *f32 = chi_loops_baseline.real[CHOIR_F32];
	f32->max_pool(&s.pool, s.wide_y.data, s.wide_x.data);
	f32->max_pool_gradient(&s.pool, s.wide_dx.data, s.wide_x.data, s.wide_y.data, s.wide_dy.data);
	return s;
}

static void free_sample(sample *s)
{
	choir_buffer all[] = { s->x, s->y, s->dy, s->dx, s->wide_x, s->wide_y, s->wide_dy,
		s->wide_dx };
	kernels_free(sizeof all / sizeof all[0], all);
}

static void try_loops(const chi_loops *v, sample *s)
{
	const chi_half_loops *half = s->x.dtype == CHOIR_F16 ? v->f16 : v->bf16;
	half->max_pool(&s->pool, s->y.data, s->x.data);
	assert_same(&s->y, &s->wide_y, v->name);
	if (s->pool.attributes->stride < s->pool.attributes->window)
		return;
	half->max_pool_gradient(&s->pool, s->dx.data, s->x.data, s->y.data, s->dy.data);
	assert_same(&s->dx, &s->wide_dx, v->name);
}

TEST(variants_have_the_numbers_of_f32)
{
	uint64_t seed = 7;
	for (int i = 0; i < CASES; i++)
		for (int d = 0; d < 2; d++) {
			sample s = sample_of(i, dtypes[d], &seed);
			const chi_loops *v;
			try_loops(&chi_loops_baseline, &s);
			for (size_t k = 0; (v = chi_loops_variant(k)) != NULL; k++)
				try_loops(v, &s);
			free_sample(&s);
		}
}

// Through the registry, where sums of windows that overlap need another kernel.
TEST(kernels_have_the_numbers_of_f32)
{
	uint64_t seed = 8;
	chi_stream *stream = chi_stream_new(choir_device_find("cpu:0"));
	assert_non_null(stream);
	for (int i = 0; i < CASES; i++)
		for (int d = 0; d < 2; d++) {
			sample s = sample_of(i, dtypes[d], &seed);
			choir_buffer in[3] = { s.x };
			assert_int_equal(
					chi_kernel_run(stream, "max_pool2d", 1, in, &s.y, &cases[i].by), CHOIR_OK);
			assert_same(&s.y, &s.wide_y, "max_pool2d");
			in[1] = s.y;
			in[2] = s.dy;
			assert_int_equal(
					chi_kernel_run(stream, "max_pool2d_gradient", 3, in, &s.dx, &cases[i].by),
					CHOIR_OK);
			assert_same(&s.dx, &s.wide_dx, "max_pool2d_gradient");
			free_sample(&s);
		}
	chi_stream_free(stream);
}
