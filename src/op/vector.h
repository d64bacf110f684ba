// Loops over packed host memory in the widest instructions the machine has, chosen at run time;
// the bits do not depend on the choice. For cross-device sums and elementwise kernels.
#pragma once

#include "choir/tensor.h"

// out[i] = a[i] + b[i]; out may be a or b. f16 and bf16 are added in f32 and rounded to even.
void chi_vector_add(choir_dtype dtype, void *out, const void *a, const void *b, int64_t n);
// The same with stores that go past the caches, for results that no cache will hold: so that
// memory which is written whole is not read before. Other threads see them when it returns.
void chi_vector_add_past(choir_dtype dtype, void *out, const void *a, const void *b, int64_t n);
// The sum of n elements of f32 or f64, runs of 1024 in their dtype and those in f64; not finite if
// one element is not.
double chi_vector_sum(choir_dtype dtype, const void *x, int64_t n);
