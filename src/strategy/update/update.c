// Updates in cross-replica context: each copy on its device, non-slot variables together, once per
// device.
#include "strategy/update/update.h"

#include "base/clock.h"
#include "base/options.h"
#include "strategy/remote_variables.h"
#include "strategy/replica/merge_call.h"
#include "value/shard_rows.h"

static chi_update *update_of(const choir_update *u)
{
	return (chi_update *) (uintptr_t) u;
}

static const char *name_of(const chi_update *u)
{
	return u->variable == NULL ? "non-slot variables" : u->variable->name;
}

static int copies_of(const chi_update *u)
{
	return u->variable == NULL ? u->destination->count : u->variable->copies;
}

static choir_device *device_of(const chi_update *u)
{
	return u->variable == NULL ? u->destination->device[u->copy]
							   : u->variable->copy[u->copy].device;
}

static chi_recursive_lock *lock_of(const chi_update *u)
{
	return u->variable == NULL ? &u->cross->strategy->owner->non_slot_lock : u->variable->lock;
}

static bool colocated(const chi_update *u, const choir_variable *v)
{
	const choir_variable *target = u->variable;
	if (target == NULL)
		return v->non_slot && chi_strategy_has(u->cross->strategy, v);
	return v == target || v->colocated_with == target ||
			(v->colocated_with != NULL && v->colocated_with == target->colocated_with);
}

static choir_status check_target(const chi_update *u, const choir_variable *v)
{
	if (v != NULL && colocated(u, v))
		return CHOIR_OK;
	return chi_frame_fail(u->base.frame, CHOIR_INVALID,
			"update of \"%s\": variable \"%s\" is not colocated "
			"with it; an update writes only colocated variables",
			name_of(u), v == NULL ? "" : v->name);
}

choir_variable *chi_update_shard(const chi_update *u, choir_variable *v)
{
	if (u->parent == NULL || v == NULL || v->shards != u->parent->shards)
		return v;
	choir_variable *shard = v->shard[u->variable->shard_index];
	return colocated(u, shard) ? shard : v;
}

choir_tensor *chi_update_rows(const chi_update *u, choir_tensor *t)
{
	return u->parent != NULL && t != NULL && t->buffer != NULL &&
					chi_shape_equal(&t->shape, &u->parent->shape)
			? chi_shard_rows(u->variable, t)
			: t;
}

int chi_update_copy_of(const chi_update *u, const choir_variable *v)
{
	if (chi_strategy_has(u->cross->strategy, v)) {
		// Waiting for a second lock could deadlock.
		if (v->concurrency == CHI_LOCKED && v->lock != lock_of(u)) {
			chi_frame_fail(u->base.frame, CHOIR_STATE,
					"update of \"%s\": variable \"%s\" is not colocated with it, and other "
					"workers may be changing it; read it before and pass it as an argument",
					name_of(u), v->name);
			return CHI_NO_COPY;
		}
		if (v == u->variable)
			return u->copy;
		for (int i = 0; v->synchronization != CHOIR_SYNCHRONIZATION_ON_READ && i < v->copies; i++)
			if (chi_device_shares(v->copy[i].device, device_of(u)))
				return i;
		return chi_strategy_copy(u->cross->strategy, v, u->replica);
	}
	chi_frame_fail(u->base.frame, CHOIR_STATE,
			"variable \"%s\": mixing strategies: it belongs to %s, this update to %s", v->name,
			v->strategy->label, u->cross->strategy->label);
	return CHI_NO_COPY;
}

static void note_written(chi_update *u, choir_variable *v)
{
	if (u->chunk != NULL) {
		chi_update_chunk_note_written(u, v);
		return;
	}
	if (v->written)
		return;
	v->written = true;
	v->next_written = u->written;
	u->written = v;
}

choir_status chi_update_wrote(chi_update *u, choir_variable *v, choir_status status)
{
	if (status != CHOIR_UNSUPPORTED)
		note_written(u, v);
	return status;
}

