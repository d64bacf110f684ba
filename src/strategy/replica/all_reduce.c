// If every device runs one replica, each joins the cross-device operation. Otherwise, or if counts
// must be summed first, the last to arrive reduces for all.
//
// A batch packs small tensors of one dtype, since a sync point costs more than their bytes.
#include "base/hash.h"
#include "base/thresholds.h"
#include "choir/op.h"
#include "collective/tree.h"
#include "op/tape/tape.h"
#include "strategy/cross/reduce.h"
#include "strategy/cross/reduce_to.h"
#include "strategy/cross/reduce_indexed_slices.h"
#include "strategy/gradients/gradients.h"
#include "strategy/replica/replica.h"
#include "strategy/run/small_all_reduce.h"
#include "strategy/run/sync_point.h"
#include "strategy/worker_sync.h"
#include "trace/trace.h"

#include <stdio.h>
#include <string.h>

typedef struct {
	choir_replica *replica;
	double divisor;
} all_reduce_attributes;

static choir_status all_reduce_backward(const chi_node *node, const chi_backward *g)
{
	const all_reduce_attributes *a = node->attributes;
	choir_tensor *sum = choir_replica_all_reduce(a->replica, CHOIR_SUM, g->dy);
	if (a->divisor != 1)
		sum = choir_scale(sum, 1 / a->divisor);
	g->gradient[0] = sum;
	return chi_frame_made(g->dy->frame, sum);
}

static const chi_op all_reduce_op = {
	.name = "all_reduce",
	.attribute_bytes = sizeof(all_reduce_attributes),
	.backward = all_reduce_backward,
};

// Devices that share memory share the result.
static choir_status prepare_result(chi_sync_point *point, chi_replica *r, void *user)
{
	choir_strategy *s = r->run->strategy;
	const size_t bytes = chi_tensor_bytes(user);
	for (int i = 0; i < s->devices; i++) {
		for (int k = 0; k < i && point->buffer[i] == NULL; k++)
			if (chi_device_shares(s->device[i], s->device[k])) {
				point->buffer[i] = point->buffer[k];
				chi_buffer_retain(point->buffer[i]);
			}
		if (point->buffer[i] == NULL &&
				(point->buffer[i] = chi_buffer_new(s->device[i], bytes)) == NULL)
			return choir_error_status();
	}
	return CHOIR_OK;
}

static choir_status reduce_own(
		chi_replica *r, chi_sync_point *point, choir_tensor *t, double divisor)
{
	chi_run *run = r->run;
	choir_strategy *s = run->strategy;
	const int number = chi_replica_number(r);
	const choir_partial_sum part = { number, number + 1, t->data };
	const choir_collective c = { .size = sizeof c,
		.sequence = point->number,
		.name = point->name,
		.kind = CHOIR_ALL_REDUCE,
		.dtype = t->dtype,
		.elements = choir_shape_elements(&t->shape),
		.divisor = divisor,
		.n = 1,
		.partial_sums = &part,
		.stream = s->exchange[r->device]->state,
		.result = point->buffer[r->device]->memory,
		.batch_bytes = r->batch_bytes };
	uint64_t request;
	choir_status status = chi_communicator_join(&s->communicator, r->device, &c, &request);
	if (status == CHOIR_OK)
		status = chi_communicator_wait(&s->communicator, r->device, request, s->timeout);
	if (status == CHOIR_OK)
		status = chi_stream_wait(s->exchange[r->device]);
	if (status == CHOIR_OK)
		return status;
	// This failure counts, unless another ended the wait or a missing replica is found.
	r->cancelled = true;
	if (status == CHOIR_CANCELLED ? s->process_group != NULL
								  : status != CHOIR_TIMEOUT || !chi_run_abort_wait(r, point))
		chi_run_fail(run, s->replicas);
	return chi_run_cancelled(run);
}

// One thread adds: waking others costs more than they help.
static choir_status sum_contributions(
		chi_run *run, choir_frame *f, chi_sync_point *point, choir_reduce_op op)
{
	choir_strategy *s = run->strategy;
	double divisor = 1;
	const size_t n = (size_t) s->replicas, devices = (size_t) s->devices;
	const int64_t elements = choir_shape_elements(&run->replica[0].contribution->shape);
	choir_tensor **all = chi_arena_alloc(&f->arena, n * sizeof *all);
	chi_sum_device *each = chi_arena_alloc(&f->arena, devices * sizeof *each);
	if (all == NULL || each == NULL)
		return choir_error_status();
	for (size_t i = 0; i < n; i++)
		all[i] = run->replica[i].contribution;
	for (size_t d = 0; d < devices; d++)
		each[d].result = point->buffer[d]->memory;
	if (op == CHOIR_MEAN)
		CHOIR_TRY(chi_mean_divisor(s, run->replica[0].base.frame, s->replicas, all, &divisor));
	point->count = (int64_t) divisor;
	const chi_communication communication = { &s->communicator, .timeout = s->timeout };
	const chi_sum sum = { point->name, all[0]->dtype, divisor, each, 1, &elements,
		run->replica[0].batch_bytes, true };
	return chi_sum_replicas(s, f, &communication, &sum, all);
}

