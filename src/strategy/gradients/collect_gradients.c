// An update is a sync point without a wait. In cross-replica context one call adds and applies.
#include "strategy/gradients/gradients.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "op/op.h"
#include "strategy/cross/cross.h"
#include "strategy/cross/reduce_indexed_slices.h"
#include "strategy/gradients/execute_update.h"
#include "strategy/gradients/overlap_workers.h"
#include "strategy/gradients/sparse_gradients.h"
#include "strategy/gradients/wire_precision.h"
#include "strategy/remote_variables.h"
#include "strategy/replica/replica.h"
#include "strategy/run/sync_point.h"

static choir_status check_gradient(chi_gradients *a, const choir_replica *r,
		const choir_variable *v, const choir_tensor *gradient)
{
	char have[CHI_SHAPE_TEXT], need[CHI_SHAPE_TEXT];
	if (v == NULL)
		return chi_frame_fail(r->frame, CHOIR_INVALID, "%s: the variable is NULL", a->table->name);
	if (!chi_strategy_has(a->strategy, v))
		return chi_frame_fail(r->frame, CHOIR_INVALID,
				"%s: variable \"%s\" belongs to another strategy (%s)", a->table->name, v->name,
				v->strategy->label);
	if (v->synchronization == CHOIR_SYNCHRONIZATION_ON_READ)
		return chi_frame_fail(r->frame, CHOIR_INVALID,
				"%s: variable \"%s\" is ON_READ, so it has no common value to update",
				a->table->name, v->name);
	if (gradient->frame != r->frame)
		return chi_frame_fail(r->frame, CHOIR_INVALID,
				"%s: the gradient of \"%s\" belongs to another frame; copy it to the replica's",
				a->table->name, v->name);
	const choir_shape shape = chi_dense_shape(gradient);
	if (gradient->dtype != v->dtype || !chi_shape_equal(&shape, &v->shape))
		return chi_frame_fail(r->frame, CHOIR_INVALID,
				"%s: the gradient of \"%s\" is %s %s; the variable is %s %s", a->table->name,
				v->name, choir_dtype_name(gradient->dtype), chi_shape_print(&shape, have),
				choir_dtype_name(v->dtype), chi_shape_print(&v->shape, need));
	return chi_is_slices(gradient) && chi_gradients_take_sparse(a, v)
			? chi_tensor_check_any(gradient)
			: chi_tensor_check(gradient);
}

static chi_pending_update *current(chi_gradients *a, chi_replica *r)
{
	chi_run *run = r->run;
	if (r->adds_to != NULL && r->adds_to->gradients == a)
		return r->adds_to;
	chi_mutex_lock(&run->lock);
	int ordinal = 0;
	for (int i = 0; i < r->updates; i++)
		ordinal += run->pending[i]->gradients == a;
	chi_pending_update *u = chi_pending_update_get(a, run, ordinal);
	if (u != NULL && !u->open) {
		u->open = true;
		if (run->open == NULL && u->strategy->overlap_workers != NULL)
			chi_overlap_workers_begin(u);
		u->next_open = run->open;
		run->open = u;
	}
	chi_mutex_unlock(&run->lock);
	return r->adds_to = u;
}

static choir_status add(
		chi_gradients *a, chi_replica *r, choir_variable *v, choir_tensor *gradient)
{
	choir_frame *f = r->base.frame;
	CHOIR_TRY(check_gradient(a, &r->base, v, gradient));
	if (r->run->isolated)
		return CHOIR_OK;
	chi_pending_update *u = current(a, r);
	chi_device_gradient *g = u == NULL ? NULL : chi_pending_update_gradient(u, r->device, v);
	if (g == NULL)
		return chi_frame_record_error(f);
	if (g->last_replica == r->id ||
			chi_partial_sums_have(&g->partial_sums, chi_replica_number(r)) ||
			(g->sparse.n > 0 && chi_sparse_gradients_have(&g->sparse, r->id)))
		return chi_frame_fail(f, CHOIR_INVALID, "%s: the gradient of \"%s\" was added twice",
				a->table->name, v->name);
	choir_tensor *kept = chi_tensor_retain(f, gradient);
	CHOIR_TRY(chi_frame_made(f, kept));
	g->last_replica = r->id;
	g->position = r->gradients++;
	r->trains = true;
	r->gradient_hash = chi_hash_mix(r->gradient_hash + (uint64_t) (uintptr_t) v);
	const bool rows = chi_is_slices(kept);
	if (rows)
		u->device[r->device].has_sparse = true;
	choir_status status = rows
			? chi_sparse_gradients_add(&g->sparse, r->id, kept)
			: chi_wire_add(g, chi_replica_number(r), kept->buffer, kept->data, f->stream);
	if (kept != gradient)
		chi_tensor_drop(kept);
	if (status == CHOIR_OK && !rows)
		status = chi_overlap_added(g);
	return status == CHOIR_OK ? status : chi_frame_record_error(f);
}

