// One replica: its call from start to return, its arguments and results, and what it may ask.
#include "base/alloc.h"
#include "base/hash.h"
#include "strategy/run/sync_point.h"
#include "strategy/worker_tensors.h"
#include "strategy/gradients/gradients.h"
#include "strategy/run/results.h"

#include <stdio.h>
#include <string.h>

// What the call's failure is: what the function returned, or what its frame knows although the
// function did not look.
static choir_status conclude(chi_replica *r, choir_status status)
{
	choir_frame *f = r->base.frame;
	if (status == CHOIR_OK && !f->failed)
		status = chi_gradients_check_applied(r);
	if (status == CHOIR_OK)
		status = f->failed ? chi_frame_status(f) : chi_stream_wait(f->stream);
	else if (f->failed && f->failure.status == status)
		status = chi_frame_status(f);
	if (status != CHOIR_OK && f->prefix[0] != '\0' &&
			strncmp(choir_error(), f->prefix, strlen(f->prefix)) != 0)
		chi_error_prefix("replica %d", chi_replica_number(r));
	return status;
}

void chi_replica_call(chi_replica *r)
{
	chi_run *run = r->run;
	choir_frame *f = r->base.frame;
	f->random.step = run->task.step;
	f->random.place = 0;
	chi_context inside;
	chi_fpenv host;
	chi_trace_begin_replica(run->strategy->first_replica + chi_replica_number(r), r->id,
			CHOIR_TRACE_COMPUTE, "replica");
	chi_fpenv_enter(&host);
	chi_context *entry = chi_context_enter(&inside, CHI_IN_REPLICA, run->strategy, r);
	chi_dlpack_hold(true);
	chi_error_clear();
	choir_status status = run->task.fn(&r->base, run->task.user);
	status = conclude(r, chi_context_leave(entry, status, "the function"));
	if (status != CHOIR_OK && !r->cancelled)
		chi_run_fail(run, r->id);
	if (status == CHOIR_OK)
		chi_frame_empty_waited(f); // conclude has
	else
		choir_frame_empty(f);
	chi_dlpack_hold(false);
	chi_fpenv_leave(&host);
	chi_trace_end();
	chi_sync_point_returned(r);
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

choir_replica *choir_frame_replica(const choir_frame *f)
{
	return f == NULL || f->context_kind != CHI_IN_REPLICA ? NULL : f->context;
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

choir_tensor *chi_replica_view(
		const chi_replica *r, choir_value *v, const char *what, const char *name)
{
	choir_frame *f = r->base.frame;
	if (v->kind == CHOIR_VALUE_VARIABLE)
		return choir_variable_component(v->variable, f);
	choir_tensor *t = chi_value_for_replica(v, r->id, f->device);
	if (t == NULL)
		return chi_frame_fail_null(
				f, CHOIR_INVALID, "%s: \"%s\" is a place and has no value", what, name);
	return t->is_number ? choir_number(f, t->number) : chi_tensor_published(f, t);
}

// A tensor's place in its frame is the same in all replicas that do the same, whatever its shape.
void chi_replica_gives(chi_replica *r, const choir_tensor *t)
{
	chi_process_group *p = r->run->strategy->process_group;
	if (t->frame != r->base.frame || r->run->isolated)
		return;
	r->order = chi_call_order_add(r->order, chi_hash_mix(t->mark + 1));
	if (p != NULL && r->id == 0)
		chi_atomic64_store(&p->order, r->order);
}

choir_tensor *choir_replica_arg(choir_replica *replica, const char *name)
{
	if (chi_replica_check(replica, "arg") != CHOIR_OK)
		return NULL;
	const chi_replica *r = chi_replica_of(replica);
	choir_frame *f = replica->frame;
	if (r->run->task.args == NULL || name == NULL)
		return chi_frame_fail_null(f, CHOIR_NOT_FOUND,
				"arg: there is no \"%s\": this run was given "
				"no arguments",
				name == NULL ? "" : name);
	choir_value *v = choir_values_find(r->run->task.args, name);
	if (v == NULL) {
		chi_error_prefix("arg");
		chi_frame_record_error(f);
		return NULL;
	}
	return chi_replica_view(r, v, "arg", name);
}

choir_status chi_results_check(choir_frame *f, const char *name, const choir_tensor *value)
{
	if (name == NULL || name[0] == '\0')
		return chi_frame_fail(f, CHOIR_INVALID, "return: a leaf needs a name");
	if (value == NULL) {
		chi_frame_null_argument(f, "return");
		return chi_frame_status(f);
	}
	if (value->frame != f)
		return chi_frame_fail(
				f, CHOIR_INVALID, "return: \"%s\" belongs to another frame: move it", name);
	return chi_tensor_check_any(value);
}

// What is returned and not kept: only its name, in memory that is kept from run to run.
static choir_status note_name(chi_replica *r, const char *name)
{
	chi_named_tensors *list = &r->unkept;
	if (chi_replica_is_default(r))
		return CHOIR_OK; // it alone is all replicas
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->named[i].name, name) == 0)
			return CHOIR_OK;
	void *array = list->named;
	const size_t capacity = list->capacity;
	const bool grown = chi_grow(&array, &list->capacity, list->n + 1, sizeof(chi_named));
	list->named = array;
	if (!grown)
		return chi_frame_record_error(r->base.frame);
	memset(list->named + capacity, 0, (list->capacity - capacity) * sizeof(chi_named));
	chi_named *item = &list->named[list->n];
	if (item->name == NULL || strcmp(item->name, name) != 0) {
		chi_free((void *) (uintptr_t) item->name);
		item->name = chi_strdup(name);
	}
	if (item->name == NULL)
		return chi_frame_record_error(r->base.frame);
	list->n++;
	if (chi_atomic32_load(&r->run->named) == 0)
		chi_atomic32_store(&r->run->named, 1);
	return CHOIR_OK;
}

