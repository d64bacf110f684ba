// Making and reading variables, by context: in cross-replica context all copies are made; in
// replicas replica 0 makes them and the others get the same one.
#include "base/alloc.h"
#include "base/hash.h"
#include "base/options.h"
#include "base/text.h"
#include "op/tape/tape.h"
#include "strategy/gradients/gradients.h"
#include "strategy/run/sync_point.h"
#include "strategy/cross/reduce.h"
#include "strategy/update/update.h"
#include "strategy/variable/sharded_read.h"
#include "strategy/variable/assign.h"
#include "value/sharded_variable.h"
#include "value/sparse_read.h"

#include <stdio.h>
#include <string.h>

// What scopes say about a new variable.
static choir_status apply_scopes(
		const chi_context *c, const choir_variable_options *o, choir_variable_options *all)
{
	CHOIR_TRY(chi_options_take("variable: the options'", all, sizeof *all, o));
	if (c != NULL && c->replica_local) {
		all->synchronization = CHOIR_SYNCHRONIZATION_ON_READ;
		all->aggregation = c->aggregation;
		all->trainable = CHOIR_OFF;
	}
	return CHOIR_OK;
}

// The name without the numbers that make names unique: "_12" at its end and before a "/". Replicas
// whose names differ in these alone mean the same variable. NULL: no memory.
static char *canonical_name(chi_arena *arena, const char *name)
{
	char *out = chi_arena_alloc(arena, strlen(name) + 1);
	for (size_t n = 0; out != NULL && *name != '\0';) {
		const size_t digits = *name == '_' ? strspn(name + 1, "0123456789") : 0;
		if (digits > 0 && (name[1 + digits] == '/' || name[1 + digits] == '\0'))
			name += 1 + digits;
		else
			out[n++] = *name++;
		out[n] = '\0';
	}
	return out;
}

static uint64_t hash_creation(const chi_creation *c, const char *name)
{
	uint64_t hash = chi_hash_text(name) + (uint64_t) c->options->dtype;
	for (int i = 0; i < c->shape->rank; i++)
		hash = chi_hash_mix(hash + (uint64_t) c->shape->dim[i]);
	return hash;
}

// In replicas: replica 0 makes it, whenever it comes; the others wait for that.
static choir_variable *make_in_replica(chi_replica *r, const chi_creation *c)
{
	choir_frame *f = r->base.frame;
	char text[CHI_SYNC_POINT_NAME], shape[CHI_SHAPE_TEXT], fit[48];
	bool last;
	chi_text_fit(c->name, fit, sizeof fit);
	snprintf(text, sizeof text, "the creation of variable \"%s\", %s %.40s", fit,
			choir_dtype_name(c->options->dtype), chi_shape_print(c->shape, shape));
	// It may park; what others add its gradients to must be there.
	// Of several workers all make it at the same place among their exchanges: what r has asked for
	// comes first.
	if (f->failed || chi_stream_wait(f->stream) != CHOIR_OK ||
			(r->run->strategy->process_group != NULL &&
					chi_gradients_finish_updates_of(r, NULL) != CHOIR_OK)) {
		chi_frame_record_error(f);
		return NULL;
	}
	const char *name = canonical_name(&f->arena, c->name);
	chi_sync_point *point = name == NULL
			? NULL
			: chi_sync_point_arrive(r, CHI_SYNC_POINT_CREATE, NULL, hash_creation(c, name), text,
					  NULL, NULL, &last);
	if (point == NULL) {
		chi_frame_record_error(f);
		return NULL;
	}
	if (r->id == 0) {
		choir_variable *v = chi_strategy_find_or_make_variable(r->run->strategy, c);
		if (v == NULL) { // nobody need wait for it
			chi_frame_record_error(f);
			chi_run_fail(r->run, 0);
			return NULL;
		}
		point->variable = v;
		chi_sync_point_ready(r->run, point);
	} else if (chi_scheduler_wait(r, &point->ready, point) != CHOIR_OK) {
		chi_frame_record_error(f);
		return NULL;
	}
	choir_variable *made = point->variable;
	chi_sync_point_leave(r, point);
	return made;
}

// After a failure: in a replica its frame keeps it.
static choir_variable *kept_by_replica(const chi_context *c)
{
	if (c != NULL && c->kind == CHI_IN_REPLICA)
		chi_frame_record_error(((const chi_replica *) c->what)->base.frame);
	return NULL;
}

