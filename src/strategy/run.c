// A run from its start to its end: what is prepared, who carries which lane, how failures meet, and
// what is given back. Everything is kept, so an empty run of two replicas costs two hand-overs.
#include "strategy/run.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "strategy/apply.h"
#include "strategy/meet.h"
#include "strategy/merge.h"
#include "strategy/results.h"

#include <stdio.h>
#include <string.h>

static choir_status open_replica(chi_run *run, int id)
{
	choir_strategy *s = run->strategy;
	chi_replica *r = &run->replica[id];
	r->run = run;
	r->id = id;
	r->lane = chi_strategy_lane(s, id);
	choir_frame *f = r->shown.frame = choir_frame_new(s->replica_device[id]);
	if (f == NULL)
		return choir_error_status();
	f->context = r;
	f->context_kind = CHI_IN_REPLICA;
	if (!s->is_default && s->replicas > 1)
		snprintf(f->prefix, sizeof f->prefix, "replica %d: ", id);
	f->random = (chi_random_key){ .seed = s->options.seed, .replica = (uint32_t) id };
	return CHOIR_OK;
}

chi_run *chi_run_new(choir_strategy *s)
{
	chi_run *run = chi_alloc(sizeof *run);
	if (run == NULL)
		return NULL;
	run->strategy = s;
	run->failed_replica = s->replicas;
	run->spin = s->lanes <= chi_cpu_count();
	chi_mutex_init(&run->lock, CHI_RANK_RUN, "run");
	run->lane = chi_alloc_array((size_t) s->lanes, sizeof *run->lane);
	run->replica = chi_alloc_array((size_t) s->replicas, sizeof *run->replica);
	choir_status status = run->lane == NULL || run->replica == NULL ? CHOIR_NO_MEMORY : CHOIR_OK;
	for (int i = 0; status == CHOIR_OK && i < s->replicas; i++)
		status = open_replica(run, i);
	if (status != CHOIR_OK) {
		chi_run_free(run);
		return NULL;
	}
	return run;
}

void chi_run_free(chi_run *run)
{
	if (run == NULL)
		return;
	chi_run_free(run->nested);
	chi_meet_free(run);
	chi_cross_free(run->cross);
	for (int i = 0; run->replica != NULL && i < run->strategy->replicas; i++) {
		choir_frame_free(run->replica[i].shown.frame);
		chi_free(run->replica[i].given.item);
		chi_free(run->replica[i].returned.item);
		chi_free(run->replica[i].own.item);
	}
	chi_free(run->pending);
	chi_free(run->replica);
	chi_free(run->lane);
	chi_mutex_destroy(&run->lock);
	chi_free(run);
}

void chi_run_event(chi_run *run)
{
	chi_mutex_lock(&run->lock);
	chi_lane_wake(run);
	chi_mutex_unlock(&run->lock);
	chi_atomic32_add(&run->event.word, 1);
	chi_gate_wake(&run->event);
}

void chi_run_fail(chi_run *run, int replica)
{
	chi_mutex_lock(&run->lock);
	const bool first = chi_atomic32_load(&run->failed) == 0;
	if (first || replica < run->failed_replica) {
		run->failed_replica = replica;
		chi_error_save(&run->error);
	}
	chi_atomic32_store(&run->failed, 1);
	chi_mutex_unlock(&run->lock);
	if (first)
		chi_group_abort(&run->strategy->group);
	chi_run_event(run);
}

choir_status chi_run_cancelled(chi_run *run)
{
	chi_mutex_lock(&run->lock);
	chi_error cause = run->error;
	chi_mutex_unlock(&run->lock);
	return choir_fail(CHOIR_CANCELLED, "cancelled: %.400s", cause.text);
}

static choir_status prepare(chi_run *run, choir_replica_fn *fn, void *user, choir_values *args,
		choir_values *results)
{
	choir_strategy *s = run->strategy;
	if (args != NULL) {
		if (args->strategy != s)
			return choir_fail(CHOIR_INVALID, "run: the arguments belong to another strategy");
		CHOIR_TRY(chi_values_check(args));
	}
	run->fn = fn;
	run->user = user;
	run->args = args;
	run->results = results;
	run->step = s->step;
	run->applied = false;
	run->failed_replica = s->replicas;
	chi_atomic32_store(&run->failed, 0);
	chi_atomic32_store(&run->finished.word, 0);
	for (int i = 0; i < s->replicas; i++) {
		chi_replica *r = &run->replica[i];
		r->state = CHI_RUNS; // on a lane of its own nobody asks for more
		r->sequence = 0;
		r->commits = 0;
		r->cancelled = false;
		r->given.n = r->returned.n = 0;
	}
	for (int i = 0; i < s->lanes; i++) {
		const int count = s->first[i + 1] - s->first[i];
		run->lane[i] = (chi_lane){ .next = s->first[i], .last = s->first[i + 1], .left = count,
			.shared = count > 1, .held = true };
		for (int r = s->first[i]; count > 1 && r < s->first[i + 1]; r++)
			run->replica[r].state = CHI_WAITS_TO_START;
	}
	return CHOIR_OK;
}

