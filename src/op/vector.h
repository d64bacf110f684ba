// Loops over packed host memory, in the machine's widest instruction set. All sets give the same
// bits.
#pragma once

#include "choir/tensor.h"

// Adds vectors: out[i] = a[i] + b[i]; out may be a or b. f16 and bf16 are added in f32, rounded to
// even.
void chi_vector_add(choir_dtype dtype, void *out, const void *a, const void *b, int64_t n);
// Adds vectors by nontemporal stores: for results that no cache will hold. Other threads see them
// when it returns.
void chi_vector_add_past(choir_dtype dtype, void *out, const void *a, const void *b, int64_t n);
// Rounds n floats to f16 or bf16, as a cast does, and widens them again. out may be x.
void chi_vector_round(choir_dtype dtype, float *out, const float *x, int64_t n);
// Sums a vector of f32 or f64: runs of 1024 in the dtype, their sums in f64. Not finite if an
// element is not.
double chi_vector_sum(choir_dtype dtype, const void *x, int64_t n);
