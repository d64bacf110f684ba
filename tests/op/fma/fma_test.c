// Our kernels for processors with fused multiply-adds (op/kernel/suite_test.c compares them with
// plain ones) at the ends of what numbers can be; the same bits for each instruction set; keys
// that are not to be seen.
#include "base/instruction_set.h"
#include "op/fma/fma.h"
#include "op/kernel_calls.h"
#include "op/onednn/onednn.h"
#include "op/plain/half.h"
#include "tensor/tensor.h"
#include "test.h"

#include <math.h>
#include <string.h>

static bool fits(void)
{
	return chi_instruction_set_use() >= CHI_INSTRUCTION_SET_AVX2;
}

// A random call: packed if n is 1, else of three tensors; and dy, behind them.
typedef struct {
	size_t n;
	choir_buffer in[4], out, back;
	choir_attention_attributes attributes;
} problem;

static choir_buffer filled(choir_shape shape, uint64_t *seed)
{
	choir_buffer b = kernels_buffer(CHOIR_F32, shape);
	kernels_fill(&b, seed, -1, 1);
	return b;
}

static problem packed(int64_t n, int64_t places, int64_t heads, int64_t width, uint64_t *seed)
{
	problem p = { .n = 1, .attributes = { heads, true, 0.3 } };
	p.in[0] = filled(CHOIR_SHAPE(n, places, 3 * heads * width), seed);
	p.in[1] = filled(CHOIR_SHAPE(n, places, heads * width), seed);
	p.out = kernels_buffer(CHOIR_F32, p.in[1].shape);
	p.back = kernels_buffer(CHOIR_F32, p.in[0].shape);
	return p;
}

static problem apart(int64_t n, int64_t queries, int64_t keys, int64_t width, uint64_t *seed)
{
	const choir_shape q = CHOIR_SHAPE(n, queries, width), k = CHOIR_SHAPE(n, keys, width);
	problem p = { .n = 3, .attributes = { 1, true, 0.3 } };
	p.in[0] = filled(q, seed);
	p.in[1] = filled(k, seed);
	p.in[2] = filled(k, seed);
	p.in[3] = filled(q, seed);
	p.out = kernels_buffer(CHOIR_F32, q);
	p.back = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(n * width * (queries + 2 * keys)));
	return p;
}

static void problem_free(problem *p)
{
	kernels_free(p->n + 1, p->in);
	kernels_free(1, &p->out);
	kernels_free(1, &p->back);
}

static void problem_run(problem *p)
{
	assert_int_equal(kernels_run(chi_fma_list, "attention", p->n, p->in, &p->out, &p->attributes),
			CHOIR_OK);
	assert_int_equal(kernels_run(chi_fma_list, "attention_gradient", p->n + 1, p->in, &p->back,
							 &p->attributes),
			CHOIR_OK);
}

static void assert_near(const char *what, const choir_buffer *got, const choir_buffer *expected)
{
	for (int64_t i = 0; i < choir_shape_elements(&got->shape); i++)
		kernels_assert_near(what, got, i, kernels_get(expected, i), 2e-5);
}

// All that is made must be written: it is filled with NANs before.
static void compare(problem *p)
{
	choir_buffer out = kernels_buffer(CHOIR_F32, p->out.shape);
	choir_buffer back = kernels_buffer(CHOIR_F32, p->back.shape);
	memset(p->out.data, 0xff, (size_t) choir_shape_elements(&out.shape) * sizeof(float));
	memset(p->back.data, 0xff, (size_t) choir_shape_elements(&back.shape) * sizeof(float));
	problem_run(p);
	kernels_plain("attention", p->n, p->in, &out, &p->attributes);
	kernels_plain("attention_gradient", p->n + 1, p->in, &back, &p->attributes);
	assert_near("attention", &p->out, &out);
	assert_near("attention_gradient", &p->back, &back);
	kernels_free(1, &out);
	kernels_free(1, &back);
}

#ifdef CHI_HAS_X86_KERNELS
enum { PLACES = 77, HEAD = 37, ROW = 3 * HEAD, ALL = PLACES * ROW, MADE = 2 * ALL };