void chi_named_tensors_free(chi_named_tensors *unkept)
{
	for (size_t i = 0; i < unkept->capacity; i++)
		chi_free((void *) (uintptr_t) unkept->named[i].name);
	chi_free(unkept->named);
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

static choir_status lacks(const chi_replica *who, const chi_replica *than, const char *name)
{
	return choir_fail(CHOIR_STATE,
			"replica %d returned no \"%s\", replica %d did: all replicas must "
			"return the same names",
			chi_replica_number(who), name, chi_replica_number(than));
}

static const chi_named_tensors *returned_by(const chi_run *run, int replica)
{
	const chi_replica *r = &run->replica[replica];
	return run->task.results == NULL ? &r->unkept : &r->returned;
}

static bool has_name(const chi_named_tensors *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (strcmp(names->named[i].name, name) == 0)
			return true;
	return false;
}

// All replicas have returned the same names as the first.
static choir_status check_names(const chi_run *run)
{
	const chi_named_tensors *first = returned_by(run, 0);
	for (int r = 1; !run->isolated && r < run->strategy->replicas; r++) {
		const chi_named_tensors *names = returned_by(run, r);
		for (size_t i = 0; i < names->n; i++)
			if (!has_name(first, names->named[i].name))
				return lacks(&run->replica[0], &run->replica[r], names->named[i].name);
		for (size_t i = 0; i < first->n; i++)
			if (!has_name(names, first->named[i].name))
				return lacks(&run->replica[r], &run->replica[0], first->named[i].name);
	}
	return CHOIR_OK;
}

choir_status chi_results_merge(chi_run *run)
{
	// Mostly nothing is returned where nothing is kept, and no replica's memory is looked at.
	if (run->task.results == NULL)
		return chi_atomic32_load(&run->named) == 0 ? CHOIR_OK : check_names(run);
	CHOIR_TRY(check_names(run));
	const chi_named_tensors *names = &run->replica[0].returned;
	const int n = run->strategy->replicas;
	bool numbers = false;
	choir_frame *f = run->task.results->frame;
	choir_tensor **all = chi_arena_alloc(&f->arena, (size_t) n * sizeof(choir_tensor *));
	choir_value **values = chi_arena_alloc(&f->arena, (names->n + 1) * sizeof(choir_value *));
	if (all == NULL || values == NULL)
		return choir_error_status();
	for (size_t i = 0; i < names->n; i++) {
		for (int r = 0; r < n; r++)
			all[r] = chi_named_tensors_find(&run->replica[r].returned, names->named[i].name);
		numbers = numbers || all[0]->is_number;
		if ((values[i] = chi_value_merge(f, n, all)) == NULL)
			return choir_error_status();
	}
	if (numbers && run->strategy->process_group != NULL)
		CHOIR_TRY(chi_worker_agree_on_numbers(run->strategy, f, "results", names, values));
	for (size_t i = 0; i < names->n; i++)
		CHOIR_TRY(chi_values_put(run->task.results, names->named[i].name, values[i]));
	return CHOIR_OK;
}
