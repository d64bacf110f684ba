// Matrix products.
#pragma once

#include "op/plain/plain.h"

// Element (i, j) is at i row + j column.
typedef struct {
	const void *data;
	int64_t row, column;
} chi_matrix;

// c [m, n] = (accumulate ? c : 0) + a b in f32 or f64, in the order of k. Rows of c are c_row
// apart.
typedef struct {
	choir_dtype dtype;
	int64_t m, n, k;
	chi_matrix a, b;
	void *c;
	int64_t c_row;
	bool accumulate;
	void *scratch;
} chi_gemm;

void chi_gemm_run(const chi_gemm *p);
size_t chi_gemm_scratch(choir_dtype dtype);

// The user of kernels made of many products.
typedef struct {
	choir_status (*gemm)(const chi_gemm *p);
} chi_gemm_kernel;
extern const chi_gemm_kernel chi_plain_gemm;

// out [rows, n] = activation(out + bias) in f32 or f64; bias may be NULL.
void chi_finish(choir_dtype dtype, void *out, int64_t rows, int64_t n, const void *bias,
		choir_activation activation);
void chi_activate_half(choir_dtype dtype, void *x, int64_t n, choir_activation activation);
