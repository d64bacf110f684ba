// When updates run, and on which threads.
#include "strategy/gradients/gradients.h"

#include "base/clock.h"
#include "strategy/gradients/execute_update.h"

// CHOIR_NONE: a thread for all.
typedef enum { NOTHING_TO_DO, AS_FIRST, AS_OTHER } part;
static part claim(chi_run *run, chi_pending_update *u, int d)
{
	chi_mutex_lock(&run->lock);
	part mine = NOTHING_TO_DO;
	if (u->stage == CHI_OPEN) {
		u->stage = d == CHOIR_NONE ? CHI_BY_ONE : CHI_BY_DEVICES;
		mine = AS_FIRST;
	} else if (u->stage == CHI_BY_DEVICES && d != CHOIR_NONE && !u->device[d].done) {
		mine = AS_OTHER;
	}
	if (mine != NOTHING_TO_DO && d != CHOIR_NONE)
		u->device[d].done = true;
	chi_mutex_unlock(&run->lock);
	return mine;
}

// The replica that keeps the lowest one from returning, or CHOIR_NONE.
static int still_running(chi_run *run)
{
	int found = CHOIR_NONE;
	chi_mutex_lock(&run->lock);
	for (int i = run->strategy->replicas - 1; i >= 0; i--)
		if (chi_atomic32_load(&run->replica[i].has_returned) == 0)
			found = chi_scheduler_holder(run, i);
	chi_mutex_unlock(&run->lock);
	return found;
}

static bool blame(chi_run *run)
{
	const int missing = still_running(run);
	if (missing != CHOIR_NONE)
		choir_fail(CHOIR_TIMEOUT,
				"run: an update waited %g s for replica %d, which has not returned",
				run->strategy->timeout, chi_strategy_id(run->strategy, missing));
	return missing != CHOIR_NONE;
}

static choir_status execute(chi_run *run, chi_pending_update *u, int d, part mine)
{
	const int devices = run->strategy->devices;
	const bool for_all = d == CHOIR_NONE;
	const choir_status status = chi_pending_update_execute(
			u, for_all ? 0 : d, for_all ? devices : d + 1, mine == AS_FIRST);
	if (status == CHOIR_TIMEOUT)
		(void) blame(run);
	if (status != CHOIR_OK)
		chi_run_fail(run, run->strategy->replicas);
	else if (chi_atomic32_load(&u->done) != 0)
		chi_run_wake_up(run);
	return status;
}

// One thread for all needs no deadline: exchanges have their own.
static bool is_by_one(chi_run *run, const chi_pending_update *u)
{
	chi_mutex_lock(&run->lock);
	const bool by_one = u->stage == CHI_BY_ONE;
	chi_mutex_unlock(&run->lock);
	return by_one;
}

static bool await(chi_pending_update *u, const chi_atomic32 *flag, int d)
{
	chi_run *run = u->run;
	uint32_t progress = chi_atomic32_load(&run->progress);
	double deadline = chi_clock_deadline(run->strategy->timeout);
	for (;;) {
		const uint32_t word = chi_atomic32_load(&run->wakeup.word);
		if (chi_atomic32_load(&run->failed) != 0)
			return false;
		if (chi_atomic32_load(flag) != 0)
			return true;
		if (d != CHOIR_NONE && chi_overlap_help(u, d) != CHOIR_OK) {
			chi_run_fail(run, run->strategy->replicas);
			return false;
		}
		chi_trace_begin(CHOIR_TRACE_WAIT, "update");
		const bool in_time = chi_gate_wait(&run->wakeup, word, run->spin, deadline);
		chi_trace_end_wait(chi_atomic32_load(&u->all_applied) != 0 ? u->last : CHI_LAST_UNKNOWN);
		if (in_time)
			continue;
		if (progress == chi_atomic32_load(&run->progress) && !is_by_one(run, u) && blame(run)) {
			chi_run_fail(run, run->strategy->replicas);
			return false;
		}
		progress = chi_atomic32_load(&run->progress);
		deadline = chi_clock_deadline(run->strategy->timeout);
	}
}

