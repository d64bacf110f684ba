// Many all-reduces in one. Small tensors of a dtype travel as one, laid behind each other: what
// they cost is the sync point, not the bytes. Each element is added to the same elements in the
// same order as alone, so the bits are the same; and as the packing is made of operations, the way
// back is one all-reduce, too. Large tensors, those with counts and slices travel alone.
#include "base/hash.h"
#include "choir/op.h"
#include "op/op.h"
#include "strategy/replica/merge_call.h"
#include "strategy/cross/reduce.h"

#include <stdio.h>
#include <string.h>

enum { PACK_BYTES = 64 << 10 }; // what a tensor may have to be packed

typedef struct {
	choir_replica *replica;
	choir_reduce_op op;
	size_t n;
	choir_tensor *const *in;
	choir_tensor **out;
	choir_tensor **flat; // those of the pack that is being made
	bool *done;
} batch;

static bool may_pack(const batch *b, size_t i)
{
	const choir_tensor *t = b->in[i];
	return t->frame == b->replica->frame && !t->is_number && !choir_tensor_is_slices(t) &&
			t->count == CHOIR_NONE && choir_shape_elements(&t->shape) > 0 &&
			chi_tensor_bytes(t) <= PACK_BYTES &&
			(b->op == CHOIR_SUM || (b->op == CHOIR_MEAN && chi_dtype_is_float(t->dtype)));
}

// Those from the first on that have its dtype, as vectors, in flat: how many. What all replicas
// must have equal, which the sum of their sizes does not say, becomes the label. 0: a failure.
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
	if (length >= sizeof label->name) // other workers see the name alone
		snprintf(label->name + sizeof label->name - 10, 10, "~%08x",
				(unsigned) (hash & 0xffffffffu));
	return n;
}

// The sums of what lay_out laid out, as views of the sum of all.
static choir_status take_apart(batch *b, size_t first, choir_tensor *sum)
{
	int64_t at = 0;
	for (size_t i = first; i < b->n; i++) {
		const choir_tensor *t = b->in[i];
		if (b->done[i] || !may_pack(b, i) || t->dtype != b->in[first]->dtype)
			continue;
		const int64_t elements = choir_shape_elements(&t->shape);
		b->out[i] = choir_reshape(choir_slice(sum, 0, at, elements), t->shape);
		if (b->out[i] == NULL)
			return chi_frame_status(b->replica->frame);
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

static choir_status reduce_alone(batch *b, size_t i)
{
	b->out[i] = choir_replica_all_reduce(b->replica, b->op, b->in[i]);
	b->done[i] = true;
	return b->out[i] == NULL ? chi_frame_status(b->replica->frame) : CHOIR_OK;
}

static choir_status reduce_all(batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (!b->done[i])
			CHOIR_TRY(may_pack(b, i) ? reduce_pack(b, i) : reduce_alone(b, i));
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
	memcpy(out, b.out, n * sizeof(choir_tensor *)); // out may be in
	return CHOIR_OK;
}