static void run_head(
		const chi_fma_loops *loops, int64_t width, const float *qkv, const float *dy, float *out)
{
	static _Alignas(64) float scratch[1 << 16];
	chi_fma_head h = {
		.queries = PLACES,
		.keys = PLACES,
		.width = width,
		.q_row = ROW,
		.kv_row = ROW,
		.y_row = HEAD,
		.causal = true,
		.scale = 0.3f,
		.q = qkv,
		.k = qkv + HEAD,
		.v = qkv + 2 * HEAD,
		.dy = dy,
		.dq = out,
		.dk = out + HEAD,
		.dv = out + 2 * HEAD,
		.y = out + ALL,
		.scratch = scratch,
	};
	loops->attention(&h);
	loops->attention_gradient(&h);
	for (int exact = 0; exact < 2; exact++, out += 2 * ALL) {
		loops->gelu(out + MADE, qkv, NULL, ALL, exact, false);
		loops->gelu(out + MADE + ALL, qkv, qkv, ALL, exact, false);
	}
}

TEST(instruction_sets_give_the_same_bits)
{
	static float narrow[MADE + 4 * ALL], wide[MADE + 4 * ALL];
	uint64_t seed = 73;

	if (chi_instruction_set_use() < CHI_INSTRUCTION_SET_AVX512)
		skip();
	choir_buffer qkv = filled(CHOIR_SHAPE(PLACES, ROW), &seed);
	choir_buffer dy = filled(CHOIR_SHAPE(PLACES, HEAD), &seed);
	for (int64_t width = HEAD; width >= CHI_FMA_GROUP; width -= HEAD - CHI_FMA_GROUP) {
		run_head(&chi_fma_avx2, width, qkv.data, dy.data, narrow);
		run_head(&chi_fma_avx512, width, qkv.data, dy.data, wide);
		assert_memory_equal(narrow, wide, sizeof narrow);
	}
	kernels_free(1, &qkv);
	kernels_free(1, &dy);
}
#else
TEST(instruction_sets_give_the_same_bits)
{
	skip();
}
#endif

// The largest score of a query takes all, however far it is from 0.
TEST(scores_may_be_large)
{
	uint64_t seed = 74;

	if (!fits())
		skip();
	for (int negative = 0; negative < 2; negative++) {
		problem p = apart(1, 33, 41, 8, &seed);
		p.attributes.scale = negative ? -1e15 : 1e15;
		compare(&p);
		problem_free(&p);
	}
}

// Keys that come later are not seen, whatever they are; who sees a NAN has one.
TEST(what_is_not_seen_does_not_matter)
{
	enum { PLACE = 45, WIDTH = 8 };
	uint64_t seed = 75;

	if (!fits())
		skip();
	problem p = packed(1, 64, 1, WIDTH, &seed);
	problem_run(&p);
	choir_buffer expected = p.out;
	p.out = kernels_buffer(CHOIR_F32, expected.shape);
	kernels_set(&p.in[0], PLACE * 3 * WIDTH + WIDTH, (double) NAN);
	problem_run(&p);
	assert_memory_equal(p.out.data, expected.data, PLACE * WIDTH * sizeof(float));
	for (int64_t i = PLACE * WIDTH; i < 64 * WIDTH; i++)
		assert_true(isnan(kernels_get(&p.out, i)));
	kernels_free(1, &expected);
	problem_free(&p);
}

// ---- bf16.

// The largest difference, relative to the largest number.
static double distance(const choir_buffer *got, const choir_buffer *expected)
{
	double most = 0, size = 0;
	for (int64_t i = 0; i < choir_shape_elements(&got->shape); i++) {
		const double away = fabs(kernels_get(got, i) - kernels_get(expected, i));
		most = away <= most ? most : away; // a NAN is far
		size = fmax(size, fabs(kernels_get(expected, i)));
	}
	return most / size;
}

