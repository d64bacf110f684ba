// Rounds contributions, and widens sums.
#include "strategy/gradients/wire_precision.h"

#include "op/op.h"

choir_status chi_wire_add(
		chi_device_gradient *g, int replica, chi_buffer *buffer, void *data, chi_stream *stream)
{
	return chi_wire_rounds(g)
			? chi_partial_sums_add_rounded(
					  &g->partial_sums, replica, g->variable->dtype, data, stream)
			: chi_partial_sums_add(&g->partial_sums, replica, buffer, data, stream);
}

choir_status chi_wire_prepare(chi_pending_update *u, chi_pending_variable *pv, int k)
{
	chi_sum_buffer *sb = &pv->sum_buffer[k];
	const chi_device_gradient *g = u->device[sb->device].gradient[pv - u->pending];
	if (!chi_wire_rounds(g))
		return CHOIR_OK;
	for (int j = 0; j < k && sb->wire == NULL; j++)
		if (pv->sum_buffer[j].sum == sb->sum)
			chi_buffer_retain(sb->wire = pv->sum_buffer[j].wire);
	if (sb->wire == NULL)
		sb->wire = chi_buffer_new(u->strategy->device[sb->device], chi_wire_bytes(g));
	return chi_made(sb->wire);
}

choir_status chi_wire_widen(const chi_device_gradient *g, chi_stream *stream, int64_t count,
		const void *data, void *to)
{
	const choir_buffer in = { (void *) (uintptr_t) data, g->partial_sums.dtype, { 1, { count } } };
	choir_buffer out = { to, g->variable->dtype, { 1, { count } } };
	return chi_kernel_run(stream, "cast", 1, &in, &out, NULL);
}

static bool is_first_with_sum(const chi_pending_variable *pv, int k)
{
	for (int j = 0; j < k; j++)
		if (pv->sum_buffer[j].sum == pv->sum_buffer[k].sum)
			return false;
	return true;
}

choir_status chi_wire_widen_sums(chi_pending_update *u, int from, int to)
{
	for (size_t i = 0; u->two_pass && i < u->n; i++) {
		const chi_pending_variable *pv = &u->pending[i];
		for (int k = 0; k < pv->variable->copies; k++) {
			const chi_sum_buffer *sb = &pv->sum_buffer[k];
			const int d = sb->device;
			if (sb->wire == NULL || d < from || d >= to || !is_first_with_sum(pv, k) ||
					u->strategy->device[d]->host_memory)
				continue;
			CHOIR_TRY(chi_wire_widen(u->device[d].gradient[i], u->strategy->exchange[d],
					pv->variable->elements, sb->wire->memory, sb->data));
		}
	}
	return CHOIR_OK;
}
