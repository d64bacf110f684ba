// The last replica to come runs the merge function on its thread.
#include "strategy/replica/merge_call.h"

#include "base/hash.h"
#include "strategy/cross/cross.h"
#include "strategy/gradients/gradients.h"
#include "strategy/run/sync_point.h"
#include "strategy/worker_sync.h"

#include <stdio.h>
#include <string.h>

static uint64_t hash_names(const chi_named_tensors *names, uint64_t hash)
{
	for (size_t i = 0; i < names->n; i++)
		hash ^= chi_hash_mix(chi_hash_text(names->named[i].name));
	return chi_hash_mix(hash + names->n);
}

// printf would be a third of a merge call's instructions.
static void describe(char text[CHI_SYNC_POINT_NAME], const chi_merge_call *c,
		const chi_named_tensors *given, bool own)
{
	enum { SIZE = CHI_SYNC_POINT_NAME };
	char label[64];
	size_t at = chi_text_append(text, SIZE, 0, c->name);
	if (c->label != NULL) {
		at = chi_text_append(text, SIZE, at, " of \"");
		at = chi_text_append(text, SIZE, at, chi_text_fit(c->label, label, sizeof label));
		at = chi_text_append(text, SIZE, at, "\"");
	}
	for (size_t i = 0; !own && i < given->n; i++) {
		at = chi_text_append(text, SIZE, at, i == 0 ? " with " : ", ");
		at = chi_text_append(text, SIZE, at, given->named[i].name);
	}
}

static choir_status gather(chi_run *run, chi_cross *x, const chi_merge_call *c)
{
	const chi_named_tensors *names = &run->replica[0].call_args;
	const int n = run->strategy->replicas;
	choir_frame *f = x->base.frame;
	choir_tensor **all = chi_arena_alloc(&f->arena, (size_t) n * sizeof(choir_tensor *));
	choir_value **values = chi_arena_alloc(&f->arena, (names->n + 1) * sizeof(choir_value *));
	if (all == NULL || values == NULL)
		return chi_frame_record_error(f);
	for (size_t i = 0; i < names->n; i++) {
		for (int r = 0; r < n; r++)
			all[r] = chi_named_tensors_find(&run->replica[r].call_args, names->named[i].name);
		if ((values[i] = chi_value_merge(f, n, all)) == NULL)
			return chi_frame_status(f);
	}
	if (run->strategy->process_group != NULL) {
		char what[96], label[64] = "";
		if (c->label != NULL)
			chi_text_fit(c->label, label, sizeof label);
		snprintf(what, sizeof what, c->label == NULL ? "%s" : "%s to \"%s\"", c->name, label);
		CHOIR_TRY(chi_worker_agree_on_numbers(run->strategy, f, what, names, values));
	}
	for (size_t i = 0; i < names->n; i++)
		CHOIR_TRY(chi_values_put(x->args, names->named[i].name, values[i]));
	return CHOIR_OK;
}

static choir_status call(chi_run *run, const chi_merge_call *c)
{
	CHOIR_TRY(chi_gradients_finish_updates(run));
	if (run->cross == NULL && (run->cross = chi_cross_new(run->strategy, run)) == NULL)
		return choir_error_status();
	chi_cross_clear(run->cross);
	chi_cross *x = chi_cross_of(run->cross);
	CHOIR_TRY(gather(run, x, c));
	chi_context inside;
	chi_context *entry = chi_context_enter(&inside, CHI_IN_CROSS, run->strategy, run->cross);
	chi_error_clear();
	chi_trace_begin_cross(CHOIR_TRACE_COMPUTE, "merge function");
	choir_status status = c->fn(run->cross, c->user);
	chi_trace_end();
	CHOIR_TRY(chi_context_leave(entry, status, "the merge function"));
	choir_frame *f = run->cross->frame;
	CHOIR_TRY(f->failed ? chi_frame_status(f) : chi_stream_wait(f->stream));
	return chi_cross_publish(x);
}

choir_status chi_merge(chi_replica *r, const chi_merge_call *c)
{
	chi_run *run = r->run;
	choir_frame *f = r->base.frame;
	if (f->failed)
		return chi_frame_status(f);
	for (size_t i = 0; i < r->call_args.n; i++)
		// may be invalid by now
		CHOIR_TRY(chi_tensor_check_any(r->call_args.named[i].tensor));
	if (chi_stream_wait(f->stream) != CHOIR_OK)
		return chi_frame_record_error(f);
	char text[CHI_SYNC_POINT_NAME];
	describe(text, c, &r->call_args, r->uses_own_args);
	bool last;
	chi_sync_point *point = chi_sync_point_arrive(r, CHI_SYNC_POINT_MERGE, c->what,
			hash_names(&r->call_args, c->more), text, NULL, NULL, &last);
	if (point == NULL)
		return chi_frame_record_error(f);
	choir_status status = CHOIR_OK;
	if (last) {
		status = call(run, c);
		if (status == CHOIR_OK) {
			chi_sync_point_ready(run, point);
		} else {
			chi_run_fail(run, run->strategy->replicas);
			r->cancelled = true;
		}
	} else {
		status = chi_scheduler_wait(r, &point->ready, point);
	}
	r->call_args.n = 0;
	if (status == CHOIR_OK)
		chi_sync_point_leave(point);
	chi_run_renew(run);
	return status == CHOIR_OK ? status : chi_frame_record_error(f);
}

choir_status chi_merge_own(
		chi_replica *r, const chi_merge_call *c, size_t n, const chi_named leaves[])
{
	choir_frame *f = r->base.frame;
	const chi_named_tensors given = r->call_args;
	r->call_args = r->own_args;
	r->call_args.n = 0;
	choir_status status = CHOIR_OK;
	for (size_t i = 0; status == CHOIR_OK && i < n; i++) {
		choir_tensor *t = chi_replica_take_arg(r, c->name, c->name, leaves[i].tensor);
		status = t == NULL ? chi_frame_status(f)
						   : chi_named_tensors_put(&r->call_args, f, leaves[i].name, t);
	}
	r->uses_own_args = true;
	if (status == CHOIR_OK)
		status = chi_merge(r, c);
	r->uses_own_args = false;
	r->own_args = r->call_args;
	r->call_args = given;
	return status;
}

choir_status chi_merge_one(chi_replica *r, const char *name, choir_tensor *value,
		choir_merge_fn *fn, void *user, const void *what, uint64_t more)
{
	const chi_merge_call c = { name, fn, user, what, more, NULL };
	return chi_merge_own(r, &c, 1, &(chi_named){ "value", value });
}

choir_status choir_replica_merge_call(choir_replica *replica, choir_merge_fn *fn, void *user)
{
	CHOIR_TRY(chi_replica_check(replica, "merge_call"));
	if (fn == NULL)
		return chi_frame_fail(replica->frame, CHOIR_INVALID, "merge_call: the function is NULL");
	return chi_merge(chi_replica_of(replica),
			&(chi_merge_call){ "merge call", fn, user, (const void *) (uintptr_t) fn, 0, NULL });
}