// By the last replica, whose frame is in this core's cache. The frame is restored, since positions
// identify tensors (chi_replica_gives).
static choir_status reduce_for_all(chi_replica *r, chi_sync_point *point, choir_reduce_op op)
{
	choir_frame *f = r->base.frame;
	const size_t mark = chi_arena_mark(&f->arena);
	const choir_status status = sum_contributions(r->run, f, point, op);
	chi_arena_rewind(&f->arena, mark);
	return status;
}

static choir_status come_together(
		chi_replica *r, choir_reduce_op op, choir_tensor *t, chi_sync_point **out, double *divisor)
{
	chi_run *run = r->run;
	const bool together =
			run->strategy->replicas != run->strategy->devices || t->count != CHOIR_NONE;
	uint64_t hash = (uint64_t) op * 64 + (uint64_t) r->summed * 2 + (t->count != CHOIR_NONE);
	for (int i = 0; i < t->shape.rank; i++)
		hash = chi_hash_mix(hash + (uint64_t) t->shape.dim[i]);
	// Sums of r's updates use the same communicator.
	CHOIR_TRY(chi_gradients_finish_updates_of(r, NULL));
	bool last;
	char call[64], name[CHI_SUM_NAME];
	chi_replica_name_collective(r, "all_reduce", call);
	if (run->strategy->process_group != NULL)
		chi_worker_sum_name(call, op, r->summed, t, name);
	else
		memcpy(name, call, sizeof name);
	r->contribution = t;
	r->reduces = op;
	chi_sync_point *point = *out = chi_sync_point_arrive(r, CHI_SYNC_POINT_COLLECTIVE,
			&all_reduce_op, chi_hash_mix(hash + r->label.hash), name, prepare_result, t, &last);
	if (point == NULL)
		return choir_error_status();
	*divisor = op == CHOIR_MEAN ? run->strategy->in_sync : 1;
	if (!together)
		return reduce_own(r, point, t, *divisor);
	choir_status status = CHOIR_OK;
	if (last) {
		status = reduce_for_all(r, point, op);
		if (status == CHOIR_OK)
			chi_sync_point_ready(run, point);
		else
			chi_run_fail(run, run->strategy->replicas);
	} else {
		status = chi_scheduler_wait(r, &point->ready, point);
	}
	r->cancelled = r->cancelled || status != CHOIR_OK;
	*divisor = op == CHOIR_MEAN ? (double) point->count : 1;
	return status;
}

static choir_tensor *contribution(choir_frame *f, choir_reduce_op op, choir_tensor *t)
{
	if (chi_check_reduce_op(f, "all_reduce", op) != CHOIR_OK)
		return NULL;
	if (t->frame != f)
		return chi_frame_fail_null(f, CHOIR_INVALID,
				"all_reduce: the tensor belongs to another frame; copy it to the replica's");
	if (f->failed || chi_tensor_check(t) != CHOIR_OK)
		return NULL;
	if (t->is_number)
		t = choir_fill(f, CHOIR_F64, CHOIR_SCALAR, t->number);
	if (t != NULL && chi_check_sum(f, "all_reduce", op, t->dtype) != CHOIR_OK)
		return NULL;
	if (op == CHOIR_MEAN)
		t = chi_for_mean(t);
	return t == NULL || (f->queued && chi_stream_wait(f->stream) != CHOIR_OK) ? NULL : t;
}

static bool is_single(const chi_replica *r, const choir_tensor *t)
{
	const choir_strategy *s = r->run->strategy;
	return s->process_group != NULL && s->replicas == 1 && s->all_host && !r->run->isolated &&
			t->count == CHOIR_NONE;
}

static choir_status exchange_single(const chi_replica *r, choir_reduce_op op,
		const choir_tensor *t, choir_tensor *sum, double divisor)
{
	choir_strategy *s = r->run->strategy;
	char call[64], name[CHI_SUM_NAME] = "all_reduce";
	uint64_t key = chi_hash_mix(r->label.hash + (uint64_t) op * 64 + (uint64_t) r->summed);
	for (int i = 0; i < t->shape.rank; i++)
		key = chi_hash_mix(key + (uint64_t) t->shape.dim[i] * 8 + (uint64_t) t->shape.rank);
	if (!chi_process_group_knows(s->process_group, key |= 1)) {
		chi_replica_name_collective(r, "all_reduce", call);
		chi_worker_sum_name(call, op, r->summed, t, name);
	}
	const int number = chi_replica_number(r);
	const choir_partial_sum own = { number, number + 1, t->data };
	const choir_collective c = {
		.name = name, .dtype = t->dtype, .elements = choir_shape_elements(&t->shape)
	};
	CHOIR_TRY(chi_process_group_all_reduce(s->process_group, key, &c, &own, sum->data));
	return chi_sum_divide(s->exchange[0], t->dtype, sum->data, divisor, c.elements);
}

