// Reductions of IndexedSlices over replicas.
#pragma once

#include "strategy/cross/cross.h"

// To slices, or to a smaller dense tensor if how allows it. n: replicas here. divisor: for a mean,
// else 1.
choir_tensor *chi_reduce_slices(choir_strategy *s, choir_frame *f, choir_reduce_op op,
		choir_slices_result how, int n, choir_tensor *const tensors[], double divisor);
choir_value *chi_dense_value(choir_cross *x, choir_value *v);
// A merge call, without a gradient.
choir_tensor *chi_all_reduce_slices(choir_replica *r, choir_reduce_op op, choir_tensor *t);
