// Sums of replicas' values in the canonical tree.
#pragma once

#include "strategy/cross/cross.h"

choir_status chi_check_reduce_op(choir_frame *f, const char *what, choir_reduce_op op);
choir_status chi_check_sum(
		choir_frame *f, const char *what, choir_reduce_op op, choir_dtype dtype);
// The error names the first bad tensor. numbers: plain numbers fit any dtype.
choir_status chi_check_alike(const choir_strategy *s, choir_frame *f, choir_reduce_op op, int n,
		choir_tensor *const tensors[], bool numbers);
// tensors: this process's. MEAN divides by the sum of counts, or without any by the number of
// tensors.
choir_tensor *chi_reduce_tensors(choir_strategy *s, choir_frame *f, const char *what,
		choir_reduce_op op, int n, choir_tensor *const tensors[]);
choir_tensor *chi_for_mean(choir_tensor *t);
// f16 and bf16 are summed in f32, and rounded once.
choir_tensor *chi_sum_to_half(choir_tensor *sum, choir_dtype dtype);

// u8 in debug builds: cast to i32, and pass the sum to chi_checked_sum_to_u8.
bool chi_needs_checked_sum(choir_reduce_op op, const choir_tensor *t);
choir_tensor *chi_checked_sum_to_u8(choir_tensor *sum, const char *what);
choir_tensor *chi_broadcast(choir_cross *x, choir_value *v, int from);
choir_tensor *chi_read_aggregated(choir_variable *v, choir_frame *f);
// CHOIR_INVALID: only some have a count.
choir_status chi_mean_divisor(
		choir_strategy *s, choir_frame *f, int n, choir_tensor *const tensors[], double *divisor);
