// Gradients summed in f16 or bf16 (.wire). Contributions are rounded. A sum of two nodes is
// computed in f32 and rounded, so all collectives give the same bits. The optimizer gets the
// widened sum.
#pragma once

#include "strategy/gradients/pending_update.h"

static inline bool chi_wire_rounds(const chi_device_gradient *g)
{
	return g->partial_sums.dtype != g->variable->dtype;
}
static inline size_t chi_wire_bytes(const chi_device_gradient *g)
{
	return (size_t) g->variable->elements * chi_dtype_size(g->partial_sums.dtype);
}

choir_status chi_wire_add(
		chi_device_gradient *g, int replica, chi_buffer *buffer, void *data, chi_stream *stream);
choir_status chi_wire_prepare(chi_pending_update *u, chi_pending_variable *pv, int k);
choir_status chi_wire_widen(const chi_device_gradient *g, chi_stream *stream, int64_t count,
		const void *data, void *to);
choir_status chi_wire_widen_sums(chi_pending_update *u, int from, int to);
