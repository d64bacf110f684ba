// Every variant of the loops that this machine can run gives the same bits as the baseline, for
// every loop and for lengths around the ends of vectors.
#include "base/philox.h"
#include "op/kernel_calls.h"
#include "op/plain/loops.h"
#include "tensor/tensor.h"
#include "test.h"

#include <math.h>
#include <string.h>

enum { MAX = 5000, BYTES = (MAX + 2 * CHI_ROUND) * 8 };

static _Alignas(64) unsigned char a[BYTES], b[BYTES], c[BYTES], d[BYTES];
static const int64_t lengths[] = { 1, 7, 16, 17, 63, 64, 200, 1024, 1041, 4999 };

static void fill_all(choir_dtype dtype, uint64_t *seed)
{
	unsigned char *const arrays[] = { a, b, c, d };
	for (int i = 0; i < 4; i++) {
		choir_buffer buffer = { arrays[i], dtype, CHOIR_SHAPE(MAX) };
		kernels_fill(&buffer, seed, i == 3 ? 0 : -6, 6);
	}
}

// A function that runs one loop of a variant from a, b, c, d into out, of n elements.
typedef void run_loop(const chi_loops *v, choir_dtype dtype, int op, void *out, int64_t n);

static void compare(const char *what, run_loop *run, choir_dtype dtype, int op, int64_t n)
{
	static _Alignas(64) unsigned char expected[BYTES], got[BYTES];
	memset(expected, 0, sizeof expected);
	run(&chi_loops_baseline, dtype, op, expected, n);
	const chi_loops *v;
	for (size_t i = 0; (v = chi_loops_variant(i)); i++) {
		memset(got, 0, sizeof got);
		run(v, dtype, op, got, n);
		if (memcmp(got, expected, sizeof got) != 0)
			fail_msg("%s %d of %s, %lld elements: %s differs from the baseline", what, op,
					choir_dtype_name(dtype), (long long) n, v->name);
	}
}

static void binary(const chi_loops *v, choir_dtype dtype, int op, void *out, int64_t n)
{
	const chi_number_loops *loops = v->number[dtype];
	loops->binary((chi_binary) (op % 6), out, a, b, n, op / 6 == 1, op / 6 == 2);
}

static void numbers(const chi_loops *v, choir_dtype dtype, int op, void *out, int64_t n)
{
	const chi_number_loops *loops = v->number[dtype];
	if (op <= CHI_SIGN)
		loops->unary((chi_number_unary) op, out, a, n);
	else if (op < 8)
		loops->compare((chi_comparison) (op - 4), out, a, b, n, false, op % 2);
	else if (op < 10)
		loops->cumsum(out, a, n, 1, op == 8);
	else if (op == 10)
		loops->top_k(out, a, n, n < 50 ? n : 50);
	else
		loops->extreme(op == 11 ? CHI_MAXIMUM : CHI_MINIMUM, memcpy(out, b, 8), a, n);
}

static void library(const chi_loops *v, choir_dtype dtype, int op, void *out, int64_t n)
{
	if (op <= CHI_ERF)
		v->real[dtype]->library((chi_library) op, out, op == CHI_RSQRT ? d : a, n);
	else
		v->real[dtype]->library2((chi_library2) (op - CHI_ERF - 1), out, d, b, n, false, false);
}

static void sums(const chi_loops *v, choir_dtype dtype, int op, void *out, int64_t n)
{
	if (op == 0)
		v->number[dtype]->sum(out, a, n);
	else
		v->number[dtype]->sum_rows(out, a, n / 60, 60, 60);
}

static void unary(const chi_loops *v, choir_dtype dtype, int op, void *out, int64_t n)
{
	v->real[dtype]->unary((chi_unary) op, out, op == CHI_LOG || op == CHI_SQRT ? d : a, n);
}

static void gradient(const chi_loops *v, choir_dtype dtype, int op, void *out, int64_t n)
{
	v->real[dtype]->gradient((chi_unary) op, out, a, b, n);
}

// Of a copy with room for whole rounds; the sum behind it.
static void exp_row(const chi_real_loops *loops, choir_dtype dtype, void *out, int64_t n)
{
	const int64_t capacity = (n + CHI_ROUND - 1) / CHI_ROUND * CHI_ROUND;
	memcpy(out, a, (size_t) n * chi_dtype_size(dtype));
	const double sum = loops->exp_row(out, n, capacity);
	memcpy((char *) out + (size_t) capacity * chi_dtype_size(dtype), &sum, sizeof sum);
}

