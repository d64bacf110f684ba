// A simple reference of the canonical tree: sums by plain recursion in host memory, with which
// partial sums, cross-device operations and strategies are compared bit by bit.
#pragma once

#include "choir/tensor.h"

// Sets out = a + b elementwise; out may be a or b.
void oracle_add(choir_dtype dtype, void *out, const void *a, const void *b, int64_t n);
// Divides floating-point elements.
void oracle_divide(choir_dtype dtype, void *x, double by, int64_t n);
// Sums replicas lo .. hi-1; all has their elements, concatenated.
void oracle_sum(choir_dtype dtype, const void *all, int lo, int hi, int64_t n, void *out);
// Sums f32 whose elements and sums of two are rounded to f16 or bf16.
void oracle_sum_rounded(
		choir_dtype rounded, const float *all, int replicas, int64_t n, float *out);
// Fills all with values whose sum depends on the order of adding.
void oracle_fill(choir_dtype dtype, void *all, int replicas, int64_t n, uint64_t seed);
// Writes the maximal nodes within [lo, hi) of the tree over replicas; returns their number.
int oracle_nodes(int replicas, int lo, int hi, int nodes[][2]);
// Returns the bytes of an element.
size_t oracle_size(choir_dtype dtype);
