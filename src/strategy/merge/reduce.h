// Sums over replicas of values that are at hand, in the canonical tree.
#pragma once

#include "strategy/merge/merge.h"

// The sum or mean of n tensors (one a replica, on whatever devices) as a tensor of frame f. MEAN
// divides by the counts if all have one, by n if none has. NULL: recorded in f.
choir_tensor *chi_reduce_tensors(choir_frame *f, choir_reduce_op op, int n,
		choir_tensor *const tensors[]);
// t in the dtype of its means: integers have floating ones.
choir_tensor *chi_for_mean(choir_tensor *t);
// The value of an ON_READ variable by its aggregation.
choir_tensor *chi_read_aggregated(choir_variable *v, choir_frame *f);
// By what a mean over these is to be divided: the sum of counts, or n; CHOIR_INVALID: a mixture.
choir_status chi_mean_divisor(
		choir_frame *f, int n, choir_tensor *const tensors[], double *divisor);
