// Updates in cross-replica context: a function once for each copy of a variable, on that copy's
// device, with what was given; what it returns is mirrored.
#include "strategy/update.h"

#include "base/alloc.h"

#include <string.h>

static chi_update *update_of(const choir_update *u)
{
	return (chi_update *) (uintptr_t) u;
}

static bool colocated(const chi_update *u, const choir_variable *v)
{
	const choir_variable *target = u->variable;
	return v == target || v->beside == target || (v->beside != NULL && v->beside == target->beside);
}

static choir_status check_target(const chi_update *u, const choir_variable *v)
{
	if (v != NULL && colocated(u, v))
		return CHOIR_OK;
	return chi_frame_fail(u->shown.frame, CHOIR_INVALID, "update of \"%s\": variable \"%s\" is not "
			"colocated with it and cannot be written", u->variable->name, v == NULL ? "" : v->name);
}

choir_status chi_update_write(choir_update *update, choir_variable *v, chi_assign_op op,
		choir_tensor *t)
{
	const chi_update *u = update_of(update);
	CHOIR_TRY(check_target(u, v));
	return chi_variable_write(v, u->copy, op, t);
}

choir_variable *choir_update_variable(const choir_update *u)
{
	return update_of(u)->variable;
}

int choir_update_copy(const choir_update *u)
{
	return update_of(u)->copy;
}

choir_tensor *choir_update_arg(choir_update *update, const char *name)
{
	const chi_update *u = update_of(update);
	choir_frame *f = update->frame;
	choir_value *v = choir_values_find(u->cross->given, name == NULL ? "" : name);
	if (v == NULL) {
		chi_error_prefix("update of \"%s\"", u->variable->name);
		chi_frame_keep(f);
		return NULL;
	}
	if (v->kind == CHOIR_VALUE_VARIABLE)
		return choir_variable_component(v->variable, f);
	choir_tensor *t = chi_value_for_replica(v, 0, f->device);
	return t == NULL || t->is_number ? choir_number(f, t == NULL ? 0 : t->number)
	                                 : chi_value_view(f, t);
}

choir_status choir_update_return(choir_update *update, const char *name, choir_tensor *value)
{
	chi_update *u = update_of(update);
	choir_frame *f = update->frame;
	if (name == NULL || name[0] == '\0')
		return chi_frame_fail(f, CHOIR_INVALID, "return: a leaf needs a name");
	if (value == NULL)
		return chi_frame_report(f);
	choir_values *taken = u->cross->taken;
	if (u->copy >= taken->layout.replicas)
		return CHOIR_OK;
	choir_frame *to = chi_values_replica_frame(taken, u->copy);
	choir_tensor *kept = to == NULL ? NULL : chi_tensor_keep(to, value);
	if (kept == NULL)
		return chi_frame_keep(f);
	chi_leaf *leaf = chi_values_leaf(taken, name);
	if (leaf == NULL) {
		choir_value *v = chi_value_new(taken->frame, CHOIR_VALUE_MIRRORED, u->variable->copies);
		CHOIR_TRY(chi_values_put(taken, name, v));
		leaf = chi_values_leaf(taken, name);
	}
	leaf->value->component[u->copy] = kept;
	leaf->value->device[u->copy] = choir_tensor_device(kept);
	return CHOIR_OK;
}

int64_t choir_update_elements(const choir_update *u)
{
	return update_of(u)->variable->elements;
}

void *choir_update_data(choir_update *update, choir_variable *v)
{
	const chi_update *u = update_of(update);
	if (check_target(u, v) != CHOIR_OK || !v->copy[u->copy].device->host_memory)
		return NULL;
	chi_variable_touch(v, u->copy); // it is about to change
	return v->copy[u->copy].buffer->memory;
}