choir_status chi_update_may_scatter(choir_update *update, const choir_variable *v)
{
	chi_update *u = update_of(update);
	CHOIR_TRY(check_target(u, v));
	if (u->chunk != NULL)
		return chi_frame_fail(update->frame, CHOIR_UNSUPPORTED,
				"update of \"%s\": it writes rows of \"%s\"; an elementwise update writes none",
				name_of(u), v->name);
	return CHOIR_OK;
}

choir_status chi_update_write(
		choir_update *update, choir_variable *v, chi_assign_op op, choir_tensor *t)
{
	chi_update *u = update_of(update);
	v = chi_update_shard(u, v);
	CHOIR_TRY(check_target(u, v));
	if (u->chunk != NULL)
		return chi_update_chunk_write(u, v, op, t);
	t = chi_update_rows(u, t);
	CHOIR_TRY(chi_frame_made(update->frame, t));
	CHOIR_TRY(chi_variable_check_written(v, t));
	return chi_update_wrote(u, v, chi_variable_write(v, chi_update_copy_of(u, v), op, t));
}

choir_variable *choir_update_variable(const choir_update *u)
{
	return u == NULL ? NULL : update_of(u)->variable;
}

int choir_update_copy(const choir_update *u)
{
	return u == NULL ? CHOIR_NONE : update_of(u)->copy;
}

choir_tensor *choir_update_arg(choir_update *update, const char *name)
{
	const chi_update *u = update_of(update);
	if (u == NULL)
		return NULL;
	choir_frame *f = update->frame;
	choir_value *v = choir_values_find(u->cross->call_args, name == NULL ? "" : name);
	if (v == NULL) {
		chi_error_prefix("update of \"%s\"", name_of(u));
		return chi_frame_record_null(f);
	}
	if (u->chunk != NULL)
		return chi_update_chunk_arg(u,
				(size_t) (chi_values_leaf(u->cross->call_args, name) - u->cross->call_args->leaf));
	if (v->kind == CHOIR_VALUE_VARIABLE)
		return choir_variable_component(v->variable, f);
	if (chi_value_materialize(v) != CHOIR_OK)
		return chi_frame_record_null(f);
	choir_tensor *t = chi_value_for_replica(v, 0, f->device);
	if (t == NULL)
		return chi_frame_fail_null(f, CHOIR_INVALID,
				"update of \"%s\": \"%s\" is a destination and has no value", name_of(u), name);
	return t->is_number ? choir_number(f, t->number) : chi_update_rows(u, chi_value_view(f, t));
}

choir_status choir_update_return(choir_update *update, const char *name, choir_tensor *value)
{
	chi_update *u = update_of(update);
	if (u == NULL)
		return choir_fail(CHOIR_INVALID, "return: the update is NULL");
	choir_frame *f = update->frame;
	if (u->elementwise)
		return chi_frame_fail(f, CHOIR_INVALID,
				"update of \"%s\": the function returned a "
				"value; an elementwise function returns none",
				name_of(u));
	CHOIR_TRY(chi_results_check(f, name, value));
	if (u->parent != NULL &&
			(value->is_number || value->shape.rank == 0 ||
					value->shape.dim[0] != u->variable->shape.dim[0]))
		return chi_frame_fail(f, CHOIR_INVALID,
				"update of \"%s\": the returned \"%s\" has another "
				"shape; it needs the %lld rows of the shard",
				name_of(u), name, (long long) u->variable->shape.dim[0]);
	choir_values *returned = u->cross->next_results;
	choir_frame *to = chi_values_replica_frame(returned, u->replica);
	choir_tensor *kept = to == NULL ? NULL : chi_tensor_retain(to, value);
	if (kept == NULL)
		return chi_frame_record_error(f);
	chi_leaf *leaf = chi_values_leaf(returned, name);
	if (leaf == NULL) {
		choir_value *v = chi_value_new(returned->frame, CHOIR_VALUE_MIRRORED,
				u->parent != NULL ? u->parent->shards : copies_of(u));
		if (chi_values_put(returned, name, v) != CHOIR_OK)
			return chi_frame_record_error(f);
		leaf = chi_values_leaf(returned, name);
	}
	const int destination = u->parent != NULL ? u->variable->shard_index : u->copy;
	leaf->value->component[destination] = kept;
	leaf->value->device[destination] = choir_tensor_device(kept);
	return CHOIR_OK;
}

