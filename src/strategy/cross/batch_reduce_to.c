// Values with the same dtype, divisor and destination are concatenated to packs.
#include "strategy/cross/reduce_to.h"

#include "base/hash.h"
#include "collective/pack.h"
#include "strategy/worker_sync.h"

#include <stdio.h>

typedef struct {
	choir_strategy *strategy;
	choir_frame *frame;
	size_t n;
	chi_reduction **reduction;
	choir_dtype dtype;
	int64_t elements;
	chi_sum_device *device;
	chi_buffer **buffer;
	size_t buffers;
} reduction_pack;

static const choir_tensor *first_of(const chi_reduction *j)
{
	return j->value->component[0];
}

static int64_t elements_of(const chi_reduction *j)
{
	return choir_shape_elements(&first_of(j)->shape);
}

static bool wants(const choir_strategy *s, const chi_reduction *j, int d)
{
	for (int i = 0; i < j->result->count; i++)
		if (chi_device_shares(j->result->device[i], s->device[d]))
			return true;
	return false;
}

static bool belong_together(
		const choir_strategy *s, const chi_reduction *a, const chi_reduction *b)
{
	if (!b->by_communicator || first_of(a)->dtype != first_of(b)->dtype ||
			a->divisor != b->divisor)
		return false;
	for (int d = 0; d < s->devices; d++)
		if (wants(s, a, d) != wants(s, b, d))
			return false;
	return true;
}

static choir_status copy_all(const reduction_pack *t, chi_stream *stream, void *whole,
		void *(*own)(const reduction_pack *t, const chi_reduction *j, int d, int node), int d,
		int node, bool back)
{
	char *at = whole;
	for (size_t i = 0; i < t->n; i++) {
		const size_t bytes = (size_t) elements_of(t->reduction[i]) * chi_dtype_size(t->dtype);
		void *part = own(t, t->reduction[i], d, node);
		CHOIR_TRY(chi_stream_copy(stream, back ? part : at, back ? (void *) at : part, bytes));
		at += bytes;
	}
	return CHOIR_OK;
}

static void *node_of(const reduction_pack *t, const chi_reduction *j, int d, int node)
{
	(void) t;
	return j->partial_sums[d].node[node].data;
}

static void *result_of(const reduction_pack *t, const chi_reduction *j, int d, int node)
{
	(void) node;
	return chi_reduction_wanted(t->strategy, j, d);
}

static chi_buffer *new_buffer(reduction_pack *t, int d)
{
	chi_buffer *b = chi_buffer_new(
			t->strategy->device[d], (size_t) t->elements * chi_dtype_size(t->dtype));
	if (b != NULL)
		t->buffer[t->buffers++] = b;
	return b;
}

static choir_status lay_out(reduction_pack *t, int d)
{
	const chi_partial_sums *like = &t->reduction[0]->partial_sums[d];
	chi_sum_device *own = &t->device[d];
	choir_partial_sum *part = chi_arena_alloc(&t->frame->arena, (size_t) like->n * sizeof *part);
	CHOIR_TRY(chi_made(part));
	for (int i = 0; i < like->n; i++) {
		chi_buffer *b = new_buffer(t, d);
		CHOIR_TRY(chi_made(b));
		part[i] = (choir_partial_sum){ like->node[i].lo, like->node[i].hi, b->memory };
		CHOIR_TRY(copy_all(t, t->strategy->exchange[d], b->memory, node_of, d, i, false));
	}
	own->n = (size_t) like->n;
	own->part = part;
	for (int k = 0; k < d && own->result == NULL; k++)
		if (chi_device_shares(t->strategy->device[k], t->strategy->device[d]))
			own->result = t->device[k].result;
	if (own->result != NULL || !wants(t->strategy, t->reduction[0], d))
		return CHOIR_OK;
	chi_buffer *b = new_buffer(t, d);
	own->result = b == NULL ? NULL : b->memory;
	return chi_made(b);
}

static choir_status take_apart(reduction_pack *t)
{
	choir_strategy *s = t->strategy;
	choir_status status = CHOIR_OK;
	for (int d = 0; status == CHOIR_OK && d < s->devices; d++) {
		bool done = t->device[d].result == NULL;
		for (int k = 0; k < d && !done; k++)
			done = t->device[k].result == t->device[d].result;
		if (!done)
			status = copy_all(t, s->exchange[d], t->device[d].result, result_of, d, 0, true);
	}
	return chi_strategy_wait(s, 0, s->devices, status);
}

static int64_t *cut(const reduction_pack *t, const chi_communication *communication, size_t *packs)
{
	const size_t max = communication->num_packs > 0
			? (size_t) (communication->num_packs < t->elements ? communication->num_packs
															   : t->elements)
			: t->n;
	int64_t *ends = chi_arena_alloc(&t->frame->arena, (max + 1) * sizeof *ends);
	int64_t *each = chi_arena_alloc(&t->frame->arena, t->n * sizeof *each);
	if (ends == NULL || each == NULL)
		return NULL;
	for (size_t i = 0; i < t->n; i++)
		each[i] = elements_of(t->reduction[i]);
	*packs = communication->num_packs > 0
			? chi_packs_by_number(t->elements, communication->num_packs, ends)
			: chi_packs_by_bytes(
					  t->n, each, chi_dtype_size(t->dtype), communication->bytes_per_pack, ends);
	return ends;
}