static choir_status update_copy(chi_cross *x, choir_variable *v, int copy, choir_update_fn *fn,
		void *user)
{
	choir_frame *f = choir_frame_new(v->copy[copy].device);
	if (f == NULL)
		return choir_error_status();
	chi_update u = { .shown = { f }, .cross = x, .variable = v, .copy = copy };
	f->context = &u;
	f->context_kind = CHI_IN_UPDATE;
	chi_context inside = { .kind = CHI_IN_UPDATE, .strategy = x->strategy, .what = &u };
	chi_context_push(&inside);
	chi_error_clear();
	choir_status status = fn(&u.shown, user);
	chi_context_pop(&inside);
	if (status == CHOIR_OK)
		status = f->failed ? chi_frame_report(f) : chi_stream_wait(f->stream);
	else if (choir_error_status() != status)
		choir_fail(status, "update of \"%s\": the function returned %s", v->name,
				choir_status_name(status));
	chi_error failure;
	chi_error_save(&failure);
	choir_frame_free(f);
	if (status != CHOIR_OK)
		chi_error_restore(&failure);
	return status;
}

// Per-replica values among the arguments are refused before anything changes.
static choir_status check_given(choir_cross *cross, const choir_variable *v)
{
	const choir_values *given = chi_cross_of(cross)->given;
	for (size_t i = 0; i < given->n; i++)
		if (given->leaf[i].value->kind == CHOIR_VALUE_PER_REPLICA)
			return chi_frame_fail(cross->frame, CHOIR_INVALID, "update of \"%s\": \"%s\" differs "
					"between replicas: reduce it first", v->name, given->leaf[i].name);
	return CHOIR_OK;
}

choir_status choir_cross_update(choir_cross *cross, choir_variable *v, const choir_update_options *o,
		choir_update_fn *fn, void *user)
{
	CHOIR_TRY(chi_cross_check(cross, "update"));
	chi_cross *x = chi_cross_of(cross);
	if (v == NULL || fn == NULL)
		return chi_frame_fail(cross->frame, CHOIR_INVALID, "update: the %s is NULL",
				v == NULL ? "variable" : "function");
	if (o != NULL && o->size != sizeof *o)
		return chi_frame_fail(cross->frame, CHOIR_INVALID, "update: the options' size is %zu, not "
				"%zu: set it with CHOIR_OPTIONS", o->size, sizeof *o);
	if (v->strategy != x->strategy)
		return chi_frame_fail(cross->frame, CHOIR_STATE, "update: mixing strategies: variable "
				"\"%s\" belongs to \"%s\"", v->name, v->strategy->kind);
	if (cross->frame->failed)
		return chi_frame_report(cross->frame);
	CHOIR_TRY(check_given(cross, v));
	CHOIR_TRY(chi_stream_wait(cross->frame->stream));
	choir_values_clear(x->taken);
	choir_status status = CHOIR_OK;
	for (int i = 0; status == CHOIR_OK && i < v->copies; i++) {
		status = update_copy(x, v, i, fn, user);
		if (status != CHOIR_OK && i > 0)
			v->undefined = true;
	}
	choir_values_clear(x->given);
	return status == CHOIR_OK ? status : chi_frame_keep(cross->frame);
}

typedef struct {
	choir_variable *variable;
	choir_update_fn *fn;
	void *user;
} wanted;

static choir_status give_and_update(choir_cross *cross, void *user)
{
	const wanted *w = user;
	const choir_values *args = chi_cross_of(cross)->args;
	for (size_t i = 0; i < args->n; i++)
		CHOIR_TRY(choir_cross_give(cross, args->leaf[i].name, args->leaf[i].value));
	return choir_cross_update(cross, w->variable, NULL, w->fn, w->user);
}

choir_status choir_replica_update(choir_replica *replica, choir_variable *v, choir_update_fn *fn,
		void *user)
{
	CHOIR_TRY(chi_replica_check(replica, "update"));
	wanted w = { v, fn, user };
	return chi_merge(chi_replica_of(replica), "update", give_and_update, &w, v,
			(uint64_t) (uintptr_t) fn);
}