static choir_status check_returned(const chi_update *u)
{
	const choir_values *returned = u->cross->next_results;
	for (size_t i = 0; i < returned->n; i++)
		for (int k = 0; k < returned->leaf[i].value->count; k++)
			if (returned->leaf[i].value->component[k] == NULL)
				return choir_fail(CHOIR_INVALID,
						"update of \"%s\": the function returned no \"%s\" "
						"for %s %d; it must return the same names for all",
						u->parent != NULL ? u->parent->name : name_of(u), returned->leaf[i].name,
						u->parent != NULL ? "shard" : "copy", k);
	return CHOIR_OK;
}

static choir_status join_returned(const chi_update *u)
{
	const choir_values *returned = u->cross->next_results;
	choir_frame *f = chi_values_replica_frame(u->cross->next_results, 0);
	if (f == NULL)
		return choir_error_status();
	for (size_t i = 0; i < returned->n; i++) {
		choir_value *v = returned->leaf[i].value;
		for (int k = 0; k < v->count; k++)
			if ((v->component[k] = chi_value_view(f, v->component[k])) == NULL)
				return chi_frame_status(f);
		v->component[0] = chi_shards_join_rows(v->count, v->component);
		CHOIR_TRY(chi_frame_made(f, v->component[0]));
		v->device[0] = choir_tensor_device(v->component[0]);
		v->count = 1;
	}
	return CHOIR_OK;
}

int64_t choir_update_elements(const choir_update *u)
{
	const choir_variable *v = choir_update_variable(u);
	if (v == NULL)
		return 0;
	return update_of(u)->chunk != NULL ? update_of(u)->count : v->elements;
}

void *choir_update_data(choir_update *update, choir_variable *v)
{
	chi_update *u = update_of(update);
	if (u != NULL)
		v = chi_update_shard(u, v);
	if (u == NULL || check_target(u, v) != CHOIR_OK)
		return NULL;
	const int copy = chi_update_copy_of(u, v);
	if (!v->copy[copy].device->host_memory || v->concurrency == CHI_LOCK_FREE)
		return NULL;
	if (u->chunk != NULL) {
		void *chunk = chi_update_chunk_of(u, v);
		if (chunk != NULL)
			note_written(u, v);
		return chunk;
	}
	note_written(u, v);
	chi_variable_bump_version(v, copy);
	return v->copy[copy].buffer->memory;
}

static int reader_of(const chi_update *u)
{
	const chi_layout *layout = &u->cross->strategy->layout;
	int r = 0;
	while (r + 1 < layout->replicas &&
			(u->variable != NULL ? chi_strategy_copy(u->cross->strategy, u->variable, r) != u->copy
								 : !chi_device_shares(layout->device[r], device_of(u))))
		r++;
	return r;
}

choir_status chi_update_call(chi_update *u, choir_frame *f, choir_update_fn *fn, void *user)
{
	u->base.frame = f;
	f->context = u;
	f->context_kind = CHI_IN_UPDATE;
	chi_context inside;
	chi_fpenv host;
	chi_fpenv_enter(&host);
	chi_context *entry = chi_context_enter(&inside, CHI_IN_UPDATE, u->cross->strategy, u);
	entry->frame = f;
	chi_error_clear();
	choir_status status = fn(&u->base, user);
	status = chi_context_leave(entry, status, "update of \"%s\": the function", name_of(u));
	if (status == CHOIR_OK)
		status = f->failed ? chi_frame_status(f) : chi_stream_wait(f->stream);
	chi_fpenv_leave(&host);
	return status;
}

static choir_status update_one(chi_update *u, choir_update_fn *fn, void *user)
{
	if (chi_update_is_chunked(u))
		return chi_update_chunks(u, fn, user);
	choir_frame *f = chi_cross_acquire_frame(u->cross, device_of(u));
	CHOIR_TRY(chi_made(f));
	return chi_cross_release_frame(u->cross, f, chi_update_call(u, f, fn, user));
}

