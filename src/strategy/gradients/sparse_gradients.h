// Gradients that are rows.
#pragma once

#include "strategy/gradients/pending.h"

// Keeps what a replica gave.
choir_status chi_sparse_gradients_add(
		chi_sparse_gradients *rows, int replica, const choir_tensor *slices);
bool chi_sparse_gradients_have(const chi_sparse_gradients *rows, int replica);
void chi_sparse_gradients_clear(chi_sparse_gradients *rows);
// Notes how each gradient of u was given, by the replicas of all workers.
choir_status chi_sparse_gradients_exchange_kinds(chi_pending_update *u);
// Before the first write: adds up all replicas' rows of gradient i, or makes them tensors if one
// replica gave a tensor. by is the device whose thread, and so whose stream, this is.
choir_status chi_sparse_gradients_prepare(chi_pending_update *u, size_t i, int by);
// Updates the variables whose rows were added up and that do not touch all rows, or that other
// workers use.
choir_status chi_sparse_gradients_update(chi_pending_update *u, int by);
// Of a variable that touches all rows: a chunk of the gradient, laid out for a device among zeros.
const void *chi_sparse_gradients_chunk(
		const chi_pending_update *u, int d, size_t i, int64_t first, int64_t count);