static choir_tensor *all_reduce_single(
		chi_replica *r, choir_reduce_op op, const choir_tensor *t, double *divisor)
{
	choir_frame *f = r->base.frame;
	*divisor = op == CHOIR_MEAN ? r->run->strategy->in_sync : 1;
	if (chi_gradients_finish_updates_of(r, NULL) != CHOIR_OK)
		return NULL;
	choir_tensor *sum = chi_tensor_new(f, t->dtype, &t->shape);
	if (sum == NULL)
		return NULL;
	chi_trace_begin(CHOIR_TRACE_REDUCE, "all_reduce");
	const choir_status status = exchange_single(r, op, t, sum, *divisor);
	chi_trace_end_communication();
	if (status == CHOIR_OK)
		return sum;
	r->cancelled = true;
	chi_run_fail(r->run, 1);
	chi_run_cancelled(r->run);
	return NULL;
}

static choir_tensor *all_reduce_rendezvous(
		chi_replica *r, choir_reduce_op op, choir_tensor *t, double *divisor)
{
	chi_sync_point *point = NULL;
	if (come_together(r, op, t, &point, divisor) != CHOIR_OK)
		return NULL;
	chi_buffer *b = point->buffer[r->device];
	choir_tensor *out = chi_tensor_on(r->base.frame, b, b->memory, t->dtype, &t->shape);
	chi_sync_point_leave(point);
	return out;
}

static choir_tensor *reduce_given(choir_replica *replica, choir_reduce_op op, choir_tensor *t)
{
	chi_replica *r = chi_replica_of(replica);
	all_reduce_attributes a = { replica, 1 };
	choir_tensor *out = NULL;
	t = contribution(replica->frame, op, t);
	if (t != NULL && chi_needs_checked_sum(op, t))
		return chi_checked_sum_to_u8(
				reduce_given(replica, op, choir_cast(t, CHOIR_I32)), "all_reduce");
	if (t != NULL && chi_dtype_is_half(t->dtype)) {
		choir_tensor *wide = choir_cast(t, CHOIR_F32);
		if (wide != NULL && t->count != CHOIR_NONE)
			wide = choir_with_count(wide, t->count);
		out = wide == NULL ? NULL : reduce_given(replica, op, wide);
		return out == NULL ? NULL : chi_sum_to_half(out, t->dtype);
	}
	if (t != NULL)
		out = chi_small_all_reduce_takes(r, op, t) ? chi_small_all_reduce_sum(r, t)
				: is_single(r, t)				   ? all_reduce_single(r, op, t, &a.divisor)
												   : all_reduce_rendezvous(r, op, t, &a.divisor);
	return out == NULL ? NULL : chi_op_record(&all_reduce_op, 1, &t, &a, out);
}

choir_tensor *choir_replica_all_reduce(choir_replica *replica, choir_reduce_op op, choir_tensor *t)
{
	if (chi_replica_check(replica, "all_reduce") != CHOIR_OK)
		return NULL;
	if (t == NULL)
		return chi_frame_null_argument(replica->frame, "all_reduce");
	chi_replica *r = chi_replica_of(replica);
	chi_replica_gives(r, t);
	if (choir_tensor_is_slices(t) && (op == CHOIR_SUM || op == CHOIR_MEAN))
		return chi_all_reduce_slices(replica, op, t);
	r->summed = t->is_number ? CHOIR_F64 : t->dtype;
	choir_tensor *out = reduce_given(replica, op, t);
	if (out != NULL)
		return out;
	chi_frame_record_error(replica->frame);
	chi_run_renew(r->run);
	return NULL;
}

typedef struct {
	choir_replica *replica;
	choir_reduce_op op;
	size_t n;
	choir_tensor *const *in;
	choir_tensor **out;
	choir_tensor **flat;
	bool *done;
} batch;

static bool may_pack(const batch *b, size_t i)
{
	const choir_tensor *t = b->in[i];
	return t->frame == b->replica->frame && !t->is_number && !choir_tensor_is_slices(t) &&
			t->count == CHOIR_NONE && choir_shape_elements(&t->shape) > 0 &&
			chi_tensor_bytes(t) <= CHI_PACKED_ALL_REDUCE_BYTES &&
			(b->op == CHOIR_SUM || (b->op == CHOIR_MEAN && chi_dtype_is_float(t->dtype)));
}

