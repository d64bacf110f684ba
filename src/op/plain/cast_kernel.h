// Casts between f64 and any dtype.
#pragma once

#include "op/plain/plain.h"

// Floats are rounded to even, integers truncated and saturated (a NAN is 0); bool is x != 0.
void chi_narrow(choir_dtype dtype, void *out, const double *x, int64_t n);
// Exactly except for large i64.
void chi_widen(choir_dtype dtype, double *out, const void *x, int64_t n);
