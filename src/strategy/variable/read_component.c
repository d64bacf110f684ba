// The context decides which copy of a variable is read and when components are aggregated.
#include "strategy/variable/read_component.h"

#include "base/hash.h"
#include "choir/op.h"
#include "op/tape/tape.h"
#include "strategy/cross/reduce.h"
#include "strategy/gradients/gradients.h"
#include "strategy/remote_variables.h"
#include "strategy/replica/replica.h"
#include "strategy/update/update.h"
#include "strategy/variable/sharded_variable.h"
#include "value/shard_rows.h"
#include "value/sparse_read.h"

#include <stdio.h>

static int copy_for_replica(chi_replica *r, const choir_variable *v)
{
	if (chi_replica_check_variable(r, v) != CHOIR_OK)
		return CHI_NO_COPY;
	return chi_gradients_finish_updates_of(r, v) == CHOIR_OK
			? chi_strategy_copy(r->run->strategy, v, r->id)
			: CHI_NO_COPY;
}

static int copy_for(choir_frame *f, const choir_variable *v)
{
	// The default replica sees other strategies' variables from outside.
	const chi_replica *r = f->context_kind == CHI_IN_REPLICA ? f->context : NULL;
	if (r != NULL && (!chi_replica_is_default(r) || chi_strategy_has(r->run->strategy, v)))
		return copy_for_replica(f->context, v);
	if (f->context_kind == CHI_IN_UPDATE)
		return chi_update_copy_of(f->context, v);
	if (chi_context_sees_all(v->strategy, "reading it in this frame") == CHOIR_OK)
		return CHI_ALL_COPIES;
	chi_error_prefix("variable \"%s\"", v->name);
	chi_frame_record_error(f);
	return CHI_NO_COPY;
}

// While a tape records, reads of a variable are one tensor, with one gradient.
static choir_tensor *read_before(const choir_variable *v, choir_frame *f)
{
	const choir_tape *tape = f->tape;
	for (size_t i = 0; tape != NULL && i < tape->n_reads; i++) {
		choir_tensor *t = tape->reads[i];
		if (t->source != NULL && t->source->owner == v && t->buffer != NULL &&
				chi_source_current(t->source, t->version))
			return t;
	}
	return NULL;
}

static choir_tensor *read_own(choir_variable *v, choir_frame *f, bool rows)
{
	if (!rows && chi_remote_fetch(v, 0, NULL) != CHOIR_OK)
		return chi_frame_record_null(f);
	choir_tensor *t = read_before(v, f);
	if (t != NULL)
		return chi_variable_is_sparse_read(t) ? chi_variable_fill_sparse_read(t) : t;
	const int copy = copy_for(f, v);
	if (copy == CHI_NO_COPY)
		return NULL;
	// ON_READ variables are on no server.
	if (copy == CHI_ALL_COPIES && v->synchronization != CHOIR_SYNCHRONIZATION_ON_READ &&
			chi_remote_refresh(v->strategy) != CHOIR_OK)
		return chi_frame_record_null(f);
	if (copy != CHI_ALL_COPIES)
		t = chi_variable_alias(v, copy, f);
	else if (v->synchronization == CHOIR_SYNCHRONIZATION_ON_READ)
		return chi_read_aggregated(v, f);
	else
		t = chi_variable_view(v, 0, f);
	if (t != NULL && f->tape != NULL && chi_tape_add_read(f->tape, t) != CHOIR_OK)
		return NULL;
	return t;
}

// The tape's read of v, or one without values. A recomputed segment finds the same values.
static choir_tensor *read_for_rows(choir_variable *v, choir_frame *f)
{
	choir_tensor *t = read_before(v, f);
	if (t != NULL && (!chi_variable_is_sparse_read(t) || f->tape->segments == 0))
		return t;
	if (f->failed || f->context_kind != CHI_IN_REPLICA || !chi_variable_allows_sparse_read(v, f) ||
			(f->tape != NULL && f->tape->segments > 0))
		return choir_variable_read(v, f);
	const int copy = copy_for(f, v);
	if (copy == CHI_ALL_COPIES)
		return choir_variable_read(v, f);
	t = copy == CHI_NO_COPY ? NULL : chi_variable_sparse_read(v, copy, f);
	return t == NULL || f->tape == NULL || chi_tape_add_read(f->tape, t) == CHOIR_OK ? t : NULL;
}

// Of a variable on servers only the rows travel.
static choir_tensor *read_fetched_rows(choir_variable *v, choir_tensor *indices)
{
	choir_frame *f = indices->frame;
	const int64_t n = choir_shape_elements(&indices->shape);
	if (f->failed || f->context_kind != CHI_IN_REPLICA ||
			!chi_tensor_memory_device(indices)->host_memory)
		return choir_gather(choir_variable_read(v, f), indices);
	int64_t *row = chi_arena_alloc(&f->arena, (size_t) (n + 1) * sizeof *row);
	choir_status status = row == NULL ? choir_error_status() : chi_stream_wait(f->stream);
	for (int64_t i = 0; status == CHOIR_OK && i < n; i++)
		row[i] = (int64_t) chi_dtype_load(indices->dtype, indices->data, i);
	if (status == CHOIR_OK)
		status = chi_remote_fetch(v, n, row);
	if (status == CHOIR_OK)
		return choir_gather(read_own(v, f, true), indices);
	chi_frame_record_error(f);
	return NULL;
}