static void reductions(const chi_loops *v, choir_dtype dtype, int op, void *out, int64_t n)
{
	const chi_real_loops *loops = v->real[dtype];
	if (op == 0)
		*(double *) out = loops->dot(a, b, n);
	else if (op == 1)
		*(double *) out = loops->max(a, n);
	else if (op == 2)
		loops->exp_minus(out, a, 1.5, n);
	else if (op == 3)
		loops->scale(out, a, 0.7, n);
	else if (op == 4)
		loops->dropout(out, a, (const uint32_t *) (const void *) b, 1u << 23, 2, n);
	else if (op == 10)
		loops->softmax_gradient(out, a, b, n);
	else if (op == 11)
		exp_row(loops, dtype, out, n);
	else if (op <= 6)
		loops->maximum_gradient(out, a, b, c, n, false, op == 6, true);
	else if (op == 7)
		loops->huber(out, a, 1.5, n);
	else if (op == 8)
		loops->huber_gradient(out, a, b, 1.5, n);
	else
		loops->minus_exp(out, a, b, 0.3, n);
}

static void norms(const chi_loops *v, choir_dtype dtype, int op, void *out, int64_t n)
{
	const chi_norm_loops *loops = v->real[dtype]->norm;
	double *sums = out;
	const int64_t columns = n < 60 ? n : 60, rows = n / columns;
	if (op < 2)
		loops->moments(out, a, n, op == 1, 1e-5);
	else if (op < 4)
		loops->row(out, a, b, c, op == 3 ? d : NULL, n);
	else if (op == 4)
		loops->row_gradient(out, a, b, c, d, n, true);
	else if (op == 5)
		loops->row_sums(sums, sums + columns, a, b, d, rows, columns, columns);
	else if (op == 6)
		loops->column_moments(sums, sums + columns, a, rows, columns, columns);
	else if (op == 7)
		loops->column_sums(sums, sums + columns, a, b, c, d, rows, columns, columns);
	else {
		loops->column(out, a, b, c, d, n);
		loops->column_gradient(out, a, out, b, c, d, a, n);
	}
}

static void recurrent(const chi_loops *v, choir_dtype dtype, int op, void *out, int64_t n)
{
	const chi_recurrent_loops *loops = v->real[dtype]->recurrent;
	const int64_t h = n / 6 + 1 < MAX / 12 ? n / 6 + 1 : MAX / 12;
	char *to = out, *second = to + BYTES / 2;
	memcpy(to, a, BYTES / 2);
	memcpy(second, b, BYTES / 4);
	if (op == 0)
		loops->lstm(to, b, h);
	else if (op == 1)
		loops->lstm_gradient(to, second, c, b, d, h);
	else if (op == 2)
		loops->gru(to, b, c, h);
	else
		loops->gru_gradient(to, second, second + BYTES / 4, b, c, h);
}

static void updates(const chi_loops *v, choir_dtype dtype, int op, void *out, int64_t n)
{
	static _Alignas(64) unsigned char first[BYTES], second[BYTES];
	const choir_update_attributes u = { .rate = 0.1,
		.momentum = 0.9,
		.beta1 = 0.9,
		.beta2 = 0.99,
		.epsilon = 1e-7,
		.decay = 0.01,
		.correction = 0.4,
		.gradient_scale = 0.3,
		.rho = 0.9,
		.nesterov = true,
		.m_factor = 0.7,
		.g_factor = 0.2,
		.v_factor = 1.5,
		.initial_accumulator = 0.1 };
	memcpy(out, a, BYTES);
	memcpy(first, b, sizeof first);
	memcpy(second, d, sizeof second);
	if (op == 0)
		v->real[dtype]->sgd(out, c, &u, n);
	else if (op <= CHI_UPDATES1)
		v->real[dtype]->update1[op - 1](out, first, c, &u, n);
	else
		v->real[dtype]->update2[op - 1 - CHI_UPDATES1](out, first, second, c, &u, n);
	if (op > 0 && n < MAX / 2) // the slots, too
		memcpy((unsigned char *) out + BYTES / 2, first, (size_t) n * chi_dtype_size(dtype));
}

static void pools(const chi_loops *v, choir_dtype dtype, int op, void *out, int64_t n)
{
	const chi_real_loops *loops = v->real[dtype];
	const choir_pool2d_attributes attributes = { .window = 2 + op % 2, .stride = 2, .bottom = 1 };
	const chi_pool p = { .n = 1,
		.h = 5,
		.w = 7,
		.c = n < 128 ? n : 128,
		.out_h = 2,
		.out_w = 3,
		.attributes = &attributes };
	if (op / 2 == 0)
		loops->max_pool(&p, out, a);
	else if (op / 2 == 1)
		loops->average_pool(&p, out, a);
	else if (op / 2 == 2)
		loops->average_pool_gradient(&p, out, a);
	else {
		loops->max_pool(&p, c, a);
		if (op / 2 == 3)
			loops->max_pool_gradient(&p, out, a, c, b);
		else
			loops->max_pool_take(&p, out, a, c, b);
	}
}

