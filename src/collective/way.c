// The common part of all ways of reducing.
#include "collective/way.h"

#include "collective/host.h"
#include "op/op.h"

#include <string.h>

choir_status chi_algorithm_open(
		chi_algorithm *w, const choir_group *group, chi_chunk_fn *chunk, int chunks)
{
	w->group = group;
	w->do_chunk = chunk;
	w->max_chunks = chunks;
	return chi_rendezvous_open(&w->rendezvous, group->members);
}

void chi_algorithm_close(void *self)
{
	chi_rendezvous_close(&((chi_algorithm *) self)->rendezvous);
}

static int64_t length_of_chunks(const chi_algorithm *w, int64_t elements)
{
	const int64_t slices = elements / CHI_CHUNK + (elements % CHI_CHUNK != 0);
	if (w->max_chunks == 0 || slices == 0)
		return CHI_CHUNK;
	return (slices / w->max_chunks + (slices % w->max_chunks != 0)) * CHI_CHUNK;
}

choir_status chi_algorithm_join(
		void *self, int member, const choir_collective *c, uint64_t *request)
{
	chi_algorithm *w = self;
	const int64_t length = length_of_chunks(w, c->elements);
	const int64_t chunks = c->elements <= 0 ? 1 : (c->elements - 1) / length + 1;
	CHOIR_TRY(chi_rendezvous_record_event(&w->rendezvous, member, w->group->devices[member], c));
	return chi_rendezvous_join(&w->rendezvous, member, c, chunks, request);
}

choir_status chi_algorithm_wait(void *self, int member, uint64_t request, double seconds)
{
	chi_algorithm *w = self;
	return chi_rendezvous_wait(&w->rendezvous, member, request, seconds, w->do_chunk, self);
}

void chi_algorithm_abort(void *self)
{
	chi_rendezvous_abort(&((chi_algorithm *) self)->rendezvous);
}

void chi_algorithm_reset(void *self)
{
	chi_rendezvous_reset(&((chi_algorithm *) self)->rendezvous);
}

void chi_algorithm_chunk(const chi_algorithm *w, const choir_collective *c, int64_t index,
		int64_t *first, int64_t *count)
{
	const int64_t length = length_of_chunks(w, c->elements);
	*first = index * length;
	*count = c->elements - *first < length ? c->elements - *first : length;
}

int chi_group_memories(const choir_group *group)
{
	int own = 0;
	for (int i = 0; i < group->members; i++) {
		bool shared = false;
		for (int k = 0; k < i && !shared; k++)
			shared = chi_device_shares(group->devices[i], group->devices[k]);
		own += !shared;
	}
	return own;
}

choir_status chi_algorithm_divide(
		chi_stream *stream, choir_dtype dtype, void *data, double divisor, int64_t n)
{
	float single = (float) divisor;
	void *by = dtype == CHOIR_F32 ? (void *) &single : (void *) &divisor;
	if (divisor == 1)
		return CHOIR_OK;
	const choir_buffer in[2] = { { data, dtype, { 1, { n } } }, { by, dtype, { 0, { 0 } } } };
	choir_buffer out = in[0];
	return chi_kernel_run(stream, "divide", 2, in, &out, NULL);
}

choir_status chi_chunk_sum_make(const chi_chunk_sum *s, chi_stream *stream, const void **sum)
{
	const choir_collective *c = s->c[0];
	chi_tree_sum w = chi_tree_sum_begin(s->c, s->members, c->dtype, s->first, s->count);
	w.nontemporal = s->nontemporal && c->divisor == 1;
	*sum = chi_tree_sum_node(&w, 0, s->replicas, s->to, s->scratch);
	if (w.broken || chi_tree_sum_next(&w) != NULL)
		return choir_fail(CHOIR_INTERNAL, "%s: the parts do not cover the %d replicas", c->name,
				s->replicas);
	if (c->divisor == 1)
		return CHOIR_OK;
	if (*sum != s->to)
		memcpy(s->to, *sum, (size_t) s->count * chi_dtype_size(c->dtype));
	*sum = s->to;
	return chi_algorithm_divide(stream, c->dtype, s->to, c->divisor, s->count);
}
