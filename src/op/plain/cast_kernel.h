// Numbers of any dtype as f64, and back.
#pragma once

#include "op/plain/plain.h"

// Writes n numbers as the dtype: rounded to even, integers truncated and saturated (a NAN is 0),
// bool whether it is not 0.
void chi_narrow(choir_dtype dtype, void *out, const double *x, int64_t n);
// Numbers of the dtype as f64, which holds all of them but large i64 exactly.
void chi_widen(choir_dtype dtype, double *out, const void *x, int64_t n);
