// The host never waits while it holds a lock. Chunks have their own streams, because only a
// member's thread may use the member's stream, which waits for all of them. So have results from
// other members: a member's next sum does not wait for them.
#include "collective/chunk_transfer.h"

#include "op/op.h"

choir_status chi_chunk_algorithm_open(
		chi_chunk_algorithm *r, const choir_group *group, chi_chunk_fn *chunk, int chunks)
{
	chi_mutex_init(&r->kept_lock, CHI_RANK_CROSS, "kept memory");
	CHOIR_TRY(chi_algorithm_open(&r->base, group, chunk, chunks));
	r->streams = 2 * group->members;
	r->chunk_stream = chi_alloc_array((size_t) r->streams, sizeof *r->chunk_stream);
	CHOIR_TRY(chi_made(r->chunk_stream));
	const choir_device_table *kind = group->devices[0]->table;
	r->all_queued = !kind->immediate && !kind->host_memory;
	for (int i = 0; i < r->streams; i++) {
		choir_device *d = group->devices[i % group->members];
		r->all_queued = r->all_queued && d->table == kind;
		r->chunk_stream[i].stream = chi_stream_new(d);
		CHOIR_TRY(chi_made(r->chunk_stream[i].stream));
		chi_mutex_init(&r->chunk_stream[i].lock, CHI_RANK_CROSS, "chunk stream");
	}
	return CHOIR_OK;
}

static void release_kept(chi_chunk_algorithm *r)
{
	for (; r->n_kept > 0; r->n_kept--)
		chi_buffer_release(r->kept[r->n_kept - 1].buffer);
}

void chi_chunk_algorithm_close(void *self)
{
	chi_chunk_algorithm *r = self;
	for (int i = 0; r->chunk_stream != NULL && i < r->streams; i++) {
		if (r->chunk_stream[i].stream == NULL)
			continue;
		chi_stream_free(r->chunk_stream[i].stream);
		chi_mutex_destroy(&r->chunk_stream[i].lock);
	}
	release_kept(r);
	chi_free(r->chunk_stream);
	chi_mutex_destroy(&r->kept_lock);
	chi_algorithm_close(self);
}

static choir_status mark_chunk_stream(chi_chunk_algorithm *r, int i, uint64_t *event)
{
	chi_mutex_lock(&r->chunk_stream[i].lock);
	const choir_status status = chi_stream_record_event(r->chunk_stream[i].stream, event);
	chi_mutex_unlock(&r->chunk_stream[i].lock);
	return status;
}

choir_status chi_chunk_algorithm_wait(void *self, int member, uint64_t request, double seconds)
{
	chi_chunk_algorithm *r = self;
	const choir_collective *c = chi_rendezvous_joined(&r->base.rendezvous, member, request);
	CHOIR_TRY(chi_algorithm_wait(self, member, request, seconds));
	chi_stream own = { r->base.group->devices[member], c->stream };
	uint64_t event;
	// Streams of results follow those of sums. What this member does is done first.
	const int members = r->base.group->members;
	for (int k = 0; c->in_stream && r->all_queued && k < r->streams; k++) {
		const int i = (member + k) % members + (k < members ? members : 0);
		CHOIR_TRY(mark_chunk_stream(r, i, &event));
		CHOIR_TRY(chi_stream_wait_event(&own, r->chunk_stream[i].stream, event));
	}
	return CHOIR_OK;
}

int chi_chunk_algorithm_root(
		const chi_chunk_algorithm *r, const choir_collective *c, int64_t index)
{
	return c->kind == CHOIR_ALL_REDUCE ? (int) (index % r->base.group->members) : c->root;
}

void chi_chunk_task_begin(
		chi_chunk_task *h, chi_chunk_algorithm *r, const chi_round *round, int64_t index, int any)
{
	const choir_collective *c = round->c[any];
	*h = (chi_chunk_task){ .algorithm = r, .round = round, .c = c, .at = CHOIR_NONE };
	chi_algorithm_chunk(&r->base, c, index, &h->first, &h->count);
}

