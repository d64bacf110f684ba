// Gradients that are IndexedSlices: rows of a variable.
#pragma once

#include "strategy/gradients/pending_update.h"

choir_status chi_sparse_gradients_add(
		chi_sparse_gradients *rows, int local_replica, const choir_tensor *slices);
bool chi_sparse_gradients_have(const chi_sparse_gradients *rows, int local_replica);
void chi_sparse_gradients_clear(chi_sparse_gradients *rows);
// Agrees with all workers on each gradient's form: merges sparse rows, or makes them dense if a
// replica's are. by: the device of the thread and stream.
choir_status chi_sparse_gradients_prepare(chi_pending_update *u, int by);
// Except those that touch all rows and are not shared with other workers.
choir_status chi_sparse_gradients_update(chi_pending_update *u, int by);
const void *chi_sparse_gradients_chunk(
		const chi_pending_update *u, int d, size_t i, int64_t first, int64_t count);
