// Sums of replicas' values in the canonical tree.
#pragma once

#include "strategy/cross/cross.h"

// Fails with CHOIR_INVALID, recorded in f, if a reduction's op is neither SUM nor MEAN.
choir_status chi_check_reduce_op(choir_frame *f, const char *what, choir_reduce_op op);
// Fails with CHOIR_UNSUPPORTED, recorded in f, if dtype has no such reduction, on any device.
choir_status chi_check_sum(
		choir_frame *f, const char *what, choir_reduce_op op, choir_dtype dtype);
// Checks that n replicas' tensors can be reduced. CHOIR_INVALID, recorded in f, names the first
// bad one; CHOIR_UNSUPPORTED: as above. numbers: plain numbers fit any dtype.
choir_status chi_check_alike(const choir_strategy *s, choir_frame *f, choir_reduce_op op, int n,
		choir_tensor *const tensors[], bool numbers);
// Reduces replicas' tensors to their sum or mean, in f. n: tensors of this process, on any
// devices; the process group has the others. MEAN divides by the sum of counts, or the number of
// tensors if none has a count.
choir_tensor *chi_reduce_tensors(choir_strategy *s, choir_frame *f, const char *what,
		choir_reduce_op op, int n, choir_tensor *const tensors[]);
choir_tensor *chi_for_mean(choir_tensor *t);

// Returns whether a reduction sums t in i32 to detect overflow: u8 in debug builds. The caller
// casts to i32 and passes the sum to chi_checked_sum_to_u8 (CHOIR_INVALID: overflow).
bool chi_needs_checked_sum(choir_reduce_op op, const choir_tensor *t);
choir_tensor *chi_checked_sum_to_u8(choir_tensor *sum, const char *what);
// Sends replica from's component to all workers, in x's frame.
choir_tensor *chi_broadcast(choir_cross *x, choir_value *v, int from);
choir_tensor *chi_read_aggregated(choir_variable *v, choir_frame *f);
// Computes a mean's divisor over all workers: the sum of counts or the number of tensors.
// CHOIR_INVALID: only some have a count.
choir_status chi_mean_divisor(
		choir_strategy *s, choir_frame *f, int n, choir_tensor *const tensors[], double *divisor);