static void halves(const chi_loops *v, choir_dtype dtype, int op, void *out, int64_t n)
{
	(void) op;
	if (dtype == CHOIR_F16)
		v->f16->add(out, a, b, n);
	else
		v->bf16->add(out, a, b, n);
}

static void compare_all(const char *what, run_loop *run, choir_dtype dtype, int ops)
{
	for (int op = 0; op < ops; op++)
		for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
			compare(what, run, dtype, op, lengths[i]);
}

TEST(variants_have_the_same_bits)
{
	uint64_t seed = 31;
	for (choir_dtype dtype = CHOIR_F32; dtype <= CHOIR_U8; dtype++) {
		fill_all(dtype, &seed);
		compare_all("binary", binary, dtype, 18);
		compare_all("numbers", numbers, dtype, 13);
		compare_all("sums", sums, dtype, 2);
	}
	for (choir_dtype dtype = CHOIR_F32; dtype <= CHOIR_F64; dtype++) {
		fill_all(dtype, &seed);
		compare_all("unary", unary, dtype, CHI_SOFTPLUS + 1);
		compare_all("library", library, dtype, CHI_ERF + 3);
		compare_all("gradient", gradient, dtype, CHI_SOFTPLUS + 1);
		compare_all("reductions", reductions, dtype, 12);
		compare_all("norms", norms, dtype, 9);
		compare_all("recurrent", recurrent, dtype, 4);
		compare_all("updates", updates, dtype, 1 + CHI_UPDATES1 + CHI_UPDATES2);
		compare_all("pools", pools, dtype, 10);
	}
	for (choir_dtype dtype = CHOIR_F16; dtype <= CHOIR_BF16; dtype++) {
		fill_all(dtype, &seed);
		compare_all("halves", halves, dtype, 1);
	}
}

// Tiles differ in shape, so they are compared with the loops that they stand for.
static void try_tile(const chi_real_loops *loops, const char *name, bool first)
{
	enum { K = 33, CAPACITY = 128 };
	static float left[K * 16], right[K * CAPACITY], out[16 * CAPACITY];
	const int64_t rows = loops->tile_rows, columns = loops->tile_columns;
	uint64_t seed = 32;
	assert_true(rows <= 16 && columns <= CAPACITY);
	for (int i = 0; i < K * 16; i++)
		left[i] = (float) kernels_number(&seed, -1, 1);
	for (int i = 0; i < K * CAPACITY; i++)
		right[i] = (float) kernels_number(&seed, -1, 1);
	for (int i = 0; i < 16 * CAPACITY; i++)
		out[i] = 3;
	loops->tile(K, left, right, out, CAPACITY, first);
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < columns; j++) {
			float sum = first ? 0 : 3;
			for (int p = 0; p < K; p++)
				sum += left[p * rows + i] * right[p * columns + j];
			if (sum != out[i * CAPACITY + j])
				fail_msg("%s: tile element %lld, %lld", name, (long long) i, (long long) j);
		}
	assert_true(columns == CAPACITY || out[columns] == 3);
}

TEST(tiles_have_the_bits_of_plain_loops)
{
	const chi_loops *v;
	for (size_t i = 0; (v = chi_loops_variant(i)); i++) {
		print_message("variant: %s\n", v->name);
		try_tile(v->real[CHOIR_F32], v->name, true);
		try_tile(v->real[CHOIR_F32], v->name, false);
	}
}

TEST(philox_is_that_of_base)
{
	enum { BLOCKS = 37 };
	const chi_random_key key = { .seed = 1, .step = 2, .replica = 3, .place = 4 };
	const uint64_t first = 0x2fffffff5u; // the lower half of the counter overflows on the way
	uint32_t words[BLOCKS * 4], counter[4], philox_key[2];
	chi_random_counter(&key, first, counter, philox_key);
	const chi_loops *v;
	for (size_t i = 0; (v = chi_loops_variant(i)); i++) {
		v->philox(words, counter, philox_key, BLOCKS);
		for (uint64_t j = 0; j < BLOCKS; j++) {
			const chi_philox_block block = chi_random_block(&key, first + j);
			assert_memory_equal(words + j * 4, block.word, sizeof block.word);
		}
	}
}
