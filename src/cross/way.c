// The common part of all ways of reducing.
#include "cross/way.h"

#include "cross/host.h"
#include "op/op.h"

#include <string.h>

choir_status chi_way_open(chi_way *w, const choir_group *group, chi_piece_fn *piece, int pieces)
{
	w->group = group;
	w->piece = piece;
	w->pieces = pieces;
	return chi_meeting_open(&w->meeting, group->members);
}

void chi_way_close(void *self)
{
	chi_meeting_close(&((chi_way *) self)->meeting);
}

static int64_t length_of_pieces(const chi_way *w, int64_t elements)
{
	const int64_t slices = elements / CHI_WAY_SLICE + (elements % CHI_WAY_SLICE != 0);
	if (w->pieces == 0 || slices == 0)
		return CHI_WAY_SLICE;
	return (slices / w->pieces + (slices % w->pieces != 0)) * CHI_WAY_SLICE;
}

choir_status chi_way_join(void *self, int member, const choir_collective *c, uint64_t *ticket)
{
	chi_way *w = self;
	const int64_t length = length_of_pieces(w, c->elements);
	const int64_t pieces = c->elements <= 0 ? 1 : (c->elements - 1) / length + 1;
	CHOIR_TRY(chi_meeting_mark(&w->meeting, member, w->group->devices[member], c));
	return chi_meeting_join(&w->meeting, member, c, pieces, ticket);
}

choir_status chi_way_wait(void *self, int member, uint64_t ticket, double seconds)
{
	chi_way *w = self;
	return chi_meeting_wait(&w->meeting, member, ticket, seconds, w->piece, self);
}

void chi_way_abort(void *self)
{
	chi_meeting_abort(&((chi_way *) self)->meeting);
}

void chi_way_reset(void *self)
{
	chi_meeting_reset(&((chi_way *) self)->meeting);
}

void chi_way_cut(
		const chi_way *w, const choir_collective *c, int64_t index, int64_t *first, int64_t *count)
{
	const int64_t length = length_of_pieces(w, c->elements);
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

choir_status chi_way_divide(
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

choir_status chi_way_sum(const chi_slice_sum *s, chi_stream *stream, const void **sum)
{
	const choir_collective *c = s->c[0];
	chi_walk w = chi_walk_begin(s->c, s->members, c->dtype, s->first, s->count);
	w.past = s->past && c->divisor == 1;
	*sum = chi_walk_sum(&w, 0, s->replicas, s->to, s->scratch);
	if (w.broken || chi_walk_next(&w) != NULL)
		return choir_fail(CHOIR_INTERNAL, "%s: the parts do not cover the %d replicas", c->name,
				s->replicas);
	if (c->divisor == 1)
		return CHOIR_OK;
	if (*sum != s->to)
		memcpy(s->to, *sum, (size_t) s->count * chi_dtype_size(c->dtype));
	*sum = s->to;
	return chi_way_divide(stream, c->dtype, s->to, c->divisor, s->count);
}
