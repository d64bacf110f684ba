// Blocks are packed in the order of reading. Each element is a sum over k in ascending order.
#include "op/plain/gemm.h"

#include <string.h>

enum {
	BLOCK_M = 144, // multiple of all tile_rows
	BLOCK_N = 512, // of all tile_columns
	BLOCK_K = 256,
	MAX_GEMM_TILE_ROWS = 12,
	MAX_GEMM_TILE_BYTES = 128
};

#define T float
#define SUFFIX f32
#include "op/plain/gemm.inc"
#undef T
#undef SUFFIX
#define T double
#define SUFFIX f64
#include "op/plain/gemm.inc"
#undef T
#undef SUFFIX

static void clear(const chi_gemm *p)
{
	const size_t size = chi_dtype_size(p->dtype);
	for (int64_t i = 0; i < p->m; i++)
		memset((char *) p->c + (size_t) (i * p->c_row) * size, 0, (size_t) p->n * size);
}

void chi_gemm_run(const chi_gemm *p)
{
	if (p->m == 0 || p->n == 0)
		return;
	if (p->k == 0 && !p->accumulate)
		clear(p);
	else if (p->dtype == CHOIR_F32)
		gemm_f32(p);
	else
		gemm_f64(p);
}

size_t chi_gemm_scratch(choir_dtype dtype)
{
	return (size_t) (BLOCK_M + BLOCK_N) * BLOCK_K * chi_dtype_size(dtype);
}

static const chi_unary unary[] = { CHI_RELU, CHI_RELU, CHI_TANH, CHI_SIGMOID };

void chi_activate_half(choir_dtype dtype, void *x, int64_t n, choir_activation activation)
{
	enum { BLOCK = 1024 };
	const chi_half_loops *half = chi_half_loops_best(dtype);
	float block[BLOCK];
	if (activation == CHOIR_RELU) {
		half->relu(x, x, n);
		return;
	}
	for (int64_t i = 0; i < n; i += BLOCK) {
		uint16_t *at = (uint16_t *) x + i;
		const int64_t count = n - i < BLOCK ? n - i : BLOCK;
		half->widen(block, at, count);
		chi_loops_best()->real[CHOIR_F32]->unary(unary[activation], block, block, count);
		half->narrow(at, block, count);
	}
}

void chi_finish(choir_dtype dtype, void *out, int64_t rows, int64_t n, const void *bias,
		choir_activation activation)
{
	const chi_loops *loops = chi_loops_best();
	const size_t row = (size_t) n * chi_dtype_size(dtype);
	char *to = out;
	for (int64_t i = 0; i < rows; i++, to += row) {
		if (bias)
			loops->number[dtype]->binary(CHI_ADD, to, to, bias, n, false, false);
		if (activation != CHOIR_LINEAR)
			loops->real[dtype]->unary(unary[activation], to, to, n);
	}
}

static choir_status gemm_plain(const chi_gemm *p)
{
	chi_gemm_run(p);
	return CHOIR_OK;
}

const chi_gemm_kernel chi_plain_gemm = { gemm_plain };
