// Lazy reductions to a variable. An elementwise update sums and applies chunk by chunk in the
// cache, so the sum is never written to memory. Any other use first computes the value
// (chi_value_materialize).
#pragma once

#include "strategy/cross/reduce_to.h"

// Returns whether a checked reduction can be lazy: large, in host memory, for a single copy, with
// inputs that cannot change.
bool chi_lazy_reduce_possible(choir_cross *x, const chi_reduction *j);
// Makes j's result a lazy value. Errors are recorded in x's frame.
choir_status chi_lazy_reduce_begin(
		choir_cross *x, const chi_communication *communication, chi_reduction *j);
// Computes up to CHI_CHUNK elements of a lazy value in frame f, on any thread.
choir_tensor *chi_lazy_reduce_chunk(
		const choir_value *v, choir_frame *f, int64_t first, int64_t count);
