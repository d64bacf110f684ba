// A replica's call, arguments, results and properties.
#include "strategy/replica/replica.h"

#include "base/hash.h"
#include "strategy/cross/cross.h"
#include "strategy/gradients/gradients.h"
#include "strategy/run/sync_point.h"

#include <stdio.h>
#include <string.h>

// Reports a failure of the function or queued work; empties the frame.
static void report(chi_replica *r, choir_status status)
{
	choir_frame *f = r->base.frame;
	if (status == CHOIR_OK) {
		chi_frame_empty_waited(f);
		return;
	}
	if (f->prefix[0] != '\0' && strncmp(choir_error(), f->prefix, strlen(f->prefix)) != 0)
		chi_error_prefix("replica %d", chi_replica_number(r));
	if (!r->cancelled)
		chi_run_fail(r->run, r->id);
	choir_frame_clear(f);
}

static void conclude(chi_replica *r, choir_status status)
{
	choir_frame *f = r->base.frame;
	if (status == CHOIR_OK && !f->failed)
		status = chi_gradients_check_applied(r);
	r->ends_later = r->ends_later && status == CHOIR_OK && !f->failed;
	if (r->ends_later)
		return;
	if (status == CHOIR_OK)
		status = f->failed ? chi_frame_status(f) : chi_stream_wait(f->stream);
	else if (f->failed && f->failure.status == status)
		status = chi_frame_status(f);
	report(r, status);
}

void chi_replica_end(chi_replica *r)
{
	if (!r->ends_later)
		return;
	chi_dlpack_hold(true);
	const choir_status status = chi_stream_wait(r->base.frame->stream);
	if (status != CHOIR_OK && status != CHOIR_TIMEOUT)
		chi_gradients_spare_updates(r);
	report(r, status);
	chi_dlpack_hold(false);
}

void chi_replica_call(chi_replica *r)
{
	chi_run *run = r->run;
	choir_frame *f = r->base.frame;
	f->random.step = run->task.step;
	f->random.place = 0;
	choir_frame_set_precision(f, choir_strategy_precision(run->strategy));
	chi_context inside;
	chi_fpenv host;
	chi_trace_begin_replica(run->strategy->first_replica + chi_replica_number(r), r->id,
			CHOIR_TRACE_COMPUTE, "replica");
	chi_fpenv_enter(&host);
	chi_context *entry = chi_context_enter(&inside, CHI_IN_REPLICA, run->strategy, r);
	chi_dlpack_hold(true);
	chi_error_clear();
	const choir_status status = run->task.fn(&r->base, run->task.user);
	conclude(r, chi_context_leave(entry, status, "the function"));
	chi_dlpack_hold(false);
	chi_fpenv_leave(&host);
	chi_trace_end();
	chi_sync_point_returned(r);
}

choir_replica *choir_replica_current(void)
{
	const chi_context *c = chi_context_current();
	if (c != NULL)
		return c->kind == CHI_IN_REPLICA ? &((chi_replica *) c->what)->base : NULL;
	if (chi_context_strategy() != NULL)
		return NULL;
	choir_strategy *s = choir_default_strategy();
	return s == NULL ? NULL : &s->default_run->replica[0].base;
}

bool chi_replica_is_default(const chi_replica *r)
{
	return r->run == r->run->strategy->default_run;
}

choir_status chi_replica_check(const choir_replica *r, const char *what)
{
	if (r == NULL)
		return choir_fail(CHOIR_INVALID, "%s: the replica is NULL", what);
	const chi_context *c = chi_context_current();
	if (c == NULL ? choir_replica_current() != r : c->kind != CHI_IN_REPLICA || c->what != r)
		return choir_fail(CHOIR_STATE, "%s: this thread is not in replica %d", what,
				chi_replica_number(chi_replica_of(r)));
	return CHOIR_OK;
}