choir_tensor *chi_variable_read_rows(choir_variable *v, choir_tensor *indices)
{
	if (chi_remote_fetches(v))
		return read_fetched_rows(v, indices);
	choir_tensor *t = read_for_rows(v, indices->frame);
	return t != NULL && chi_variable_is_sparse_read(t)
			? chi_gather_by(chi_variable_gather_rows, t, indices)
			: choir_gather(t, indices);
}

static choir_tensor *bring_together(choir_replica *r, const choir_variable *v, choir_tensor *own)
{
	switch (v->aggregation) {
	case CHOIR_AGGREGATION_SUM:
		return choir_replica_all_reduce(r, CHOIR_SUM, own);
	case CHOIR_AGGREGATION_MEAN:
		return choir_replica_all_reduce(r, CHOIR_MEAN, own);
	case CHOIR_AGGREGATION_ONLY_FIRST_REPLICA:
		return choir_replica_broadcast(r, own, 0);
	case CHOIR_AGGREGATION_NONE:
		break;
	}
	return chi_frame_fail_null(r->frame, CHOIR_INVALID,
			"variable \"%s\": it is ON_READ without an "
			"aggregation, so it has no value outside a replica",
			v->name);
}

static choir_tensor *read_together(choir_replica *r, const choir_variable *v, choir_tensor *own)
{
	chi_label *label = &chi_replica_of(r)->label;
	char name[sizeof label->name - 2];
	label->hash = chi_hash_mix((uint64_t) (uintptr_t) v);
	snprintf(label->name, sizeof label->name, "\"%s\"", chi_text_fit(v->name, name, sizeof name));
	label->call = "read";
	choir_tensor *t = bring_together(r, v, own);
	label->hash = 0;
	label->call = NULL;
	return t;
}

static choir_tensor *read_whole(choir_variable *v, choir_frame *f)
{
	choir_tensor *t = read_before(v, f);
	if (t != NULL)
		return t;
	t = chi_shards_read(v, f);
	return t == NULL || f->tape == NULL || chi_tape_add_read(f->tape, t) == CHOIR_OK ? t : NULL;
}

choir_tensor *choir_variable_read(choir_variable *v, choir_frame *f)
{
	if (v == NULL || f == NULL || f->failed)
		return NULL;
	const chi_update *u = f->context_kind == CHI_IN_UPDATE ? f->context : NULL;
	if (u != NULL)
		v = chi_update_shard(u, v);
	if (u != NULL && u->chunk != NULL)
		return chi_update_chunk_read(u, v);
	if (v->shards > 0)
		return read_whole(v, f);
	const chi_context *c = chi_context_current();
	choir_tensor *own = read_own(v, f, false);
	if (own != NULL && v->synchronization == CHOIR_SYNCHRONIZATION_ON_READ && c != NULL &&
			c->sync_on_read && f->context_kind == CHI_IN_REPLICA && f->context == c->what)
		return read_together(f->context, v, own);
	return own;
}

// A frame without a context, such as a result's, reads any copies.
static choir_tensor *shards_component(choir_variable *v, choir_frame *f)
{
	const bool inside = f->context_kind == CHI_IN_REPLICA || f->context_kind == CHI_IN_UPDATE;
	const uint64_t version = chi_atomic64_load(&v->source.version);
	choir_tape *tape = f->tape;
	f->tape = NULL; // tapes must not see this read
	choir_tensor *t = inside ? chi_shards_read(v, f) : chi_shards_view(v, f);
	f->tape = tape;
	if (t == NULL)
		return NULL;
	t->source = &v->source;
	t->version = version;
	t->component = true;
	return t;
}

choir_tensor *choir_variable_component(choir_variable *v, choir_frame *f)
{
	if (v == NULL || f == NULL || f->failed)
		return NULL;
	if (f->context_kind == CHI_IN_UPDATE)
		v = chi_update_shard(f->context, v);
	if (v->shards > 0)
		return shards_component(v, f);
	if (chi_remote_fetch(v, 0, NULL) != CHOIR_OK)
		return chi_frame_record_null(f);
	if (f->context_kind == CHI_IN_UPDATE && ((chi_update *) f->context)->chunk != NULL)
		return chi_update_chunk_read(f->context, v);
	const bool inside = f->context_kind == CHI_IN_REPLICA || f->context_kind == CHI_IN_UPDATE;
	int copy = inside ? copy_for(f, v) : 0;
	if (copy == CHI_NO_COPY)
		return NULL;
	copy = copy == CHI_ALL_COPIES ? 0 : copy;
	choir_tensor *t = chi_variable_alias(v, copy, f);
	if (t != NULL)
		t->component = true;
	return t;
}
