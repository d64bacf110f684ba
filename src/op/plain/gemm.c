// The matrix product: a and b are packed block by block, so that the tile reads both in order and
// they stay in cache. Every element of c is one sum in the order of k, whatever the blocks are.
#include "op/plain/plain.h"

#include <string.h>

enum {
	BLOCK_M = 144, // a multiple of every variant's tile_rows
	BLOCK_N = 512, // a multiple of every variant's tile_columns
	BLOCK_K = 256,
	MAX_GEMM_TILE_ROWS = 12,
	MAX_GEMM_TILE_BYTES = 128 // of a row of a tile
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
		product_f32(p);
	else
		product_f64(p);
}

size_t chi_gemm_scratch(choir_dtype dtype)
{
	return (size_t) (BLOCK_M + BLOCK_N) * BLOCK_K * chi_dtype_size(dtype);
}

static choir_status gemm_plain(const chi_gemm *p)
{
	chi_gemm_run(p);
	return CHOIR_OK;
}

const chi_gemm_kernel chi_plain_gemm = { gemm_plain };
