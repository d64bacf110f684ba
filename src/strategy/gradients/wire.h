// Gradients that are summed in f16 or bf16 (.wire). Each contribution is rounded when it is added.
// A sum of two nodes is computed in f32 and rounded, as in any sum of 16-bit tensors, so all
// collectives give the same bits. The complete sum is widened before the optimizer gets it.
#pragma once

#include "strategy/gradients/pending.h"

// Returns whether the sums of g are rounded.
static inline bool chi_wire_rounds(const chi_device_gradient *g)
{
	return g->partial_sums.dtype != g->variable->dtype;
}
static inline size_t chi_wire_bytes(const chi_device_gradient *g)
{
	return (size_t) g->variable->elements * chi_dtype_size(g->partial_sums.dtype);
}

// Adds a replica's contribution, as chi_partial_sums_add does.
choir_status chi_wire_add(
		chi_device_gradient *g, int replica, chi_buffer *buffer, void *data, chi_stream *stream);
// Prepares memory for the rounded sum of copy k, next to its sum in f32.
choir_status chi_wire_prepare(chi_pending_update *u, chi_pending_variable *pv, int k);
// Widens elements of a rounded sum.
choir_status chi_wire_widen(const chi_device_gradient *g, chi_stream *stream, int64_t count,
		const void *data, void *to);
// Widens the sums on devices from .. to - 1 that have memory of their own.
choir_status chi_wire_widen_sums(chi_pending_update *u, int from, int to);