// The problem's rounded inputs in bf16, and its results by kernels for bf16 and in f32.
static void compare_bf16(problem *p)
{
	problem narrow = *p;
	for (size_t i = 0; i <= p->n; i++) {
		narrow.in[i] = kernels_buffer(CHOIR_BF16, p->in[i].shape);
		for (int64_t k = 0; k < choir_shape_elements(&p->in[i].shape); k++) {
			kernels_set(&narrow.in[i], k, kernels_get(&p->in[i], k));
			kernels_set(&p->in[i], k, kernels_get(&narrow.in[i], k));
		}
	}
	narrow.out = kernels_buffer(CHOIR_BF16, p->out.shape);
	narrow.back = kernels_buffer(CHOIR_BF16, p->back.shape);
	memset(narrow.out.data, 0xff, (size_t) choir_shape_elements(&p->out.shape) * 2);
	memset(narrow.back.data, 0xff, (size_t) choir_shape_elements(&p->back.shape) * 2);
	problem_run(&narrow);
	kernels_plain("attention", p->n, p->in, &p->out, &p->attributes);
	kernels_plain("attention_gradient", p->n + 1, p->in, &p->back, &p->attributes);
	assert_true(distance(&narrow.out, &p->out) < 0.006);
	assert_true(distance(&narrow.back, &p->back) < 0.012);
	problem_free(&narrow);
}

static bool multiplies_bf16(void)
{
	return fits() && chi_onednn_has_bf16() && chi_fma_best()->bf16_attention != NULL;
}

TEST(attention_of_bf16_is_near_that_of_f32)
{
	static const int64_t packs[][4] = { { 1, 1, 1, 1 }, { 2, 7, 2, 3 }, { 1, 40, 1, 33 },
		{ 2, 77, 3, 37 }, { 1, 96, 2, 32 }, { 1, 65, 1, 64 } };
	static const int64_t parts[][3] = { { 1, 9, 5 }, { 33, 41, 8 }, { 64, 130, 40 } };
	uint64_t seed = 77;

	if (!multiplies_bf16())
		skip();
	for (size_t i = 0; i < 2 * sizeof packs / sizeof *packs; i++) {
		const int64_t *k = packs[i / 2];
		problem p = packed(k[0], k[1], k[2], k[3], &seed);
		p.attributes.causal = i % 2;
		compare_bf16(&p);
		problem_free(&p);
	}
	for (size_t i = 0; i < 2 * sizeof parts / sizeof *parts; i++) {
		const int64_t *k = parts[i / 2];
		problem p = apart(2, k[0], k[1], k[2], &seed);
		p.attributes.causal = i % 2;
		compare_bf16(&p);
		problem_free(&p);
	}
}

TEST(attention_of_bf16_does_not_see_later_keys)
{
	enum { PLACE = 45, WIDTH = 8, COUNT = 64 };
	uint16_t before[COUNT * WIDTH];
	uint64_t seed = 78;

	if (!multiplies_bf16())
		skip();
	choir_attention_attributes how = { 1, true, 0.3 };
	choir_buffer in = kernels_buffer(CHOIR_BF16, CHOIR_SHAPE(1, COUNT, 3 * WIDTH));
	choir_buffer out = kernels_buffer(CHOIR_BF16, CHOIR_SHAPE(1, COUNT, WIDTH));
	kernels_fill(&in, &seed, -1, 1);
	for (int spoilt = 0; spoilt < 2; spoilt++) {
		assert_int_equal(kernels_run(chi_fma_list, "attention", 1, &in, &out, &how), CHOIR_OK);
		if (spoilt)
			assert_memory_equal(out.data, before, PLACE * WIDTH * sizeof *before);
		memcpy(before, out.data, sizeof before);
		kernels_set(&in, PLACE * 3 * WIDTH + WIDTH, (double) NAN);
	}
	for (int64_t i = PLACE * WIDTH; i < COUNT * WIDTH; i++)
		assert_true(isnan(kernels_get(&out, i)));
	kernels_free(1, &in);
	kernels_free(1, &out);
}

