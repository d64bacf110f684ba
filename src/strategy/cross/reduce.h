// Sums over replicas of values that are at hand, in the canonical tree.
#pragma once

#include "strategy/cross/cross.h"

// CHOIR_INVALID, recorded in f, if op is neither SUM nor MEAN. what: the call.
choir_status chi_check_reduce_op(choir_frame *f, const char *what, choir_reduce_op op);
// Whether dtype has a sum or mean over replicas: CHOIR_UNSUPPORTED, recorded in f, with what in
// front. Whoever adds up asks first, so that a dtype's answer depends neither on how many devices
// carry the replicas nor on the way that values go.
choir_status chi_check_sum(
		choir_frame *f, const char *what, choir_reduce_op op, choir_dtype dtype);
// Whether these, of replicas 0 to n - 1, can be added up: CHOIR_INVALID, recorded in f, names the
// first that is missing or differs, CHOIR_UNSUPPORTED as above. numbers: a plain number goes with
// any dtype.
choir_status chi_check_alike(const choir_strategy *s, choir_frame *f, choir_reduce_op op, int n,
		choir_tensor *const tensors[], bool numbers);
// The sum or mean of the tensors of s's replicas, of which n are here (on whatever devices) and
// others with its peers, as a tensor of frame f. MEAN divides by the counts if all have one, by
// the number of tensors if none has. what: in messages. NULL: recorded in f.
choir_tensor *chi_reduce_tensors(choir_strategy *s, choir_frame *f, const char *what,
		choir_reduce_op op, int n, choir_tensor *const tensors[]);
// t in the dtype of its means: integers have floating ones.
choir_tensor *chi_for_mean(choir_tensor *t);

// Whether sums of t's dtype are made in i32 first, so that an overflow is seen: u8, in debug
// builds. What is summed is then cast to i32, and the sum is narrowed, which fails with
// CHOIR_INVALID.
bool chi_needs_checked_sum(choir_reduce_op op, const choir_tensor *t);
choir_tensor *chi_checked_sum_to_u8(choir_tensor *sum, const char *what);
// Among workers: the component of a value that replica from has, by its id, in x's frame on all of
// them. NULL: recorded there.
choir_tensor *chi_broadcast(choir_cross *x, choir_value *v, int from);
// The value of an ON_READ variable by its aggregation.
choir_tensor *chi_read_aggregated(choir_variable *v, choir_frame *f);
// By what a mean over these is to be divided: the sum of counts, or how many there are, with those
// of peers; CHOIR_INVALID: a mixture. s: whose replicas these are.
choir_status chi_mean_divisor(
		choir_strategy *s, choir_frame *f, int n, choir_tensor *const tensors[], double *divisor);
