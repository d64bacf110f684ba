// Loops over packed host memory; all instruction sets give the same bits.
#pragma once

#include "choir/tensor.h"

// out may be a or b. f16 and bf16 are added in f32, rounded to even.
void chi_vector_add(choir_dtype dtype, void *out, const void *a, const void *b, int64_t n);
// By nontemporal stores: for results that no cache will hold. Other threads see them on return.
void chi_vector_add_past(choir_dtype dtype, void *out, const void *a, const void *b, int64_t n);
// To f16 or bf16, as a cast does, and back. out may be x.
void chi_vector_round(choir_dtype dtype, float *out, const float *x, int64_t n);
// f32 or f64: runs of 1024 in the dtype, their sums in f64. Not finite if an element is not.
double chi_vector_sum(choir_dtype dtype, const void *x, int64_t n);
