// The workers of a parameter-server strategy, each a strategy on a thread. The first failure stops
// the others at their next step.
#include "strategy/run/run.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "strategy/context.h"

#include <stdio.h>

choir_status chi_strategy_check_not_stopped(const choir_strategy *s)
{
	if (chi_atomic32_load(&s->owner->stopped) == 0)
		return CHOIR_OK;
	return choir_fail(
			CHOIR_CANCELLED, "run: worker %d stops because another worker has failed", s->worker);
}

typedef struct {
	choir_strategy *group;
	choir_worker_fn *fn;
	void *user;
	chi_thread thread;
	choir_status status;
	chi_error error;
} call;

static void note_failure(call *c)
{
	chi_error_save(&c->error);
	chi_atomic32_store(&c->group->owner->stopped, 1);
}

static void call_worker(void *arg)
{
	call *c = arg;
	choir_strategy *s = c->group;
	chi_context inside;
	chi_context *entry = chi_context_enter(&inside, CHI_IN_CROSS, s, NULL);
	chi_dlpack_hold(true);
	chi_error_clear();
	c->status = chi_context_leave(entry, c->fn(s, s->worker, c->user), "the worker function");
	chi_dlpack_hold(false);
	if (c->status == CHOIR_OK)
		return;
	if (s->workers > 1)
		chi_error_prefix("worker %d", s->worker);
	note_failure(c);
}

static void leave(void *arg)
{
	call *c = arg;
	c->status = choir_fail(CHOIR_STATE, "worker %d: %s", c->group->worker, CHI_WAS_LEFT);
	note_failure(c);
}

static void work(void *arg)
{
	chi_thread_call(call_worker, leave, arg);
}

static const call *first_cause(const call *calls, int n)
{
	const call *found = NULL;
	for (int i = 0; i < n; i++)
		if (calls[i].status != CHOIR_OK &&
				(found == NULL ||
						(found->status == CHOIR_CANCELLED && calls[i].status != CHOIR_CANCELLED)))
			found = &calls[i];
	return found;
}

static choir_status run_all(choir_strategy *s, call *calls)
{
	for (int w = 1; w < s->workers; w++) {
		char name[24];
		snprintf(name, sizeof name, "worker %d", w);
		const choir_status started = chi_thread_start(&calls[w].thread, name, work, &calls[w]);
		if (started != CHOIR_OK) {
			calls[w].status = started;
			note_failure(&calls[w]);
		}
	}
	call_worker(&calls[0]);
	for (int w = 1; w < s->workers; w++)
		chi_thread_join(&calls[w].thread);
	const call *cause = first_cause(calls, s->workers);
	if (cause == NULL)
		return CHOIR_OK;
	chi_error_restore(&cause->error);
	return cause->status;
}

choir_status choir_strategy_run_workers(choir_strategy *s, choir_worker_fn *fn, void *user)
{
	CHOIR_TRY(chi_strategy_check(s));
	CHOIR_TRY(chi_context_need_cross(s, "run_workers"));
	if (fn == NULL)
		return choir_fail(CHOIR_INVALID, "run_workers: the function is NULL");
	if (s->owner != s || !chi_atomic32_change(&s->working, 0, 1))
		return choir_fail(CHOIR_STATE,
				"run_workers: the workers of this strategy (\"%s\") are running already", s->kind);
	call *calls = chi_alloc_array((size_t) s->workers, sizeof *calls);
	choir_status status = chi_made(calls);
	for (int w = 0; calls != NULL && w < s->workers; w++)
		calls[w] = (call){ .group = s->by_worker[w], .fn = fn, .user = user };
	if (status == CHOIR_OK)
		status = run_all(s, calls);
	chi_free(calls);
	chi_atomic32_store(&s->stopped, 0);
	chi_atomic32_store(&s->working, 0);
	chi_dlpack_run_deleters();
	return status;
}
