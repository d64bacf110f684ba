// Reference products, convolutions and pools in f64, computed element by element from their
// definitions, and random cases for plain and oneDNN kernels.
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

// Random cases, f32 or f64. large: some dimensions exceed the blocks of the plain kernels.
kernel_case matmul_case(choir_dtype dtype, uint64_t *seed, bool large);
kernel_case dense_case(choir_dtype dtype, uint64_t *seed, bool large);
kernel_case conv2d_case(choir_dtype dtype, uint64_t *seed, bool large);
kernel_case pool2d_case(choir_dtype dtype, uint64_t *seed);
// Make the gradient case of a forward case, and consume the latter.
kernel_case conv2d_gradient_input_case(kernel_case *forward, uint64_t *seed);
kernel_case conv2d_gradient_filter_case(kernel_case *forward, uint64_t *seed);
void kernel_case_free(kernel_case *c);

// Return element i of the result. *size becomes the sum of the absolute terms, for tolerances.
double matmul_value(const kernel_case *c, int64_t i, double *size);
double dense_value(const kernel_case *c, int64_t i, double *size);
double conv2d_value(const kernel_case *c, int64_t i, double *size);
double conv2d_gradient_input_value(const kernel_case *c, int64_t i, double *size);
double conv2d_gradient_filter_value(const kernel_case *c, int64_t i, double *size);

// Checks all elements of a case's result, or a sample of many.
typedef double kernel_value(const kernel_case *c, int64_t i, double *size);
void kernel_case_check(const char *what, const kernel_case *c, kernel_value *value);
