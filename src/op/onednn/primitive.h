// oneDNN as the kernels need it: a product or a convolution, made once for a problem and run many
// times on plain row-major memory. Only primitive.c knows oneDNN's headers and versions.
#pragma once

#include "choir/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum {
	CHI_DNN_MATMUL,
	CHI_DNN_CONVOLUTION,
	CHI_DNN_CONVOLUTION_INPUT, // the gradient of x
	CHI_DNN_CONVOLUTION_FILTER // the gradient of the filter
} chi_dnn_kind;

// What a primitive depends on, without padding bytes and zero where it does not apply, since it is
// also the key of the cache.
typedef struct {
	int32_t kind;
	uint16_t bias; // or none
	uint8_t a_transposed, b_transposed; // MATMUL
	int64_t batch, m, n, k; // MATMUL; batch 0: a and b have rank 2
	int64_t a_row; // MATMUL: from row to row of a transposed a, of which m are a part; 0: m
	int64_t b_batch; // batch, or 1: all products use the same b
	int64_t images, h, w, c, kh, kw, out, oh, ow; // CONVOLUTION*
	int64_t stride, top, left, bottom, right;
	int64_t dilation, groups;
} chi_dnn_problem;

// a: the left matrix, x, or dy where x's gradient is wanted. b: the right matrix, the filter, or
// dy where the filter's gradient is wanted.
typedef struct {
	const void *a, *b, *bias;
	void *out;
	void *scratch;
} chi_dnn_operands;

typedef struct chi_dnn chi_dnn; // used by one thread at a time

// c [m, n] = a b, or c + a b, at once and without a primitive: for many small products whose sizes
// differ. Rows of a [m, k] (transposed: [k, m]) lie a_row apart, and so on.
typedef struct {
	bool a_transposed, b_transposed, accumulate;
	int64_t m, n, k, a_row, b_row, c_row;
	const float *a, *b;
	float *c;
} chi_dnn_gemm;
choir_status chi_dnn_multiply(const chi_dnn_gemm *p);

// NULL in *out and CHOIR_UNSUPPORTED where oneDNN cannot; no text is recorded for that.
choir_status chi_dnn_new(const chi_dnn_problem *problem, chi_dnn **out);
void chi_dnn_free(chi_dnn *d); // NULL is fine
size_t chi_dnn_scratch(const chi_dnn *d); // bytes
choir_status chi_dnn_run(chi_dnn *d, const chi_dnn_operands *operands);