choir_status chi_gradients_add(
		chi_gradients *a, choir_replica *replica, choir_variable *v, choir_tensor *gradient)
{
	CHOIR_TRY(chi_replica_check(replica, a->table->name));
	chi_replica *r = chi_replica_of(replica);
	const choir_status status =
			gradient == NULL ? chi_frame_status(replica->frame) : add(a, r, v, gradient);
	if (status != CHOIR_OK)
		chi_run_renew(r->run);
	return status;
}

static void describe(char text[64], const chi_gradients *a, const chi_replica *r,
		const chi_device_gradients *list)
{
	size_t at = chi_text_append(text, 64, 0, a->table->name);
	for (int position = 0; position < r->gradients && at < 63; position++)
		for (size_t i = 0; i < list->n; i++) {
			const chi_device_gradient *g = list->gradient[i];
			if (g->last_replica != r->id || g->position != position)
				continue;
			at = chi_text_append(text, 64, at, position == 0 ? " of " : ", ");
			at = chi_text_append(text, 64, at, g->variable->name);
		}
}

static bool has_requested(const chi_replica *r, const chi_pending_update *u)
{
	for (int i = 0; i < r->updates; i++)
		if (r->run->pending[i] == u)
			return true;
	return false;
}

choir_status chi_gradients_check_applied(chi_replica *r)
{
	const chi_pending_update *found = NULL;
	if (!r->trains)
		return CHOIR_OK;
	chi_mutex_lock(&r->run->lock);
	for (const chi_pending_update *u = r->run->open; u != NULL && found == NULL; u = u->next_open)
		if (!has_requested(r, u))
			for (size_t i = 0; i < u->device[r->device].n; i++)
				if (u->device[r->device].gradient[i]->last_replica == r->id)
					found = u;
	chi_mutex_unlock(&r->run->lock);
	if (found == NULL)
		return CHOIR_OK;
	char text[64];
	describe(text, found->gradients, r, &found->device[r->device]);
	return chi_frame_fail(r->base.frame, CHOIR_STATE,
			"gradients of %s were added but not applied; call choir_optimizer_apply_gradients",
			text);
}

static choir_status enlist(chi_sync_point *point, chi_replica *r, void *user)
{
	(void) point;
	chi_run *run = r->run;
	if (!chi_grow(&run->pending, &run->pending_capacity, run->n_pending + 1,
				sizeof(chi_pending_update *)))
		return choir_error_status();
	run->pending[run->n_pending++] = user;
	return CHOIR_OK;
}

static void invalidate_reads(chi_replica *r, const chi_pending_update *u)
{
	const chi_device_gradients *list = &u->device[r->device];
	for (choir_tensor *t = r->base.frame->tensors; t != NULL; t = t->next)
		for (size_t i = 0; t->source != NULL && i < list->n; i++)
			if (t->source->owner == list->gradient[i]->variable ||
					t->source->owner == list->gradient[i]->variable->parent)
				t->version = CHI_RETIRED;
}

// The update follows r's queued kernels. If each replica has a device, the update's stream waits
// (the previous update may use it); else the host does.
static choir_status gradients_precede(chi_replica *r, chi_device_gradients *list)
{
	const choir_strategy *s = r->run->strategy;
	chi_stream *stream = r->base.frame->stream;
	if (r->run == s->owner->default_run || s->process_group != NULL ||
			stream->device->host_memory || !s->all_here ||
			s->first[r->device + 1] - s->first[r->device] != 1 || list->has_sparse)
		return chi_stream_wait(stream);
	list->queued = stream;
	// An accelerator's memory is scarce: its frame is emptied before the update takes memory.
	r->ends_later = !stream->device->table->accelerator;
	return chi_stream_record_event(stream, &list->event);
}

static choir_status apply_gradients(chi_gradients *a, chi_replica *r)
{
	chi_run *run = r->run;
	choir_frame *f = r->base.frame;
	if (f->failed)
		return chi_frame_status(f);
	if (run->isolated)
		return chi_stream_wait(f->stream);
	chi_pending_update *u = current(a, r);
	if (u == NULL)
		return chi_frame_record_error(f);
	chi_device_gradients *list = &u->device[r->device];
	CHOIR_TRY(gradients_precede(r, list));
	const uint64_t hash = r->gradient_hash;
	r->gradient_hash = 0;
	list->cursor = 0;
	bool last;
	char text[64];
	describe(text, a, r, list);
	r->gradients = 0;
	chi_sync_point *point =
			chi_sync_point_arrive(r, CHI_SYNC_POINT_UPDATE, a, hash, text, enlist, u, &last);
	if (point == NULL)
		return chi_frame_record_error(f);
	r->updates++;
	r->adds_to = NULL;
	invalidate_reads(r, u);
	chi_sync_point_leave(point);
	if (last) {
		u->last = chi_trace_track();
		chi_atomic32_store(&u->all_applied, 1);
		if (u->overlap.with_workers)
			chi_overlap_workers_wake(u->strategy);
		chi_run_wake_up(run);
	}
	return CHOIR_OK;
}

