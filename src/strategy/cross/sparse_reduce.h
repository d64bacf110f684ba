// Reductions of slices (tensor.h) over replicas.
#pragma once

#include "strategy/cross/cross.h"

// The slices of s's replicas, of which n are here, as one tensor of f: slices, or the larger
// tensor where how says so and that is smaller. divisor is a mean's; 1 for a sum. NULL: recorded
// in f.
choir_tensor *chi_reduce_slices(choir_strategy *s, choir_frame *f, choir_reduce_op op,
		choir_slices_result how, int n, choir_tensor *const tensors[], double divisor);
// v, with the larger tensors of what is slices, in frames of x.
choir_value *chi_dense_value(choir_cross *x, choir_value *v);
// An all-reduce of slices, in a replica: a merge call. No gradient flows through.
choir_tensor *chi_all_reduce_slices(choir_replica *r, choir_reduce_op op, choir_tensor *t);
