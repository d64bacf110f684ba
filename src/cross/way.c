// The common part of all ways of reducing.
#include "cross/way.h"

#include "cross/tree.h"
#include "op/op.h"
#include "op/vector.h"

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

// The divisor as a scalar on a device that the host cannot write.
static choir_status divide_there(
		chi_stream *stream, const choir_buffer in[2], choir_buffer *out, size_t size)
{
	chi_buffer *by = chi_buffer_new(stream->device, size);
	if (by == NULL)
		return choir_error_status();
	const choir_buffer there[2] = { in[0], { by->memory, in[1].dtype, in[1].shape } };
	choir_status status = chi_stream_copy(stream, by->memory, in[1].data, size);
	if (status == CHOIR_OK)
		status = chi_kernel_run(stream, "divide", 2, there, out, NULL);
	// Also after a failure: a copy that is queued reads the caller's memory.
	const choir_status waited = chi_stream_wait(stream);
	chi_buffer_release(by);
	return status == CHOIR_OK ? waited : status;
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
	if (stream->device->host_memory)
		return chi_kernel_run(stream, "divide", 2, in, &out, NULL);
	return divide_there(stream, in, &out, chi_dtype_size(dtype));
}

// A walk over all parts of all members, in the order of replicas.
typedef struct {
	const chi_slice_sum *sum;
	choir_dtype dtype;
	int member;
	size_t index;
	bool broken;
} walk;

static const choir_part *next_part(walk *w)
{
	const chi_slice_sum *s = w->sum;
	while (w->member < s->members && w->index == s->c[w->member]->n) {
		w->member++;
		w->index = 0;
	}
	return w->member == s->members ? NULL : &s->c[w->member]->parts[w->index];
}

// The sum of the node [lo, hi): a part as it is, or the sum of its halves in to.
static const void *sum_node(walk *w, int lo, int hi, char *to, char *spare)
{
	const choir_part *p = next_part(w);
	if (p != NULL && p->lo == lo && p->hi == hi) {
		w->index++;
		return chi_element(p->data, w->dtype, w->sum->first);
	}
	if (p == NULL || hi - lo < 2 || p->lo != lo) {
		w->broken = true;
		return to;
	}
	const int middle = chi_tree_split(lo, hi);
	const void *left = sum_node(w, lo, middle, to, spare);
	const void *right = w->broken ? to : sum_node(w, middle, hi, spare, spare + CHI_WAY_SLICE * 8);
	if (!w->broken)
		chi_vector_add(w->dtype, to, left, right, w->sum->count);
	return to;
}

choir_status chi_way_sum(const chi_slice_sum *s, chi_stream *stream, const void **sum)
{
	const choir_collective *c = s->c[0];
	walk w = { .sum = s, .dtype = c->dtype };
	*sum = sum_node(&w, 0, s->replicas, s->to, s->scratch);
	if (w.broken || next_part(&w) != NULL)
		return choir_fail(CHOIR_INTERNAL, "%s: the parts do not cover the %d replicas", c->name,
				s->replicas);
	if (c->divisor == 1)
		return CHOIR_OK;
	if (*sum != s->to)
		memcpy(s->to, *sum, (size_t) s->count * chi_dtype_size(c->dtype));
	*sum = s->to;
	return chi_way_divide(stream, c->dtype, s->to, c->divisor, s->count);
}
