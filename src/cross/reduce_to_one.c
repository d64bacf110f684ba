// Cross-device operations for any devices: whoever comes first when all have joined does the whole
// collective. The parts are copied to one device, summed there in the canonical tree, and the sum
// is copied to every device that wants it. Right everywhere, fast nowhere: what a device with a
// better way is measured against.
#include "cross/meeting.h"
#include "cross/tree.h"

#include "op/op.h"

typedef struct {
	chi_meeting meeting;
	const choir_group *group;
} reduce_to_one;

static int score(const choir_group *group, choir_collective_kind kind, int64_t bytes)
{
	(void) group, (void) kind, (void) bytes;
	return 1;
}

static choir_status open_one(void *self, const choir_group *group)
{
	reduce_to_one *o = self;
	o->group = group;
	return chi_meeting_open(&o->meeting, group->members);
}

static void close_one(void *self)
{
	chi_meeting_close(&((reduce_to_one *) self)->meeting);
}

// One collective on its way: root's device and stream, and the fold of everything that was copied.
typedef struct {
	const reduce_to_one *o;
	const chi_slot *slot;
	choir_device *device;
	chi_stream stream;
	int64_t elements;
	choir_dtype dtype;
	choir_shape shape;
	size_t bytes;
} work;

// The sum of a node in a buffer of root's device, with one reference for the caller; member and
// index walk over all parts in order.
static chi_buffer *sum_node(const work *w, int lo, int hi, int *member, size_t *index)
{
	while (*member < w->o->group->members && *index == w->slot->c[*member]->n) {
		++*member;
		*index = 0;
	}
	if (*member == w->o->group->members || hi <= lo) {
		choir_fail(CHOIR_INTERNAL, "%s: the parts do not cover the replicas", w->slot->c[0]->name);
		return NULL;
	}
	const choir_part *p = &w->slot->c[*member]->parts[*index];
	if (p->lo == lo && p->hi == hi) {
		chi_buffer *b = chi_buffer_new(w->device, w->bytes);
		chi_stream from = { w->o->group->devices[*member], w->slot->c[*member]->stream };
		if (b != NULL && (chi_stream_wait(&from) != CHOIR_OK ||
				chi_device_copy((chi_stream[]){ w->stream }, w->device, b->memory,
				from.device, p->data, w->bytes) != CHOIR_OK)) {
			chi_buffer_release(b);
			b = NULL;
		}
		++*index;
		return b;
	}
	const int middle = hi - lo < 2 ? lo : chi_tree_split(lo, hi);
	chi_buffer *left = sum_node(w, lo, middle, member, index);
	chi_buffer *right = left == NULL ? NULL : sum_node(w, middle, hi, member, index);
	if (right == NULL) {
		chi_buffer_release(left);
		return NULL;
	}
	const choir_buffer in[2] = { { left->memory, w->dtype, w->shape },
		{ right->memory, w->dtype, w->shape } };
	choir_buffer out = in[0];
	chi_stream stream = w->stream;
	choir_status status = chi_kernel_run(&stream, "add", 2, in, &out, NULL);
	if (status == CHOIR_OK)
		status = chi_stream_wait(&stream);
	chi_buffer_release(right);
	if (status == CHOIR_OK)
		return left;
	chi_buffer_release(left);
	return NULL;
}

static choir_status divide(work *w, chi_buffer *sum, double divisor)
{
	chi_buffer *by = chi_buffer_new(w->device, sizeof(double));
	const float single = (float) divisor;
	choir_status status = by == NULL ? choir_error_status() : CHOIR_OK;
	if (status == CHOIR_OK)
		status = chi_stream_copy(&w->stream, by->memory,
				w->dtype == CHOIR_F32 ? (const void *) &single : &divisor,
				chi_dtype_size(w->dtype));
	if (status == CHOIR_OK) {
		const choir_buffer in[2] = { { sum->memory, w->dtype, w->shape },
			{ by->memory, w->dtype, { 0, { 0 } } } };
		choir_buffer out = in[0];
		status = chi_kernel_run(&w->stream, "divide", 2, in, &out, NULL);
	}
	// Also after a failure: a copy that is queued reads this function's memory.
	const choir_status waited = by == NULL ? CHOIR_OK : chi_stream_wait(&w->stream);
	chi_buffer_release(by);
	return status == CHOIR_OK ? waited : status;
}

static choir_status hand_out(work *w, const void *data)
{
	for (int i = 0; i < w->o->group->members; i++) {
		const choir_collective *c = w->slot->c[i];
		if (chi_slot_first_with(w->slot, i) != i)
			continue;
		if (c->result != NULL)
			CHOIR_TRY(chi_device_copy(&w->stream, w->o->group->devices[i], c->result, w->device,
					data, w->bytes));
		if (c->done != NULL)
			CHOIR_TRY(c->done(c->user, 0, w->elements, c->result != NULL ? c->result : data));
	}
	return CHOIR_OK;
}

static choir_status piece(void *self, const chi_slot *slot, int member, int64_t index)
{
	reduce_to_one *o = self;
	const choir_collective *c = slot->c[member];
	(void) index;
	work w = { .o = o, .slot = slot, .device = o->group->devices[c->root],
		.elements = c->elements, .dtype = c->dtype, .shape = { 1, { c->elements } },
		.bytes = (size_t) c->elements * chi_dtype_size(c->dtype) };
	w.stream = (chi_stream){ w.device, slot->c[c->root]->stream };
	if (c->kind == CHOIR_BROADCAST) {
		CHOIR_TRY(chi_stream_wait(&w.stream));
		return hand_out(&w, slot->c[c->root]->parts[0].data);
	}
	int first = 0;
	size_t part = 0;
	chi_buffer *sum = sum_node(&w, 0, o->group->replicas, &first, &part);
	if (sum == NULL)
		return choir_error_status();
	choir_status status = c->divisor == 1 ? CHOIR_OK : divide(&w, sum, c->divisor);
	if (status == CHOIR_OK)
		status = hand_out(&w, sum->memory);
	chi_buffer_release(sum);
	return status;
}

static choir_status join(void *self, int member, const choir_collective *c, uint64_t *ticket)
{
	return chi_meeting_join(&((reduce_to_one *) self)->meeting, member, c, 1, ticket);
}

static choir_status wait(void *self, int member, uint64_t ticket, double seconds)
{
	return chi_meeting_wait(
			&((reduce_to_one *) self)->meeting, member, ticket, seconds, piece, self);
}

static void abort_one(void *self)
{
	chi_meeting_abort(&((reduce_to_one *) self)->meeting);
}

static void reset(void *self)
{
	chi_meeting_reset(&((reduce_to_one *) self)->meeting);
}

const choir_cross_device_ops_table chi_reduce_to_one_table = {
	.size = sizeof(choir_cross_device_ops_table),
	.version = CHOIR_TABLE_VERSION,
	.name = "reduce_to_one_device",
	.self_size = sizeof(reduce_to_one),
	.score = score,
	.open = open_one,
	.close = close_one,
	.join = join,
	.wait = wait,
	.abort = abort_one,
	.reset = reset,
};