choir_status chi_replica_check_variable(const chi_replica *r, const choir_variable *v)
{
	const choir_strategy *s = r->run->strategy;
	return chi_strategy_has(s, v)
			? CHOIR_OK
			: chi_frame_fail(r->base.frame, CHOIR_STATE,
					  "variable \"%s\": mixing strategies: it belongs to %s, this replica to %s",
					  v->name, v->strategy->label, s->label);
}

int choir_replica_id(const choir_replica *r)
{
	return r == NULL ? CHOIR_NONE : chi_replica_number(chi_replica_of(r));
}

int choir_replica_count(const choir_replica *r)
{
	return r == NULL ? 0 : chi_replica_of(r)->run->strategy->in_sync;
}

choir_strategy *choir_replica_strategy(const choir_replica *r)
{
	return r == NULL ? NULL : chi_replica_of(r)->run->strategy;
}

choir_device *choir_replica_device(const choir_replica *r)
{
	return r == NULL ? NULL : r->frame->device;
}

int choir_replica_device_index(const choir_replica *r)
{
	return r == NULL ? CHOIR_NONE : chi_replica_of(r)->device;
}

static choir_tensor *view_of(
		const chi_replica *r, choir_value *v, const char *what, const char *name)
{
	choir_frame *f = r->base.frame;
	if (v->kind == CHOIR_VALUE_VARIABLE)
		return choir_variable_component(v->variable, f);
	choir_tensor *t = chi_value_for_replica(v, r->id, f->device);
	if (t == NULL)
		return chi_frame_fail_null(
				f, CHOIR_INVALID, "%s: \"%s\" is a destination and has no value", what, name);
	return t->is_number ? choir_number(f, t->number) : chi_tensor_published(f, t);
}

// t->mark, its position, is equal in replicas with equal calls.
void chi_replica_gives(chi_replica *r, const choir_tensor *t)
{
	chi_process_group *p = r->run->strategy->process_group;
	if (t->frame != r->base.frame || r->run->isolated)
		return;
	r->order = chi_call_order_add(r->order, chi_hash_mix(t->mark + 1));
	if (p != NULL && r->id == 0)
		chi_atomic64_store(&p->order, r->order);
}

void chi_replica_name_collective(const chi_replica *r, const char *call, char name[64])
{
	if (r->label.hash == 0)
		snprintf(name, 64, "%s", call);
	else
		snprintf(name, 64, "%s of %.47s", r->label.call != NULL ? r->label.call : call,
				r->label.name);
}

choir_tensor *choir_replica_arg(choir_replica *replica, const char *name)
{
	if (chi_replica_check(replica, "arg") != CHOIR_OK)
		return NULL;
	const chi_replica *r = chi_replica_of(replica);
	choir_frame *f = replica->frame;
	if (r->run->task.args == NULL || name == NULL)
		return chi_frame_fail_null(f, CHOIR_NOT_FOUND,
				"arg: \"%s\" does not exist; this run has no arguments", name == NULL ? "" : name);
	choir_value *v = choir_values_find(r->run->task.args, name);
	if (v == NULL) {
		chi_error_prefix("arg");
		chi_frame_record_error(f);
		return NULL;
	}
	return view_of(r, v, "arg", name);
}

choir_tensor *chi_replica_take_arg(
		const chi_replica *r, const char *name, const char *what, choir_tensor *value)
{
	choir_frame *f = r->base.frame;
	if (value == NULL)
		return chi_frame_null_argument(f, what);
	if (value->frame != f)
		return chi_frame_fail_null(f, CHOIR_INVALID,
				"set_arg: \"%s\" belongs to another frame; copy it to the replica's", name);
	if (chi_tensor_check_any(value) != CHOIR_OK)
		return NULL;
	return value->borrowed ? choir_copy(value, f) : value;
}

