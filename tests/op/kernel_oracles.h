// Products, convolutions and pools as their definitions say, in f64, element by element: what
// plain and oneDNN kernels are compared with; and random problems for both.
#pragma once

#include "op/kernel_calls.h"

typedef struct {
	choir_buffer in[3], out;
	size_t n;
	choir_matmul_attributes matmul;
	choir_dense_attributes dense;
	choir_conv2d_attributes conv2d;
	choir_pool2d_attributes pool2d;
} kernel_case;

// Random cases. f32 or f64; large: some dimensions go beyond the blocks of the plain kernels.
kernel_case matmul_case(choir_dtype dtype, uint64_t *seed, bool large);
kernel_case dense_case(choir_dtype dtype, uint64_t *seed, bool large);
kernel_case conv2d_case(choir_dtype dtype, uint64_t *seed, bool large);
kernel_case pool2d_case(choir_dtype dtype, uint64_t *seed);
// The gradients of a conv2d or pool2d case: the forward case is used up.
kernel_case conv2d_gradient_input_case(kernel_case *forward, uint64_t *seed);
kernel_case conv2d_gradient_filter_case(kernel_case *forward, uint64_t *seed);
void kernel_case_free(kernel_case *c);

// Element i of the result, and in *size the sum of the absolute terms, for tolerances.
double matmul_value(const kernel_case *c, int64_t i, double *size);
double dense_value(const kernel_case *c, int64_t i, double *size);
double conv2d_value(const kernel_case *c, int64_t i, double *size);
double conv2d_gradient_input_value(const kernel_case *c, int64_t i, double *size);
double conv2d_gradient_filter_value(const kernel_case *c, int64_t i, double *size);

// Checks all elements (or, of many, a sample) of the result of a kernel.
typedef double kernel_value(const kernel_case *c, int64_t i, double *size);
void kernel_case_check(const char *what, const kernel_case *c, kernel_value *value);
