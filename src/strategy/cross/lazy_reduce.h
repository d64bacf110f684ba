// Reductions to a variable that nobody has needed yet. An elementwise update that is given one
// makes it slice by slice, so that a sum is updated while it is in the cache and is never written
// to memory; whatever else looks at its value has it made before (chi_value_materialize).
#pragma once

#include "strategy/cross/reduce_to.h"

// Whether j, which has been checked, can wait: it is large, all of it lies in host memory, and
// nothing that it adds up can change meanwhile.
bool chi_lazy_reduce_possible(choir_cross *x, const chi_reduction *j);
// Makes j's result a value with memory, whose elements wait; a failure is in x's frame.
choir_status chi_lazy_reduce_begin(
		choir_cross *x, const chi_communication *communication, chi_reduction *j);
// Elements first .. first + count - 1 of v, which waits, in frame f: at most a slice. NULL:
// recorded in f. Threads: any, at the same time.
choir_tensor *chi_lazy_reduce_chunk(
		const choir_value *v, choir_frame *f, int64_t first, int64_t count);