static chi_stream *stream_of(const chi_chunk_task *h, int chunk_stream)
{
	return h->algorithm->chunk_stream[chunk_stream].stream;
}

// After other's event (other may be NULL) and the chunk's previous operation. Locks member at's
// stream. For other kinds of streams the host waits first.
static choir_status enter(chi_chunk_task *h, int at, chi_stream *other, uint64_t event)
{
	chi_stream *own = stream_of(h, at);
	chi_stream *before = h->at == CHOIR_NONE || h->at == at ? NULL : stream_of(h, h->at);
	chi_stream *after[2] = { other, before };
	const uint64_t until[2] = { event, h->event };
	for (int i = 0; i < 2; i++)
		if (after[i] != NULL && after[i]->device->table != own->device->table) {
			CHOIR_TRY(chi_stream_wait_up_to(after[i], until[i]));
			after[i] = NULL;
		}
	chi_mutex_lock(&h->algorithm->chunk_stream[at].lock);
	choir_status status = CHOIR_OK;
	for (int i = 0; i < 2 && status == CHOIR_OK; i++)
		if (after[i] != NULL)
			status = chi_stream_wait_event(own, after[i], until[i]);
	if (status != CHOIR_OK)
		chi_mutex_unlock(&h->algorithm->chunk_stream[at].lock);
	return status;
}

static choir_status leave(chi_chunk_task *h, int at, choir_status status)
{
	chi_error first;
	chi_error_save(&first);
	const choir_status marked = chi_stream_record_event(stream_of(h, at), &h->event);
	if (status != CHOIR_OK)
		chi_error_restore(&first);
	chi_mutex_unlock(&h->algorithm->chunk_stream[at].lock);
	h->at = at;
	return status == CHOIR_OK ? marked : status;
}

static choir_status wait_for_task(const chi_chunk_task *h)
{
	return h->at == CHOIR_NONE ? CHOIR_OK : chi_stream_wait_up_to(stream_of(h, h->at), h->event);
}

// Clears the chunk streams' failures. late: a wait timed out, so streams and their memory are
// abandoned.
static void settle(chi_chunk_algorithm *r, bool late)
{
	chi_error first;
	chi_error_save(&first);
	for (int i = 0; i < r->streams; i++) {
		chi_stream *stream = r->chunk_stream[i].stream;
		uint64_t event;
		if (stream->device->host_memory)
			continue;
		const choir_status marked = mark_chunk_stream(r, i, &event);
		if (marked == CHOIR_OK && late)
			chi_stream_abandon(stream, event);
		else if (marked == CHOIR_OK)
			(void) chi_stream_wait_up_to(stream, event);
	}
	chi_error_restore(&first);
}

void chi_chunk_algorithm_reset(void *self)
{
	chi_chunk_algorithm *r = self;
	if (chi_atomic32_load(&r->base.rendezvous.aborted) != 0 && r->all_queued) {
		settle(r, false);
		release_kept(r);
	}
	chi_algorithm_reset(self);
}

static bool is_in_stream(const chi_chunk_task *h)
{
	return h->c->in_stream && h->algorithm->all_queued;
}

static void keep_memory(chi_chunk_task *h)
{
	chi_chunk_algorithm *r = h->algorithm;
	chi_mutex_lock(&r->kept_lock);
	while (h->spent != NULL && r->n_kept < (int) (sizeof r->kept / sizeof r->kept[0])) {
		chi_buffer *b = h->spent;
		h->spent = b->next;
		b->next = NULL;
		r->kept[r->n_kept++] = (chi_kept_memory){ b, h->at, h->event };
	}
	chi_mutex_unlock(&r->kept_lock);
}