// Sends every lane but the first to a thread of its crew; a lane that cannot be sent fails the run
// and is carried here, where its replicas are only skipped.
static void send_lanes(chi_run *run)
{
	for (int i = 1; i < run->strategy->lanes; i++)
		if (chi_crew_send(run->strategy, i, run) != CHOIR_OK) {
			chi_error_prefix("run: no thread for device %d", i);
			chi_run_fail(run, run->strategy->replicas);
			chi_lane_go(run, i, NULL);
		}
}

static void wait_for_lanes(chi_run *run)
{
	for (;;) {
		const uint32_t word = chi_atomic32_load(&run->finished.word);
		if (word == (uint32_t) run->strategy->lanes)
			return;
		// Replicas have deadlines of their own; user code that never returns cannot be stopped.
		(void) chi_gate_wait(&run->finished, word, run->spin, chi_clock_deadline(-1));
	}
}

static choir_status finish(chi_run *run)
{
	choir_strategy *s = run->strategy;
	choir_status status = CHOIR_OK;
	if (chi_atomic32_load(&run->failed) != 0) {
		status = run->error.status;
	} else if (run->results != NULL) {
		status = chi_results_merge(run);
		if (status != CHOIR_OK)
			chi_error_save(&run->error);
	}
	chi_apply_forget(run);
	chi_meet_clear(run);
	if (run->cross != NULL)
		chi_cross_clear(run->cross);
	if (chi_atomic32_load(&run->failed) != 0)
		chi_group_reset(&s->group);
	if (run->applied)
		s->step++;
	if (status != CHOIR_OK) {
		if (run->results != NULL)
			choir_values_clear(run->results);
		chi_error_restore(&run->error);
	}
	return status;
}

choir_status chi_run_go(chi_run *run, choir_replica_fn *fn, void *user, choir_values *args,
		choir_values *results)
{
	CHOIR_TRY(prepare(run, fn, user, args, results));
	chi_fpenv_enter(&run->host);
	send_lanes(run);
	chi_lane_go(run, 0, NULL);
	wait_for_lanes(run);
	chi_fpenv_leave(&run->host);
	return finish(run);
}

static choir_status ready_results(choir_strategy *s, choir_values *args, choir_values **results)
{
	if (*results != NULL && *results == args)
		return choir_fail(CHOIR_INVALID, "run: the arguments and the results are the same set");
	if (*results != NULL && (*results)->strategy != s)
		return choir_fail(CHOIR_INVALID, "run: the results belong to another strategy");
	if (*results == NULL)
		*results = choir_values_new(s);
	else
		choir_values_clear(*results);
	return *results == NULL ? choir_error_status() : CHOIR_OK;
}

choir_status choir_strategy_run(choir_strategy *s, choir_replica_fn *fn, void *user,
		choir_values *args, choir_values **results)
{
	CHOIR_TRY(chi_strategy_check(s));
	CHOIR_TRY(chi_context_need_cross(s, "run"));
	if (fn == NULL)
		return choir_fail(CHOIR_INVALID, "run: the function is NULL");
	if (!chi_atomic32_change(&s->running, 0, 1))
		return choir_fail(CHOIR_STATE, "run: another run of this strategy (\"%s\") is under way",
				s->kind);
	chi_context inside = { .kind = CHI_IN_CROSS, .strategy = s };
	chi_context_push(&inside);
	choir_status status = results == NULL ? CHOIR_OK : ready_results(s, args, results);
	if (status == CHOIR_OK)
		status = chi_run_go(s->run, fn, user, args, results == NULL ? NULL : *results);
	chi_context_pop(&inside);
	chi_atomic32_store(&s->running, 0);
	chi_dlpack_run_deleters();
	return status;
}
