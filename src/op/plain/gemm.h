// The matrix product on which matmul, dense, convolutions, attention and recurrent layers stand.
#pragma once

#include "op/plain/plain.h"

// c [m, n] = (accumulate ? c : 0) + a b, for f32 or f64; each element is added in the order of k.
// a's element (i, p) is at i * a_row + p * a_column, b's (p, j) at p * b_row + j * b_column; c's
// rows are c_row apart.
typedef struct {
	choir_dtype dtype;
	int64_t m, n, k;
	const void *a, *b;
	int64_t a_row, a_column, b_row, b_column, c_row;
	void *c;
	bool accumulate;
	void *scratch; // chi_gemm_scratch bytes
} chi_gemm;

void chi_gemm_run(const chi_gemm *p);
size_t chi_gemm_scratch(choir_dtype dtype);

// How kernels that are made of many products have them made: their spec's user. Others than the
// plain way need no scratch memory for them.
typedef struct {
	choir_status (*gemm)(const chi_gemm *p);
} chi_gemm_kernel;
extern const chi_gemm_kernel chi_plain_gemm;

// out [rows, n] = activate(out + bias); bias may be NULL.
void chi_finish(choir_dtype dtype, void *out, int64_t rows, int64_t n, const void *bias,
		choir_activate activate);
