// Cargo and the stations that it passes. Copies and additions are queued on a stream of the
// station's own, since the members' are their threads'; they are done when a function returns, so
// nothing that a cargo leaves behind is still used.
#include "cross/relay.h"

#include "base/alloc.h"

choir_status chi_relay_open(
		chi_relay *r, const choir_group *group, chi_piece_fn *piece, int pieces)
{
	CHOIR_TRY(chi_way_open(&r->way, group, piece, pieces));
	r->station = chi_alloc_array((size_t) group->members, sizeof *r->station);
	if (r->station == NULL)
		return choir_error_status();
	for (int i = 0; i < group->members; i++) {
		r->station[i].stream = chi_stream_new(group->devices[i]);
		if (r->station[i].stream == NULL)
			return choir_error_status();
		chi_mutex_init(&r->station[i].lock, CHI_RANK_CROSS, "station");
	}
	return CHOIR_OK;
}

void chi_relay_close(void *self)
{
	chi_relay *r = self;
	for (int i = 0; r->station != NULL && i < r->way.group->members; i++) {
		if (r->station[i].stream == NULL)
			continue;
		chi_stream_free(r->station[i].stream);
		chi_mutex_destroy(&r->station[i].lock);
	}
	chi_free(r->station);
	chi_way_close(self);
}

int chi_relay_root(const chi_relay *r, const choir_collective *c, int64_t index)
{
	return c->kind == CHOIR_ALL_REDUCE ? (int) (index % r->way.group->members) : c->root;
}

static choir_device *device_of(const chi_cargo *g, int member)
{
	return g->relay->way.group->devices[member];
}

static size_t bytes_of(const chi_cargo *g)
{
	return (size_t) g->count * chi_dtype_size(g->c->dtype);
}

void chi_cargo_begin(chi_cargo *g, chi_relay *r, const chi_slot *slot, int64_t index, int at)
{
	g->relay = r;
	g->slot = slot;
	g->c = slot->c[at];
	g->at = at;
	g->data = NULL;
	chi_way_cut(&r->way, g->c, index, &g->first, &g->count);
	chi_fold_begin(
			&g->fold, r->way.group->replicas, g->c->dtype, &(choir_shape){ 1, { g->count } });
}

void chi_cargo_end(chi_cargo *g)
{
	chi_fold_clear(&g->fold);
}

// A copy in the cargo's place of what lies on a device with other memory. NULL after a failure.
static chi_buffer *fetch(chi_cargo *g, chi_stream *stream, choir_device *from, const void *data)
{
	chi_buffer *b = chi_buffer_new(stream->device, bytes_of(g));
	if (b == NULL ||
			chi_device_copy(stream, stream->device, b->memory, from, data, bytes_of(g)) ==
					CHOIR_OK)
		return b;
	chi_buffer_release(b);
	return NULL;
}

// Adds one node, which lies on from's device, with the station's lock held.
static choir_status add(chi_cargo *g, chi_stream *stream, choir_device *from, choir_part node,
		chi_buffer *buffer, bool own)
{
	if (chi_device_shares(from, stream->device))
		return chi_fold_add_node(&g->fold, node, buffer, own, stream);
	chi_buffer *copy = fetch(g, stream, from, node.data);
	if (copy == NULL)
		return choir_error_status();
	node.data = copy->memory;
	const choir_status status = chi_fold_add_node(&g->fold, node, copy, true, stream);
	chi_buffer_release(copy);
	return status;
}

static choir_status leave(chi_station *s, choir_status status)
{
	chi_error first;
	chi_error_save(&first);
	const choir_status waited = chi_stream_wait(s->stream);
	if (status != CHOIR_OK)
		chi_error_restore(&first);
	chi_mutex_unlock(&s->lock);
	return status == CHOIR_OK ? waited : status;
}