choir_variable *choir_variable_new(
		const char *name, choir_shape shape, const choir_variable_options *o)
{
	const chi_context *c = chi_context_current();
	choir_strategy *s = choir_strategy_current();
	choir_variable_options all;
	if (s == NULL || chi_strategy_check(s) != CHOIR_OK || apply_scopes(c, o, &all) != CHOIR_OK)
		return kept_by_replica(c);
	if (c != NULL && c->kind == CHI_IN_UPDATE) {
		choir_fail(CHOIR_STATE, "variable \"%s\": an update function makes no variables",
				name == NULL ? "" : name);
		return NULL;
	}
	const chi_creation wanted = { .name = name,
		.shape = &shape,
		.options = &all,
		.colocated_with = c == NULL ? NULL : c->colocate,
		.non_slot = c != NULL && c->non_slot };
	if (c == NULL || c->kind == CHI_IN_CROSS)
		return chi_strategy_make_variable(s, &wanted);
	if (name == NULL || name[0] == '\0') {
		choir_fail(CHOIR_INVALID, "variable: a variable needs a name");
		return kept_by_replica(c);
	}
	return make_in_replica(c->what, &wanted);
}

choir_variable *choir_variable_wrap(
		const char *name, choir_dtype dtype, choir_shape shape, void *memory)
{
	choir_strategy *s = choir_strategy_current();
	if (s == NULL || chi_context_need_cross(s, "variable_wrap") != CHOIR_OK)
		return NULL;
	if (memory == NULL) {
		choir_fail(CHOIR_INVALID, "variable \"%s\": the memory to wrap is NULL",
				name == NULL ? "" : name);
		return NULL;
	}
	const chi_context *c = chi_context_current();
	const choir_variable_options o = { .size = sizeof o, .dtype = dtype };
	return chi_strategy_make_variable(s,
			&(chi_creation){ .name = name,
					.shape = &shape,
					.options = &o,
					.colocated_with = c == NULL ? NULL : c->colocate,
					.non_slot = c != NULL && c->non_slot,
					.wrap = memory });
}

choir_status chi_replica_check_variable(const chi_replica *r, const choir_variable *v)
{
	const choir_strategy *s = r->run->strategy;
	return chi_strategy_has(s, v)
			? CHOIR_OK
			: chi_frame_fail(r->base.frame, CHOIR_STATE,
					  "variable \"%s\": mixing strategies: it belongs to %s, this "
					  "replica to %s",
					  v->name, v->strategy->label, s->label);
}

static int copy_for_replica(chi_replica *r, const choir_variable *v)
{
	if (chi_replica_check_variable(r, v) != CHOIR_OK)
		return CHI_NO_COPY;
	return chi_gradients_finish_updates_of(r, v) == CHOIR_OK
			? chi_strategy_copy(r->run->strategy, v, r->id)
			: CHI_NO_COPY;
}

// Which copy of v f's context sees, CHI_ALL_COPIES or CHI_NO_COPY.
static int copy_for(choir_frame *f, const choir_variable *v)
{
	// The default replica outside any run sees other strategies' variables from outside.
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

// While a tape records, a variable is one tensor, so that its gradient is one as well.
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

static choir_tensor *read_alone(choir_variable *v, choir_frame *f)
{
	choir_tensor *t = read_before(v, f);
	if (t != NULL)
		return chi_variable_is_sparse_read(t) ? chi_variable_fill_sparse_read(t) : t;
	const int copy = copy_for(f, v);
	if (copy == CHI_NO_COPY)
		return NULL;
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

// The read of v from which rows are taken: one that the tape has, or one without values. A segment
// that is recomputed must find the same values again, so there the values are read.
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

choir_tensor *chi_read_rows(choir_variable *v, choir_tensor *indices)
{
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

// The value of an on-read variable in a replica, of which own is its part.
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

// Also one tensor while a tape records; but the sources of optimizers are the shards.
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
	choir_tensor *own = read_alone(v, f);
	if (own != NULL && v->synchronization == CHOIR_SYNCHRONIZATION_ON_READ && c != NULL &&
			c->sync_on_read && f->context_kind == CHI_IN_REPLICA && f->context == c->what)
		return read_together(f->context, v, own);
	return own;
}

// The whole's value: a set's frame, in which a replica's result is kept, is in no context, and
// reads any copies.
static choir_tensor *shards_component(choir_variable *v, choir_frame *f)
{
	const bool inside = f->context_kind == CHI_IN_REPLICA || f->context_kind == CHI_IN_UPDATE;
	const uint64_t version = chi_atomic64_load(&v->source.version);
	choir_tape *tape = f->tape;
	f->tape = NULL; // it is no read for tapes
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
	if (f->context_kind == CHI_IN_UPDATE && ((chi_update *) f->context)->chunk != NULL)
		return chi_update_chunk_read(f->context, v);
	// A set's frame, in which a replica's result is kept, is in no context: any copy stands for
	// it.
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