static bool take_kept(
		chi_chunk_algorithm *r, const choir_device *d, size_t bytes, chi_kept_memory *found)
{
	bool any = false;
	chi_mutex_lock(&r->kept_lock);
	for (int i = 0; !any && i < r->n_kept; i++) {
		*found = r->kept[i];
		any = found->buffer->device == d && chi_buffer_fits(found->buffer, bytes);
		if (any)
			r->kept[i] = r->kept[--r->n_kept];
	}
	chi_mutex_unlock(&r->kept_lock);
	return any;
}

static chi_buffer *new_memory(chi_chunk_task *h, int at, size_t bytes)
{
	chi_chunk_algorithm *r = h->algorithm;
	choir_device *d = r->base.group->devices[at];
	chi_kept_memory kept;
	if (!is_in_stream(h) || !take_kept(r, d, bytes, &kept))
		return chi_buffer_new(d, bytes);
	chi_mutex_lock(&r->chunk_stream[at].lock);
	const choir_status status = chi_stream_wait_event(
			r->chunk_stream[at].stream, r->chunk_stream[kept.at].stream, kept.event);
	chi_mutex_unlock(&r->chunk_stream[at].lock);
	if (status == CHOIR_OK)
		return kept.buffer;
	chi_buffer_list_add(&h->spent, kept.buffer);
	return NULL;
}

choir_status chi_chunk_task_end(chi_chunk_task *h, choir_status status)
{
	chi_error first;
	chi_error_save(&first);
	if (status == CHOIR_OK && is_in_stream(h)) {
		keep_memory(h);
		if (h->spent == NULL)
			return CHOIR_OK;
	}
	const choir_status waited = wait_for_task(h);
	if (status != CHOIR_OK)
		chi_error_restore(&first);
	if (status != CHOIR_OK || waited != CHOIR_OK)
		settle(h->algorithm, waited == CHOIR_TIMEOUT);
	chi_buffer_release_all(&h->spent);
	return status == CHOIR_OK ? waited : status;
}

void chi_chunk_begin(chi_chunk *g, chi_chunk_task *h, int at)
{
	g->task = h;
	g->at = at;
	g->data = NULL;
	chi_partial_sums_begin(&g->partial_sums, h->algorithm->base.group->replicas, h->c->dtype,
			&(choir_shape){ 1, { h->count } });
	g->partial_sums.spent = &h->spent;
}

void chi_chunk_end(chi_chunk *g)
{
	for (int i = 0; i < g->partial_sums.n; i++)
		if (g->partial_sums.own[i])
			chi_buffer_list_add(&g->task->spent, g->partial_sums.buffer[i]);
		else
			chi_buffer_release(g->partial_sums.buffer[i]);
	g->partial_sums.n = 0;
}

static choir_device *device_of(const chi_chunk_task *h, int member)
{
	return h->algorithm->base.group->devices[member];
}

static size_t bytes_of(const chi_chunk_task *h)
{
	return (size_t) h->count * chi_dtype_size(h->c->dtype);
}

// The host waits for this copy, which has its own stream.
static choir_status copy_to_other_kind(const chi_chunk_task *h, choir_device *to_device, void *to,
		choir_device *from, const void *data)
{
	chi_stream *s = chi_stream_new(to_device->host_memory ? from : to_device);
	CHOIR_TRY(chi_made(s));
	const choir_status status = chi_device_copy(s, to_device, to, from, data, bytes_of(h));
	chi_stream_free(s);
	return status;
}

typedef struct {
	choir_device *device;
	chi_stream *stream;
	uint64_t event;
} origin;

static choir_status add_here(chi_chunk *g, choir_partial_sum node, chi_buffer *buffer,
		const origin *from, chi_buffer *copy)
{
	chi_chunk_task *h = g->task;
	CHOIR_TRY(enter(h, g->at, from->stream, from->event));
	chi_stream *stream = stream_of(h, g->at);
	choir_status status = CHOIR_OK;
	if (copy != NULL && node.data != copy->memory)
		status = chi_stream_copy(stream, copy->memory, node.data, bytes_of(h));
	if (copy != NULL)
		node.data = copy->memory;
	if (status == CHOIR_OK)
		status = chi_partial_sums_add_node(
				&g->partial_sums, node, copy != NULL ? copy : buffer, copy != NULL, stream);
	return leave(h, g->at, status);
}

