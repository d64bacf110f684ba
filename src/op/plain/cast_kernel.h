// Casts from and to f64.
#pragma once

#include "op/plain/plain.h"

// Floats round to even, integers truncate and saturate (a NAN is 0); bool is x != 0.
void chi_narrow(choir_dtype dtype, void *out, const double *x, int64_t n);
// Exact but for large i64.
void chi_widen(choir_dtype dtype, double *out, const void *x, int64_t n);