choir_status chi_cargo_take(chi_cargo *g, int member)
{
	const choir_collective *c = g->slot->c[member];
	chi_stream made_on = { device_of(g, member), c->stream };
	CHOIR_TRY(chi_stream_wait(&made_on));
	chi_station *s = &g->relay->station[g->at];
	choir_status status = CHOIR_OK;
	chi_mutex_lock(&s->lock);
	for (size_t i = 0; status == CHOIR_OK && i < c->n; i++) {
		choir_part node = c->parts[i];
		node.data = chi_element(node.data, c->dtype, g->first);
		status = add(g, s->stream, made_on.device, node, NULL, false);
	}
	return leave(s, status);
}

choir_status chi_cargo_take_whole(chi_cargo *g)
{
	chi_stream made_on = { device_of(g, g->at), g->c->stream };
	g->data = chi_element(g->c->parts[0].data, g->c->dtype, g->first);
	return chi_stream_wait(&made_on);
}

choir_status chi_cargo_join(chi_cargo *g, const chi_cargo *other)
{
	chi_station *s = &g->relay->station[g->at];
	const chi_fold *f = &other->fold;
	choir_status status = CHOIR_OK;
	chi_mutex_lock(&s->lock);
	for (int i = 0; status == CHOIR_OK && i < f->n; i++)
		status = add(g, s->stream, device_of(g, other->at), f->part[i], f->buffer[i], false);
	return leave(s, status);
}

choir_status chi_cargo_move(chi_cargo *g, int to)
{
	chi_cargo there = *g;
	there.at = to;
	if (chi_device_shares(device_of(g, g->at), device_of(g, to))) {
		g->at = to;
		return CHOIR_OK;
	}
	chi_fold_begin(&there.fold, g->fold.replicas, g->fold.dtype, &g->fold.shape);
	const choir_status status = chi_cargo_join(&there, g);
	chi_cargo_end(g);
	*g = there;
	return status;
}

// With the lock held: the sum in memory that may be written.
static choir_status divide(chi_cargo *g, chi_stream *stream)
{
	if (!g->fold.own[0]) {
		chi_buffer *b = chi_buffer_new(stream->device, bytes_of(g));
		if (b == NULL)
			return choir_error_status();
		chi_buffer_release(g->fold.buffer[0]);
		g->fold.buffer[0] = b;
		g->fold.own[0] = true;
		CHOIR_TRY(chi_stream_copy(stream, b->memory, g->data, bytes_of(g)));
		g->data = g->fold.part[0].data = b->memory;
	}
	return chi_way_divide(stream, g->c->dtype, g->fold.part[0].data, g->c->divisor, g->count);
}

choir_status chi_cargo_finish(chi_cargo *g)
{
	const chi_fold *f = &g->fold;
	if (f->n != 1 || f->part[0].lo != 0 || f->part[0].hi != f->replicas)
		return choir_fail(CHOIR_INTERNAL, "%s: the parts do not cover the %d replicas", g->c->name,
				f->replicas);
	g->data = f->part[0].data;
	if (g->c->divisor == 1)
		return CHOIR_OK;
	chi_station *s = &g->relay->station[g->at];
	chi_mutex_lock(&s->lock);
	return leave(s, divide(g, s->stream));
}

choir_status chi_cargo_deliver(
		const chi_cargo *g, int from, const void *data, int member, const void **shown)
{
	const choir_collective *c = g->slot->c[member];
	if (chi_slot_first_with(g->slot, member) != member)
		return CHOIR_OK;
	if (c->result != NULL) {
		void *own = chi_element(c->result, c->dtype, g->first);
		chi_station *s = &g->relay->station[member];
		chi_mutex_lock(&s->lock);
		CHOIR_TRY(leave(s,
				chi_device_copy(s->stream, s->stream->device, own, device_of(g, from), data,
						bytes_of(g))));
		data = own;
		if (shown != NULL)
			*shown = own;
	}
	return c->done == NULL ? CHOIR_OK : c->done(c->user, g->first, g->count, data);
}

choir_status chi_cargo_deliver_all(const chi_cargo *g, int first, int last)
{
	for (int i = first; i < last; i++)
		CHOIR_TRY(chi_cargo_deliver(g, g->at, g->data, i, NULL));
	return CHOIR_OK;
}