static choir_status update_copy(chi_update *u, choir_update_fn *fn, void *user)
{
	u->replica = reader_of(u);
	chi_trace_begin(CHOIR_TRACE_UPDATE, name_of(u));
	const choir_status status = update_one(u, fn, user);
	chi_trace_end();
	return status;
}

static void finish_written(chi_update *u, choir_status status)
{
	for (choir_variable *v = u->written; v != NULL; v = v->next_written) {
		v->written = false;
		if (status != CHOIR_OK)
			chi_variable_undefine(v);
	}
	u->written = NULL;
}

static choir_status check_given(const chi_update *u)
{
	const choir_values *given = u->cross->call_args;
	for (size_t i = 0; i < given->n; i++)
		if (given->leaf[i].value->kind == CHOIR_VALUE_PER_REPLICA)
			return choir_fail(CHOIR_INVALID,
					"update of \"%s\": \"%s\" differs between replicas; reduce it first",
					name_of(u), given->leaf[i].name);
	return CHOIR_OK;
}

static bool may_change(const chi_update *u, const choir_tensor *t)
{
	if (t == NULL)
		return false;
	const choir_variable *v = t->source == NULL || t->source->copied ? NULL : t->source->owner;
	if (v != NULL && (colocated(u, v) || (v->parent != NULL && colocated(u, v->parent))))
		return true;
	return u->variable != NULL && chi_variable_concerns(u->variable, t);
}

// All copies and chunks must see the same arguments.
static choir_value *steady(const chi_update *u, choir_value *v)
{
	choir_frame *f = u->cross->base.frame;
	bool changes = false;
	for (int i = 0; v->component != NULL && v->materialize == NULL && i < v->count; i++)
		changes = changes || may_change(u, v->component[i]);
	if (!changes)
		return v;
	choir_value *kept = chi_value_new(f, v->kind, v->count);
	for (int i = 0; kept != NULL && i < v->count; i++) {
		choir_frame *there = chi_cross_frame_on(u->cross, v->device[i]);
		kept->device[i] = v->device[i];
		kept->component[i] = there == NULL ? NULL : chi_tensor_retain(there, v->component[i]);
		if (kept->component[i] == NULL || chi_stream_wait(there->stream) != CHOIR_OK)
			return chi_frame_record_null(f);
	}
	return kept;
}

static choir_status keep_given(const chi_update *u)
{
	choir_values *given = u->cross->call_args;
	for (size_t i = 0; i < given->n; i++) {
		choir_value *v = steady(u, given->leaf[i].value);
		CHOIR_TRY(chi_frame_made(u->cross->base.frame, v));
		given->leaf[i].value = v;
	}
	return CHOIR_OK;
}

// With the lock: one worker at a time updates.
static choir_status update_copies(chi_update *u, choir_update_fn *fn, void *user)
{
	const choir_strategy *s = u->cross->strategy;
	const bool shared = s->concurrency != CHI_EXCLUSIVE;
	if (shared && !chi_recursive_lock_enter(lock_of(u), chi_clock_deadline(s->timeout)))
		return choir_fail(CHOIR_TIMEOUT,
				"update of \"%s\": waited %g s for another worker that updates it", name_of(u),
				s->timeout);
	choir_status status = CHOIR_OK;
	for (u->copy = 0; status == CHOIR_OK && u->copy < copies_of(u); u->copy++)
		status = update_copy(u, fn, user);
	finish_written(u, status);
	if (shared)
		chi_recursive_lock_leave(lock_of(u));
	return status;
}

// If a later shard fails, the whole variable is undefined.
static choir_status update_all(chi_update *u, choir_update_fn *fn, void *user)
{
	choir_variable *v = u->variable;
	if (v == NULL || v->shards == 0)
		return update_copies(u, fn, user);
	choir_status status = CHOIR_OK;
	u->parent = v;
	for (int i = 0; status == CHOIR_OK && i < v->shards; i++) {
		u->variable = v->shard[i];
		status = update_copies(u, fn, user);
		if (status != CHOIR_OK && i > 0)
			chi_variable_undefine(v);
	}
	return status;
}

