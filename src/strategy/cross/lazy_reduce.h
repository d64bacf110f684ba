// Reductions to a variable. An elementwise update sums and applies chunk by chunk in the cache.
// Other uses compute the whole sum first.
#pragma once

#include "strategy/cross/reduce_to.h"

// Only in host memory, for a single copy.
bool chi_lazy_reduce_possible(choir_cross *x, const chi_reduction *j);
choir_status chi_lazy_reduce_begin(
		choir_cross *x, const chi_communication *communication, chi_reduction *j);
// At most CHI_CHUNK elements, in frame f, on any thread.
choir_tensor *chi_lazy_reduce_chunk(
		const choir_value *v, choir_frame *f, int64_t first, int64_t count);