choir_status chi_gradients_apply(chi_gradients *a, choir_replica *replica)
{
	CHOIR_TRY(chi_replica_check(replica, a->table->name));
	chi_replica *r = chi_replica_of(replica);
	choir_status status = apply_gradients(a, r);
	if (status == CHOIR_OK && r->run == a->strategy->default_run)
		// the default run has no end
		status = chi_gradients_finish_updates_of(r, NULL);
	chi_run_renew(r->run);
	return status;
}

// Earlier updates may change a variable's memory.
static choir_tensor *steady(choir_cross *x, choir_tensor *t)
{
	if (t == NULL || t->source == NULL || t->source->copied)
		return t;
	choir_frame *f = chi_cross_frame_on(chi_cross_of(x), chi_tensor_memory_device(t));
	choir_tensor *kept = f == NULL ? NULL : chi_tensor_retain(f, t);
	if (kept != NULL && chi_stream_wait(f->stream) == CHOIR_OK)
		return kept;
	chi_frame_record_error(x->frame);
	return NULL;
}

// Counted as the first replica's.
static choir_status add_slices(chi_gradients *a, chi_pending_update *u, choir_cross *x,
		choir_variable *v, choir_tensor *t)
{
	CHOIR_TRY(check_gradient(a, &(choir_replica){ x->frame }, v, t));
	for (int d = 0; d < u->strategy->devices; d++)
		if (chi_pending_update_gradient(u, d, v) == NULL)
			return choir_error_status();
	u->device[0].has_sparse = true;
	return chi_sparse_gradients_add(&chi_pending_update_gradient(u, 0, v)->sparse, 0, t);
}

static choir_status add_value(chi_gradients *a, chi_pending_update *u, choir_cross *x,
		choir_variable *v, choir_value *value)
{
	choir_strategy *s = u->strategy;
	if (v != NULL && value != NULL && value->kind == CHOIR_VALUE_PLAIN &&
			chi_is_slices(value->component[0]) && chi_gradients_take_sparse(a, v))
		return add_slices(a, u, x, v, value->component[0]);
	if (v == NULL || value == NULL || (value = chi_dense_value(x, value)) == NULL)
		return chi_frame_status(x->frame);
	for (int d = 0; d < s->devices; d++) {
		chi_device_gradient *g = chi_pending_update_gradient(u, d, v);
		if (g == NULL)
			return choir_error_status();
		if (value->kind != CHOIR_VALUE_PER_REPLICA) {
			g->collective.kind = CHOIR_BROADCAST;
			g->partial_sums.dtype = v->dtype;
			choir_tensor *t = choir_value_tensor(value);
			t = t == NULL ? NULL : steady(x, chi_value_view(x->frame, t));
			if (t == NULL)
				return choir_error_status();
			CHOIR_TRY(check_gradient(a, &(choir_replica){ x->frame }, v, t));
			if (d == 0)
				CHOIR_TRY(chi_partial_sums_add(
						&g->partial_sums, 0, t->buffer, t->data, x->frame->stream));
			continue;
		}
		for (int r = s->first[d]; r < s->first[d + 1]; r++) {
			choir_tensor *t = value->component[r];
			CHOIR_TRY(check_gradient(a, &(choir_replica){ t->frame }, v, t));
			if ((t = steady(x, t)) == NULL)
				return choir_error_status();
			CHOIR_TRY(chi_wire_add(g, chi_strategy_id(s, r), t->buffer, t->data, s->exchange[d]));
		}
	}
	return CHOIR_OK;
}

choir_status chi_gradients_apply_now(chi_gradients *a, choir_cross *x, size_t n,
		choir_variable *const v[], choir_value *const values[])
{
	CHOIR_TRY(chi_cross_check(x, a->table->name));
	chi_cross *hidden = chi_cross_of(x);
	choir_strategy *s = hidden->strategy;
	chi_run *run = hidden->run != NULL ? hidden->run : s->run;
	if (hidden->run != NULL && run->isolated)
		return CHOIR_OK;
	chi_pending_update *u = chi_remote_refresh_to_write(s) != CHOIR_OK
			? NULL
			: chi_pending_update_get(a, run, CHOIR_NONE);
	if (u == NULL)
		return chi_frame_record_error(x->frame);
	chi_fpenv host;
	chi_fpenv_enter(&host);
	choir_status status = CHOIR_OK;
	for (size_t i = 0; status == CHOIR_OK && i < n; i++)
		status = add_value(a, u, x, v[i], values[i]);
	if (status == CHOIR_OK)
		status = chi_stream_wait(x->frame->stream); // the queue may still make values
	status = chi_strategy_wait(s, 0, s->devices, status);
	if (status == CHOIR_OK)
		status = chi_pending_update_execute(u, 0, s->devices, true);
	if (status != CHOIR_OK)
		chi_strategy_reset_collectives(s);
	chi_pending_update_discard(u);
	chi_fpenv_leave(&host);
	return status == CHOIR_OK ? status : chi_frame_record_error(x->frame);
}