#ifdef CHI_HAS_X86_KERNELS
// out: y, and the gradient of qkv.
static void run_bf16_head(const chi_fma_loops *loops, bool tiles, int64_t places, int64_t width,
		const choir_buffer in[2], choir_buffer out[2])
{
	static _Alignas(64) float scratch[1 << 17];
	const uint16_t *qkv = in[0].data;
	uint16_t *back = out[1].data;
	const chi_fma_head h = {
		.queries = places,
		.keys = places,
		.width = width,
		.q_row = 3 * width,
		.kv_row = 3 * width,
		.y_row = width,
		.causal = true,
		.scale = 0.3f,
		.size = sizeof *qkv,
		.q = qkv,
		.k = qkv + width,
		.v = qkv + 2 * width,
		.dy = in[1].data,
		.dq = back,
		.dk = back + width,
		.dv = back + 2 * width,
		.y = out[0].data,
		.scratch = scratch,
	};
	memset(scratch, 0xff, sizeof scratch);
	tiles ? loops->tiles_attention(&h) : loops->bf16_attention(&h);
	tiles ? loops->tiles_attention_gradient(&h) : loops->bf16_attention_gradient(&h);
}

TEST(attention_by_tiles_is_near_that_by_vectors)
{
	static const int64_t sizes[][2] = { { 128, 32 }, { 77, 37 }, { 31, 5 }, { 1, 1 }, { 65, 64 } };
	uint64_t seed = 79;

	if (!multiplies_bf16() || !chi_onednn_has_amx())
		skip();
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		const choir_shape y = CHOIR_SHAPE(sizes[i][0], sizes[i][1]);
		const choir_shape qkv = CHOIR_SHAPE(sizes[i][0], 3 * sizes[i][1]);
		choir_buffer in[] = { kernels_buffer(CHOIR_BF16, qkv), kernels_buffer(CHOIR_BF16, y) };
		choir_buffer out[2][2];
		for (int tiles = 0; tiles < 2; tiles++) {
			out[tiles][0] = kernels_buffer(CHOIR_BF16, y);
			out[tiles][1] = kernels_buffer(CHOIR_BF16, qkv);
		}
		kernels_fill(&in[0], &seed, -1, 1);
		kernels_fill(&in[1], &seed, -1, 1);
		for (int tiles = 0; tiles < 2; tiles++)
			run_bf16_head(chi_fma_best(), tiles, sizes[i][0], sizes[i][1], in, out[tiles]);
		for (int k = 0; k < 2; k++)
			assert_true(distance(&out[1][k], &out[0][k]) < 0.012);
		kernels_free(2, in);
		kernels_free(2, out[0]);
		kernels_free(2, out[1]);
	}
}
#endif

// Every number, with the bits of f32 arithmetic that is rounded once.
static void check_gelu_of_bf16(const chi_fma_loops *loops, bool exact, bool back)
{
	enum { N = (1 << 16) - 3 }; // the last vector is not full
	static uint16_t x[N], dy[N], got[N];
	static float x_wide[N], dy_wide[N], expected[N];
	for (int i = 0; i < N; i++) {
		x[i] = (uint16_t) i;
		dy[i] = (uint16_t) (40503u * (unsigned) i);
		x_wide[i] = chi_f32_of_bf16(x[i]);
		dy_wide[i] = chi_f32_of_bf16(dy[i]);
	}
	loops->gelu(got, x, back ? dy : NULL, N, exact, true);
	loops->gelu(expected, x_wide, back ? dy_wide : NULL, N, exact, false);
	for (int i = 0; i < N; i++)
		assert_true(isnan(expected[i]) ? isnan(chi_f32_of_bf16(got[i]))
									   : got[i] == chi_bf16_of_f32(expected[i]));
}

TEST(gelu_of_bf16_is_rounded_once)
{
	if (!fits())
		skip();
	for (int i = 0; i < 4; i++) {
#ifdef CHI_HAS_X86_KERNELS
		check_gelu_of_bf16(&chi_fma_avx2, i % 2, i / 2);
#endif
		check_gelu_of_bf16(chi_fma_best(), i % 2, i / 2);
	}
}

// ---- GELU of f32.

