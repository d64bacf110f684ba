// The first device adds the worker's parts, and its share of all workers'. The transport knows no
// streams, so the host waits for the stream before each round of messages.
#include "collective/device_sum.h"

bool chi_device_sum_is_possible(const choir_group *group, const choir_cluster *c)
{
	const choir_device_table *kind = group->devices[0]->table;
	for (int i = 0; i < group->members; i++)
		if (group->devices[i]->host_memory || group->devices[i]->table != kind)
			return false;
	return c->transport_table.takes_memory_of(c->self, kind->kind);
}

void chi_device_sum_close(chi_device_sum *s)
{
	chi_partial_sums_clear(&s->nodes);
	chi_buffer_release(s->total);
}

static choir_status add_copy(chi_device_sum *s, choir_partial_sum part, size_t bytes)
{
	chi_buffer *copy = chi_buffer_new(s->stream->device, bytes);
	CHOIR_TRY(chi_made(copy));
	choir_status status = chi_stream_copy(s->stream, copy->memory, part.data, bytes);
	part.data = copy->memory;
	if (status == CHOIR_OK)
		status = chi_partial_sums_add_node(&s->nodes, part, copy, true, s->stream);
	if (chi_atomic32_load(&copy->references) > 1)
		chi_buffer_release(copy);
	else
		chi_buffer_list_add(&s->spent, copy);
	return status;
}

static choir_status add_parts(chi_device_sum *s, const chi_round *round)
{
	for (int i = 0; i < s->group->members; i++) {
		const choir_collective *c = round->c[i];
		chi_stream made_on = { s->group->devices[i], c->stream };
		CHOIR_TRY(chi_stream_wait_event(s->stream, &made_on, round->event[i]));
		for (size_t k = 0; k < c->n; k++)
			CHOIR_TRY(i > 0 ? add_copy(s, c->partial_sums[k], chi_collective_bytes(c))
							: chi_partial_sums_add_node(
									  &s->nodes, c->partial_sums[k], NULL, false, s->stream));
	}
	return CHOIR_OK;
}

choir_status chi_device_sum_reduce(chi_device_sum *s, const chi_round *round)
{
	const choir_collective *c = round->c[0];
	chi_partial_sums_clear(&s->nodes); // of a collective that failed
	chi_partial_sums_begin(
			&s->nodes, s->group->replicas, c->dtype, &(choir_shape){ 1, { c->elements } });
	s->nodes.spent = &s->spent;
	const choir_status status = chi_stream_finish(s->stream, add_parts(s, round));
	chi_buffer_release_all(&s->spent);
	if (status != CHOIR_OK)
		chi_partial_sums_clear(&s->nodes);
	return status;
}

choir_status chi_device_sum_exchange(
		chi_device_sum *s, const chi_round *round, chi_process_group *p)
{
	const choir_collective *c = round->c[0];
	void *to = c->result;
	if (s->nodes.n != chi_process_group_node_count(p, p->worker))
		return choir_fail(
				CHOIR_INTERNAL, "%s: the parts of this worker are not its nodes", c->name);
	if (to == NULL) {
		chi_buffer_release(s->total);
		if ((s->total = chi_buffer_new(s->stream->device, chi_collective_bytes(c))) == NULL)
			return choir_error_status();
		to = s->total->memory;
	}
	const choir_status status =
			chi_process_group_all_reduce_on_device(p, s->stream, c, s->nodes.node, to);
	chi_partial_sums_clear(&s->nodes);
	return status;
}

choir_status chi_device_sum_deliver(chi_device_sum *s, const chi_round *round)
{
	const void *sum = round->c[0]->result != NULL ? round->c[0]->result : s->total->memory;
	choir_status status = CHOIR_OK;
	for (int i = 1; status == CHOIR_OK && i < s->group->members; i++)
		if (round->c[i]->result != NULL)
			status = chi_stream_copy(
					s->stream, round->c[i]->result, sum, chi_collective_bytes(round->c[i]));
	status = chi_stream_finish(s->stream, status);
	for (int i = 0; status == CHOIR_OK && i < s->group->members; i++) {
		const choir_collective *c = round->c[i];
		if (c->done != NULL)
			status = c->done(c->user, 0, c->elements, c->result != NULL ? c->result : sum);
	}
	return status;
}