bool chi_gradients_wait(chi_pending_update *u, const chi_atomic32 *flag)
{
	return await(u, flag, CHOIR_NONE);
}

static bool wait_for_all(chi_pending_update *u, int d)
{
	chi_atomic32_add(&u->overlap.waiting, 1);
	const bool all = await(u, &u->all_applied, d);
	chi_atomic32_add(&u->overlap.waiting, UINT32_MAX);
	return all;
}

static chi_pending_update *pending(chi_run *run, int i)
{
	chi_mutex_lock(&run->lock);
	chi_pending_update *u = run->pending[i];
	chi_mutex_unlock(&run->lock);
	return u;
}

static void do_pending(chi_run *run, int d, int updates)
{
	for (int i = 0; i < updates; i++) {
		chi_pending_update *u = pending(run, i);
		if (!wait_for_all(u, d))
			return;
		const part mine = claim(run, u, d);
		if (mine != NOTHING_TO_DO && execute(run, u, d, mine) != CHOIR_OK)
			return;
		// The next update may have the same optimizer or variables.
		if ((mine == NOTHING_TO_DO || i + 1 < updates) && !chi_gradients_wait(u, &u->done))
			return;
	}
}

void chi_gradients_run_updates(chi_run *run, int d)
{
	const int updates = run->replica[run->strategy->first[d]].updates;
	if (updates == 0)
		return;
	chi_run_trace_device(run, d, CHOIR_TRACE_UPDATE, "updates");
	do_pending(run, d, updates);
	chi_trace_end();
}

static bool concerns(const chi_pending_update *u, int d, const choir_variable *v)
{
	for (size_t i = 0; i < u->device[d].n; i++)
		if (u->device[d].gradient[i]->variable == v ||
				u->device[d].gradient[i]->variable == v->colocated_with)
			return true;
	return false;
}

static choir_status finish_update(chi_replica *r, chi_pending_update *u)
{
	CHOIR_TRY(chi_scheduler_wait(r, &u->all_applied, NULL));
	// The other devices may have begun: then this device must take part.
	part mine = claim(r->run, u, CHOIR_NONE);
	int d = CHOIR_NONE;
	if (mine == NOTHING_TO_DO)
		mine = claim(r->run, u, d = r->device);
	if (mine != NOTHING_TO_DO)
		CHOIR_TRY(execute(r->run, u, d, mine));
	return chi_scheduler_wait(r, &u->done, NULL);
}

// In order up to v's last: an earlier one may be the same optimizer's.
choir_status chi_gradients_finish_updates_of(chi_replica *r, const choir_variable *v)
{
	int n = r->updates;
	while (n > 0 && v != NULL && !concerns(pending(r->run, n - 1), r->device, v))
		n--;
	for (int i = 0; i < n; i++) {
		chi_pending_update *u = pending(r->run, i);
		if (chi_atomic32_load(&u->done) != 0)
			continue;
		if (finish_update(r, u) != CHOIR_OK) {
			r->cancelled = true;
			return chi_frame_record_error(r->base.frame);
		}
	}
	return CHOIR_OK;
}

choir_status chi_gradients_finish_updates(chi_run *run)
{
	for (size_t i = 0; i < run->n_pending; i++)
		if (claim(run, run->pending[i], CHOIR_NONE) != NOTHING_TO_DO)
			CHOIR_TRY(
					chi_pending_update_execute(run->pending[i], 0, run->strategy->devices, true));
	return CHOIR_OK;
}

void chi_gradients_spare_updates(const chi_replica *r)
{
	for (int i = 0; i < r->updates; i++) {
		chi_pending_update *u = pending(r->run, i);
		if (chi_atomic32_load(&u->prepared.word) != 0 &&
				(u->bucket_elements > 0 || u->single_device))
			chi_atomic32_store(&u->spared, 1);
	}
}

void chi_gradients_discard_updates(chi_run *run)
{
	for (chi_pending_update *u = run->open; u != NULL; u = u->next_open)
		chi_pending_update_discard(u);
	run->open = NULL;
	run->n_pending = 0;
}