// The exact form is more exact than the plain one, which is 1 + erf: it is compared with erfc in
// f64.
static double gelu_exactly(double x, double dy, bool back)
{
	const double share = erfc(-x / sqrt(2)) / 2;
	const double density = exp(-x * x / 2) / sqrt(2 * acos(-1));
	return back ? dy * (share + x * density) : x * share;
}

static void compare_gelu(choir_buffer *x, choir_buffer *dy, bool exact)
{
	choir_buffer in[2] = { *x, *dy }, got = kernels_buffer(CHOIR_F32, x->shape);
	choir_buffer expected = kernels_buffer(CHOIR_F32, x->shape);
	for (int back = 0; back < 2; back++) {
		const char *what = back ? exact ? "gelu_gradient" : "gelu_tanh_gradient"
				: exact			? "gelu"
								: "gelu_tanh";
		const size_t n = back ? 2 : 1;
		assert_int_equal(kernels_run(chi_fma_list, what, n, in, &got, NULL), CHOIR_OK);
		kernels_plain(what, n, in, &expected, NULL);
		for (int64_t i = 0; i < choir_shape_elements(&x->shape); i++) {
			const double at = kernels_get(x, i), plain = kernels_get(&expected, i);
			const double value = exact ? gelu_exactly(at, kernels_get(dy, i), back) : plain;
			if (isfinite(at)) {
				kernels_assert_near(what, &got, i, value, 1e-7 + 1e-6 * fabs(value));
				kernels_assert_near(what, &got, i, plain, 5e-7 + 1e-6 * fabs(plain));
			} else if (!exact || isnan(at)) {
				assert_int_equal(isnan(kernels_get(&got, i)), isnan(plain));
			} else { // the limits: x or 0, dy or 0
				const double there = back ? kernels_get(dy, i) : at;
				kernels_assert_near(what, &got, i, at > 0 ? there : 0, 0);
			}
		}
	}
	kernels_free(1, &got);
	kernels_free(1, &expected);
}

TEST(gelu_is_the_plain_one)
{
	static const double ends[] = { 0, 1e-30, 5, 8, 9, 10, 12, 13, 14, 31, 33, 100, 1e10, 1e30,
		3e38, (double) INFINITY, (double) NAN };
	enum { ENDS = sizeof ends / sizeof *ends };
	uint64_t seed = 76;

	if (!fits())
		skip();
	for (int64_t n = 1; n < 140; n += 3) {
		choir_buffer x = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(n));
		choir_buffer dy = filled(x.shape, &seed);
		kernels_fill(&x, &seed, -6, 6);
		compare_gelu(&x, &dy, n % 2 == 0);
		kernels_free(1, &x);
		kernels_free(1, &dy);
	}
	choir_buffer x = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(2 * ENDS));
	choir_buffer dy = filled(x.shape, &seed);
	for (int64_t i = 0; i < 2 * ENDS; i++)
		kernels_set(&x, i, i < ENDS ? ends[i] : -ends[i - ENDS]);
	compare_gelu(&x, &dy, false);
	compare_gelu(&x, &dy, true);
	kernels_free(1, &x);
	kernels_free(1, &dy);
}

// Far below 0 the exact form has its digits still, where 1 + erf has none: relative errors.
TEST(small_results_keep_their_digits)
{
	enum { N = 400 };

	if (!fits())
		skip();
	choir_buffer x = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(N)),
				 y = kernels_buffer(CHOIR_F32, x.shape);
	for (int64_t i = 0; i < N; i++)
		kernels_set(&x, i, -0.02 * (double) (i + 1));
	assert_int_equal(kernels_run(chi_fma_list, "gelu", 1, &x, &y, NULL), CHOIR_OK);
	for (int64_t i = 0; i < N; i++) {
		const double at = kernels_get(&x, i), value = gelu_exactly(at, 1, false);
		kernels_assert_near("gelu", &y, i, value, (at > -4 ? 1e-6 : 1e-5) * fabs(value));
	}
	kernels_free(1, &x);
	kernels_free(1, &y);
}