// The hash of shapes reveals workers with different values.
static void name_pack(const reduction_pack *t, char name[64])
{
	uint64_t hash = t->n;
	for (size_t i = 0; i < t->n; i++) {
		const choir_shape *shape = &first_of(t->reduction[i])->shape;
		hash = chi_hash_mix(hash + (uint64_t) shape->rank);
		for (int k = 0; k < shape->rank; k++)
			hash = chi_hash_mix(hash + (uint64_t) shape->dim[k]);
	}
	snprintf(name, 64, "batch_reduce_to, %s, %d of shapes %016llx",
			t->reduction[0]->op == CHOIR_MEAN ? "mean" : "sum", (int) t->n,
			(unsigned long long) hash);
}

static choir_status sum_pack(
		choir_cross *x, const chi_communication *communication, reduction_pack *t)
{
	choir_strategy *s = t->strategy;
	size_t packs = 0, nodes = 0;
	const int64_t *ends = cut(t, communication, &packs);
	t->device = chi_arena_alloc(&t->frame->arena, (size_t) s->devices * sizeof *t->device);
	if (ends == NULL || t->device == NULL)
		return choir_error_status();
	for (size_t i = 0; i < t->n; i++) {
		chi_reduction *j = t->reduction[i];
		CHOIR_TRY(chi_reduction_make_results(x, j));
		CHOIR_TRY(chi_sum_add_up(s, t->frame, j->value->component, &j->partial_sums));
	}
	for (int d = 0; d < s->devices; d++)
		nodes += (size_t) t->reduction[0]->partial_sums[d].n + 1;
	t->buffer = chi_arena_alloc(&t->frame->arena, nodes * sizeof *t->buffer);
	choir_status status = chi_made(t->buffer);
	for (int d = 0; status == CHOIR_OK && d < s->devices; d++)
		status = lay_out(t, d);
	status = chi_strategy_wait(s, 0, s->devices, status);
	char name[64];
	name_pack(t, name);
	const chi_sum sum = { name, t->dtype, t->reduction[0]->divisor, t->device, packs, ends, 0,
		false };
	if (status == CHOIR_OK)
		status = chi_sum_devices(s, x->frame, communication, &sum);
	return status == CHOIR_OK ? take_apart(t) : status;
}

static choir_status do_pack(choir_cross *x, const chi_communication *communication, size_t n,
		chi_reduction reduction[], bool done[], size_t first)
{
	reduction_pack t = { .strategy = chi_cross_of(x)->strategy, .frame = x->frame };
	t.dtype = first_of(&reduction[first])->dtype;
	t.reduction = chi_arena_alloc(&x->frame->arena, n * sizeof *t.reduction);
	if (t.reduction == NULL)
		return chi_frame_record_error(x->frame);
	for (size_t i = first; i < n; i++) {
		const bool mine =
				!done[i] && belong_together(t.strategy, &reduction[first], &reduction[i]);
		if (!mine || !chi_int64_add(t.elements, elements_of(&reduction[i]), &t.elements))
			continue;
		t.reduction[t.n++] = &reduction[i];
		done[i] = true;
	}
	const choir_status status = sum_pack(x, communication, &t);
	for (size_t i = 0; i < t.buffers; i++)
		chi_buffer_release(t.buffer[i]);
	for (size_t i = 0; i < t.n; i++)
		chi_sum_clear(t.strategy, t.reduction[i]->partial_sums);
	return status == CHOIR_OK ? status : chi_frame_record_error(x->frame);
}

static choir_status reduce_batch(choir_cross *x, choir_reduce_op op, size_t n,
		choir_reduction items[], const chi_communication *communication)
{
	chi_reduction *reduction = chi_arena_alloc(&x->frame->arena, n * sizeof *reduction);
	bool *done = chi_arena_alloc(&x->frame->arena, n * sizeof *done);
	if (n > 0 && (reduction == NULL || done == NULL))
		return chi_frame_record_error(x->frame);
	for (size_t i = 0; i < n; i++)
		CHOIR_TRY(chi_reduction_check(x, op, &items[i], &reduction[i]));
	const bool packed = communication->num_packs > 0 || communication->bytes_per_pack > 0;
	for (size_t i = 0; i < n; i++) {
		if (done[i])
			continue;
		CHOIR_TRY(packed && reduction[i].by_communicator
						? do_pack(x, communication, n, reduction, done, i)
						: chi_reduction_begin(x, communication, &reduction[i]));
	}
	for (size_t i = 0; i < n; i++)
		items[i].result = reduction[i].result;
	return CHOIR_OK;
}

choir_status choir_cross_batch_reduce_to(choir_cross *x, choir_reduce_op op, size_t n,
		choir_reduction items[], const choir_communication_options *o)
{
	chi_communication communication;
	for (size_t i = 0; i < n; i++)
		items[i].result = NULL;
	CHOIR_TRY(chi_reduction_check_call(x, op, "batch_reduce_to"));
	if (chi_communication_resolve(chi_cross_of(x)->strategy, o, &communication) != CHOIR_OK) {
		chi_error_prefix("batch_reduce_to");
		return chi_frame_record_error(x->frame);
	}
	return chi_strategy_abort(
			chi_cross_of(x)->strategy, reduce_batch(x, op, n, items, &communication));
}