// The label has the tensors' shapes. 0: a failure.
static size_t lay_out(batch *b, size_t first, chi_label *label)
{
	size_t n = 0, length = 0;
	uint64_t hash = 1;
	char shape[CHI_SHAPE_TEXT];
	for (size_t i = first; i < b->n; i++) {
		const choir_tensor *t = b->in[i];
		if (b->done[i] || !may_pack(b, i) || t->dtype != b->in[first]->dtype)
			continue;
		b->flat[n] = choir_reshape(b->in[i], CHOIR_SHAPE(choir_shape_elements(&t->shape)));
		if (b->flat[n++] == NULL)
			return 0;
		hash = chi_hash_mix(hash + i * 16 + (uint64_t) t->shape.rank);
		for (int k = 0; k < t->shape.rank; k++)
			hash = chi_hash_mix(hash + (uint64_t) t->shape.dim[k]);
		if (length < sizeof label->name)
			length += (size_t) snprintf(label->name + length, sizeof label->name - length, "%s%s",
					n == 1 ? "" : ", ", chi_shape_print(&t->shape, shape));
	}
	label->hash = hash | 1;
	if (length >= sizeof label->name)
		snprintf(label->name + sizeof label->name - 10, 10, "~%08x",
				(unsigned) (hash & 0xffffffffu));
	return n;
}

static choir_status take_apart(batch *b, size_t first, choir_tensor *sum)
{
	int64_t at = 0;
	for (size_t i = first; i < b->n; i++) {
		const choir_tensor *t = b->in[i];
		if (b->done[i] || !may_pack(b, i) || t->dtype != b->in[first]->dtype)
			continue;
		const int64_t elements = choir_shape_elements(&t->shape);
		b->out[i] = choir_reshape(choir_slice(sum, 0, at, elements), t->shape);
		CHOIR_TRY(chi_frame_made(b->replica->frame, b->out[i]));
		b->done[i] = true;
		at += elements;
	}
	return CHOIR_OK;
}

static choir_status reduce_pack(batch *b, size_t first)
{
	chi_label *label = &chi_replica_of(b->replica)->label;
	const size_t n = lay_out(b, first, label);
	choir_tensor *sum = n == 0 ? NULL
							   : choir_replica_all_reduce(b->replica, b->op,
										 n == 1 ? b->flat[0] : choir_concat(n, b->flat, 0));
	label->hash = 0;
	return sum == NULL ? chi_frame_status(b->replica->frame) : take_apart(b, first, sum);
}

static choir_status reduce_unpacked(batch *b, size_t i)
{
	b->out[i] = choir_replica_all_reduce(b->replica, b->op, b->in[i]);
	b->done[i] = true;
	return chi_frame_made(b->replica->frame, b->out[i]);
}

static choir_status reduce_all(batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (!b->done[i])
			CHOIR_TRY(may_pack(b, i) ? reduce_pack(b, i) : reduce_unpacked(b, i));
	return CHOIR_OK;
}

static int64_t bytes_of(const batch *b)
{
	int64_t bytes = 0;
	for (size_t i = 0; i < b->n; i++)
		bytes += b->in[i]->is_number ? 0 : (int64_t) chi_tensor_bytes(b->in[i]);
	return bytes;
}

choir_status choir_replica_batch_all_reduce(choir_replica *r, choir_reduce_op op, size_t n,
		choir_tensor *const in[], choir_tensor *out[])
{
	CHOIR_TRY(chi_replica_check(r, "batch_all_reduce"));
	choir_frame *f = r->frame;
	for (size_t i = 0; i < n; i++)
		if (in[i] == NULL) {
			chi_frame_null_argument(f, "batch_all_reduce");
			return chi_frame_status(f);
		}
	batch b = { r, op, n, in, out, NULL, NULL };
	b.flat = chi_arena_alloc(&f->arena, n * sizeof(choir_tensor *));
	b.done = chi_arena_alloc(&f->arena, n * sizeof(bool));
	b.out = chi_arena_alloc(&f->arena, n * sizeof(choir_tensor *));
	if (b.flat == NULL || b.done == NULL || b.out == NULL)
		return chi_frame_record_error(f);
	memset(b.done, 0, n * sizeof(bool));
	chi_replica *own = chi_replica_of(r);
	for (size_t i = 0; i < n; i++)
		chi_replica_gives(own, in[i]);
	own->batch_bytes = bytes_of(&b);
	const choir_status status = reduce_all(&b);
	own->batch_bytes = 0;
	if (status != CHOIR_OK)
		return status;
	memcpy(out, b.out, n * sizeof(choir_tensor *));
	return CHOIR_OK;
}