static choir_status add_by_host(
		chi_chunk *g, choir_partial_sum node, const origin *from, chi_buffer *copy)
{
	chi_chunk_task *h = g->task;
	CHOIR_TRY(from->stream != NULL ? chi_stream_wait_up_to(from->stream, from->event)
								   : wait_for_task(h));
	CHOIR_TRY(copy_to_other_kind(h, copy->device, copy->memory, from->device, node.data));
	node.data = copy->memory;
	return add_here(g, node, NULL, &(origin){ copy->device, NULL, 0 }, copy);
}

static choir_status add(
		chi_chunk *g, choir_partial_sum node, chi_buffer *buffer, const origin *from)
{
	chi_chunk_task *h = g->task;
	choir_device *here = device_of(h, g->at);
	if (chi_device_shares(from->device, here))
		return add_here(g, node, buffer, from, NULL);
	chi_buffer *copy = new_memory(h, g->at, bytes_of(h));
	CHOIR_TRY(chi_made(copy));
	const choir_status status = from->device->table == here->table
			? add_here(g, node, NULL, from, copy)
			: add_by_host(g, node, from, copy);
	if (chi_atomic32_load(&copy->references) > 1)
		chi_buffer_release(copy);
	else
		chi_buffer_list_add(&h->spent, copy);
	return status;
}

choir_status chi_chunk_take(chi_chunk *g, int member)
{
	const chi_chunk_task *h = g->task;
	const choir_collective *c = h->round->c[member];
	choir_device *d = device_of(h, member);
	chi_stream made_on = { d, c->stream };
	const origin from = { d, d->host_memory ? NULL : &made_on, h->round->event[member] };
	for (size_t i = 0; i < c->n; i++) {
		choir_partial_sum node = c->partial_sums[i];
		node.data = chi_element(node.data, c->dtype, h->first);
		CHOIR_TRY(add(g, node, NULL, &from));
	}
	return CHOIR_OK;
}

choir_status chi_chunk_take_whole(chi_chunk *g)
{
	chi_chunk_task *h = g->task;
	choir_device *from = device_of(h, g->at);
	const choir_collective *c = h->round->c[g->at];
	chi_stream made_on = { from, c->stream };
	g->data = chi_element(c->partial_sums[0].data, c->dtype, h->first);
	CHOIR_TRY(enter(h, g->at, from->host_memory ? NULL : &made_on, h->round->event[g->at]));
	return leave(h, g->at, CHOIR_OK);
}

choir_status chi_chunk_join(chi_chunk *g, const chi_chunk *other)
{
	const chi_partial_sums *f = &other->partial_sums;
	const origin from = { device_of(g->task, other->at), NULL, 0 };
	for (int i = 0; i < f->n; i++)
		CHOIR_TRY(add(g, f->node[i], f->buffer[i], &from));
	return CHOIR_OK;
}

choir_status chi_chunk_move(chi_chunk *g, int to)
{
	chi_chunk there;
	if (chi_device_shares(device_of(g->task, g->at), device_of(g->task, to))) {
		g->at = to;
		return CHOIR_OK;
	}
	chi_chunk_begin(&there, g->task, to);
	const choir_status status = chi_chunk_join(&there, g);
	chi_chunk_end(g);
	*g = there;
	return status;
}

// Takes over own. The stream's lock is held.
static choir_status own_sum(chi_chunk *g, chi_stream *stream, chi_buffer *own)
{
	chi_partial_sums *f = &g->partial_sums;
	chi_buffer_release(f->buffer[0]);
	f->buffer[0] = own;
	f->own[0] = true;
	f->node[0].data = own->memory;
	const void *from = g->data;
	g->data = own->memory;
	return chi_stream_copy(stream, own->memory, from, bytes_of(g->task));
}