choir_status chi_update_run(chi_update *u, choir_update_fn *fn, void *user)
{
	chi_cross *x = u->cross;
	choir_frame *f = x->base.frame;
	if (f->failed)
		return chi_frame_status(f);
	choir_status status = chi_remote_refresh_to_write(x->strategy);
	if (status == CHOIR_OK)
		status = check_given(u);
	if (status == CHOIR_OK)
		status = keep_given(u);
	if (status == CHOIR_OK)
		status = chi_stream_wait(f->stream);
	if (status == CHOIR_OK)
		status = update_all(u, fn, user);
	if (status == CHOIR_OK)
		status = check_returned(u);
	if (status == CHOIR_OK && u->parent != NULL)
		status = join_returned(u);
	if (status != CHOIR_OK)
		choir_values_clear(x->next_results);
	chi_cross_end_call(x);
	return status == CHOIR_OK ? status : chi_frame_record_error(f);
}

choir_status choir_cross_update(choir_cross *cross, choir_variable *v,
		const choir_update_options *o, choir_update_fn *fn, void *user)
{
	CHOIR_TRY(chi_cross_check(cross, "update"));
	chi_cross *x = chi_cross_of(cross);
	if (chi_remote_refuse(x->strategy, "update") != CHOIR_OK)
		return chi_frame_record_error(cross->frame);
	if (v == NULL || fn == NULL)
		return chi_frame_fail(cross->frame, CHOIR_INVALID, "update: the %s is NULL",
				v == NULL ? "variable" : "function");
	choir_update_options all;
	if (chi_options_take("update: the options'", &all, sizeof all, o) != CHOIR_OK)
		return chi_frame_record_error(cross->frame);
	CHOIR_TRY(chi_cross_check_variable(x->strategy, cross->frame, v, "update"));
	const bool elementwise = all.elementwise == CHOIR_ON;
	return chi_update_run(
			&(chi_update){ .cross = x, .variable = v, .elementwise = elementwise }, fn, user);
}

typedef struct {
	choir_variable *variable;
	choir_update_fn *fn;
	void *user;
} wanted;

static choir_status return_results(choir_cross *cross, const choir_variable *v)
{
	const chi_cross *x = chi_cross_of(cross);
	const choir_values *results = x->call_results;
	for (size_t i = 0; i < results->n; i++) {
		choir_value *result = results->leaf[i].value;
		if (v->synchronization == CHOIR_SYNCHRONIZATION_ON_READ) {
			result->kind = CHOIR_VALUE_PER_REPLICA;
			result->component += x->strategy->first_replica;
			result->count = x->strategy->replicas;
		}
		CHOIR_TRY(choir_cross_return(cross, results->leaf[i].name, result));
	}
	return CHOIR_OK;
}

static choir_status give_and_update(choir_cross *cross, void *user)
{
	const wanted *w = user;
	const choir_values *args = chi_cross_of(cross)->args;
	for (size_t i = 0; i < args->n; i++)
		CHOIR_TRY(choir_cross_set_arg(cross, args->leaf[i].name, args->leaf[i].value));
	CHOIR_TRY(choir_cross_update(cross, w->variable, NULL, w->fn, w->user));
	return return_results(cross, w->variable);
}

choir_status choir_replica_update(
		choir_replica *replica, choir_variable *v, choir_update_fn *fn, void *user)
{
	CHOIR_TRY(chi_replica_check(replica, "update"));
	if (v == NULL || fn == NULL)
		return chi_frame_fail(replica->frame, CHOIR_INVALID, "update: the %s is NULL",
				v == NULL ? "variable" : "function");
	wanted w = { v, fn, user };
	return chi_merge(chi_replica_of(replica),
			&(chi_merge_call){
					"update", give_and_update, &w, v, (uint64_t) (uintptr_t) fn, v->name });
}
