// oneDNN's primitives for products and convolutions: made once, run many times, on row-major
// memory.
#pragma once

#include "choir/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum {
	CHI_DNN_MATMUL,
	CHI_DNN_CONVOLUTION,
	CHI_DNN_CONVOLUTION_INPUT, // gradient of x
	CHI_DNN_CONVOLUTION_FILTER // gradient of the filter
} chi_dnn_kind;

// Of a, b and out; a bias is f32.
typedef enum { CHI_DNN_F32, CHI_DNN_BF16, CHI_DNN_BF16_TO_F32 } chi_dnn_dtypes;

// A key, without padding; members that do not apply are 0.
typedef struct {
	int32_t kind;
	uint8_t bias;
	uint8_t dtypes; // chi_dnn_dtypes
	uint8_t a_transposed, b_transposed; // MATMUL
	int64_t batch, m, n, k; // MATMUL; batch 0: a and b have rank 2
	int64_t a_row; // MATMUL: row distance of a transposed a; 0: m
	int64_t b_batch; // batch, or 1: b is shared
	int64_t b_packed; // MATMUL: chi_dnn_pack brings b into oneDNN's layout, for several runs
	int64_t images, h, w, c, kh, kw, out, oh, ow; // CONVOLUTION*
	int64_t stride, top, left, bottom, right;
	int64_t dilation, groups;
} chi_dnn_problem;

// a: left matrix, x, or dy for x's gradient. b: right matrix, filter, or dy for the filter's.
typedef struct {
	const void *a, *b, *bias;
	void *out;
	void *scratch;
} chi_dnn_operands;

typedef struct chi_dnn chi_dnn; // for one thread at a time

typedef struct {
	const float *data;
	int64_t row; // the distance of rows
	bool transposed;
} chi_dnn_matrix;

// c [m, n] = a b, or c + a b, without a primitive: for many small ones. Rows of c are c_row apart.
typedef struct {
	bool accumulate;
	int64_t m, n, k;
	chi_dnn_matrix a, b;
	float *c;
	int64_t c_row;
} chi_dnn_gemm;
choir_status chi_dnn_multiply(const chi_dnn_gemm *p);

// CHOIR_UNSUPPORTED: *out is NULL, and no message is recorded.
choir_status chi_dnn_new(const chi_dnn_problem *problem, chi_dnn **out);
void chi_dnn_free(chi_dnn *d);
size_t chi_dnn_scratch(const chi_dnn *d); // bytes
// Of a problem with .b_packed, before its runs with the same b and scratch.
choir_status chi_dnn_pack(chi_dnn *d, const chi_dnn_operands *operands);
choir_status chi_dnn_run(chi_dnn *d, const chi_dnn_operands *operands);
