// Lazy reductions to a variable. An elementwise update sums and applies chunk by chunk in the
// cache, so the sum is never in memory. Any other use first computes it (chi_value_materialize).
#pragma once

#include "strategy/cross/reduce_to.h"

// Large, in host memory, for a single copy, with inputs that cannot change.
bool chi_lazy_reduce_possible(choir_cross *x, const chi_reduction *j);
// Errors are recorded in x's frame.
choir_status chi_lazy_reduce_begin(
		choir_cross *x, const chi_communication *communication, chi_reduction *j);
// At most CHI_CHUNK elements, in frame f, on any thread.
choir_tensor *chi_lazy_reduce_chunk(
		const choir_value *v, choir_frame *f, int64_t first, int64_t count);
