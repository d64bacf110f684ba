// Lazy reductions to a variable. An elementwise update computes the sum chunk by chunk and
// applies each chunk while it is in the cache, so the sum is never written to memory. Any other
// use of the value first computes it (chi_value_materialize).
#pragma once

#include "strategy/cross/reduce_to.h"

// Whether the checked reduction j can be lazy: it must be large, in host memory, for a single
// copy, and its inputs must not change.
bool chi_lazy_reduce_possible(choir_cross *x, const chi_reduction *j);
// Makes j's result a lazy value with memory. Errors are recorded in x's frame.
choir_status chi_lazy_reduce_begin(
		choir_cross *x, const chi_communication *communication, chi_reduction *j);
// Computes elements first .. first + count - 1 of the lazy value v in frame f; count is at most
// CHI_CHUNK. NULL: the error is recorded in f. Any threads, concurrently.
choir_tensor *chi_lazy_reduce_chunk(
		const choir_value *v, choir_frame *f, int64_t first, int64_t count);