// by: memory for the divisor; NULL in host memory.
static choir_status divide(chi_chunk *g, chi_stream *stream, chi_buffer *own, chi_buffer *by)
{
	chi_chunk_task *h = g->task;
	const choir_dtype dtype = h->c->dtype;
	const double divisor = h->c->divisor;
	if (own != NULL)
		CHOIR_TRY(own_sum(g, stream, own));
	void *data = g->partial_sums.node[0].data;
	if (by == NULL)
		return chi_sum_divide(stream, dtype, data, divisor, h->count);
	const float single = (float) divisor;
	CHOIR_TRY(chi_stream_post(stream, by->memory,
			dtype == CHOIR_F32 ? (const void *) &single : &divisor, chi_dtype_size(dtype)));
	const choir_buffer in[2] = { { data, dtype, { 1, { h->count } } },
		{ by->memory, dtype, { 0, { 0 } } } };
	choir_buffer out = in[0];
	return chi_kernel_run(stream, "divide", 2, in, &out, NULL);
}

choir_status chi_chunk_finish(chi_chunk *g)
{
	chi_chunk_task *h = g->task;
	const chi_partial_sums *f = &g->partial_sums;
	if (f->n != 1 || f->node[0].lo != 0 || f->node[0].hi != f->replicas)
		return choir_fail(CHOIR_INTERNAL, "%s: the parts do not cover the %d replicas", h->c->name,
				f->replicas);
	g->data = f->node[0].data;
	if (h->c->divisor == 1)
		return CHOIR_OK;
	chi_buffer *own = NULL, *by = NULL;
	if (!device_of(h, g->at)->host_memory) {
		if ((by = new_memory(h, g->at, sizeof h->c->divisor)) == NULL)
			return choir_error_status();
		chi_buffer_list_add(&h->spent, by);
	}
	if (!f->own[0] && (own = new_memory(h, g->at, bytes_of(h))) == NULL)
		return choir_error_status();
	const choir_status entered = enter(h, g->at, NULL, 0);
	if (entered != CHOIR_OK && own != NULL)
		chi_buffer_list_add(&h->spent, own);
	CHOIR_TRY(entered);
	return leave(h, g->at, divide(g, stream_of(h, g->at), own, by));
}

static choir_status deliver(chi_chunk_task *h, int from, const void *data, int member, void *to)
{
	choir_device *there = device_of(h, from), *here = device_of(h, member);
	if (!chi_device_shares(there, here) && there->table != here->table) {
		CHOIR_TRY(wait_for_task(h));
		return copy_to_other_kind(h, here, to, there, data);
	}
	const int at = there == here ? member : h->algorithm->base.group->members + member;
	chi_stream *own = NULL; // it has its own sums before those of others
	uint64_t event = 0;
	if (there != here && is_in_stream(h)) {
		own = stream_of(h, member);
		CHOIR_TRY(mark_chunk_stream(h->algorithm, member, &event));
	}
	CHOIR_TRY(enter(h, at, own, event));
	return leave(h, at, chi_stream_copy(stream_of(h, at), to, data, bytes_of(h)));
}

choir_status chi_chunk_deliver(
		const chi_chunk *g, int from, const void *data, int member, const void **shown)
{
	chi_chunk_task *h = g->task;
	const choir_collective *c = h->round->c[member];
	if (chi_round_first_with(h->round, member) != member)
		return CHOIR_OK;
	if (c->result != NULL) {
		void *own = chi_element(c->result, c->dtype, h->first);
		CHOIR_TRY(deliver(h, from, data, member, own));
		data = own;
		if (shown != NULL)
			*shown = own;
	}
	if (c->done == NULL)
		return CHOIR_OK;
	CHOIR_TRY(wait_for_task(h));
	return c->done(c->user, h->first, h->count, data);
}

choir_status chi_chunk_deliver_all(const chi_chunk *g, int first, int last)
{
	for (int i = first; i < last; i++)
		CHOIR_TRY(chi_chunk_deliver(g, g->at, g->data, i, NULL));
	return CHOIR_OK;
}