choir_status choir_replica_set_arg(choir_replica *replica, const char *name, choir_tensor *value)
{
	CHOIR_TRY(chi_replica_check(replica, "set_arg"));
	chi_replica *r = chi_replica_of(replica);
	if (name == NULL || name[0] == '\0')
		return chi_frame_fail(replica->frame, CHOIR_INVALID, "set_arg: a leaf needs a name");
	value = chi_replica_take_arg(r, name, "set_arg", value);
	return value == NULL ? chi_frame_status(replica->frame)
						 : chi_named_tensors_put(&r->call_args, replica->frame, name, value);
}

choir_tensor *choir_replica_result(choir_replica *replica, const char *name)
{
	if (chi_replica_check(replica, "result") != CHOIR_OK)
		return NULL;
	chi_replica *r = chi_replica_of(replica);
	choir_frame *f = replica->frame;
	if (f->failed)
		return chi_frame_fail_null(f, CHOIR_STATE, "result: an earlier call failed");
	chi_cross *x = r->run->cross == NULL ? NULL : chi_cross_of(r->run->cross);
	if (x == NULL || name == NULL)
		return chi_frame_fail_null(f, CHOIR_STATE, "result: \"%s\" needs a merge call before it",
				name == NULL ? "" : name);
	choir_value *v = choir_values_find(x->returned, name);
	if (v == NULL)
		return chi_frame_record_null(f);
	return view_of(r, v, "result", name);
}

static choir_status note_name(chi_replica *r, const char *name)
{
	chi_named_tensors *list = &r->unkept;
	if (chi_replica_is_default(r))
		return CHOIR_OK;
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->named[i].name, name) == 0)
			return CHOIR_OK;
	const size_t capacity = list->capacity;
	if (!chi_grow(&list->named, &list->capacity, list->n + 1, sizeof(chi_named)))
		return chi_frame_record_error(r->base.frame);
	memset(list->named + capacity, 0, (list->capacity - capacity) * sizeof(chi_named));
	chi_named *entry = &list->named[list->n];
	if (entry->name == NULL || strcmp(entry->name, name) != 0) {
		chi_free((void *) (uintptr_t) entry->name);
		entry->name = chi_strdup(name);
	}
	if (entry->name == NULL)
		return chi_frame_record_error(r->base.frame);
	list->n++;
	if (chi_atomic32_load(&r->run->named) == 0)
		chi_atomic32_store(&r->run->named, 1);
	return CHOIR_OK;
}

choir_status choir_replica_return(choir_replica *replica, const char *name, choir_tensor *value)
{
	CHOIR_TRY(chi_replica_check(replica, "return"));
	chi_replica *r = chi_replica_of(replica);
	choir_frame *f = replica->frame;
	CHOIR_TRY(chi_results_check(f, name, value));
	if (r->run->task.results == NULL)
		return note_name(r, name);
	choir_frame *to = chi_values_replica_frame(r->run->task.results, r->id);
	if (to == NULL)
		return chi_frame_record_error(f);
	choir_tensor *kept;
	if (value->component)
		kept = choir_variable_component(choir_tensor_variable(value), to);
	else if (value->is_number)
		kept = choir_number(to, value->number);
	else
		kept = chi_tensor_retain(to, value);
	return kept == NULL ? chi_frame_record_error(f)
						: chi_named_tensors_put(&r->returned, to, name, kept);
}

int64_t choir_replica_examples(const choir_replica *replica)
{
	const chi_replica *r = chi_replica_of(replica);
	if (r == NULL || r->run->task.args == NULL ||
			r->run->task.args->examples[r->id] == CHOIR_UNKNOWN)
		return 0;
	return r->run->task.args->examples[r->id];
}

int64_t choir_replica_global_examples(const choir_replica *replica)
{
	const chi_replica *r = chi_replica_of(replica);
	const int64_t all = r == NULL || r->run->task.args == NULL
			? CHOIR_UNKNOWN
			: chi_values_global_examples(r->run->task.args);
	return all == CHOIR_UNKNOWN ? 0 : all;
}
