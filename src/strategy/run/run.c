// An empty run of two replicas costs two transfers between cores.
#include "strategy/run/run.h"

#include "base/clock.h"
#include "base/processors.h"
#include "base/thread.h"
#include "strategy/replica/replica.h"
#include "strategy/value_consistency.h"
#include "strategy/remote_variables.h"
#include "strategy/device_placement.h"
#include "strategy/gradients/gradients.h"
#include "strategy/gradients/overlap_workers.h"
#include "strategy/run/thread_pool.h"
#include "strategy/run/small_all_reduce.h"
#include "strategy/run/sync_point.h"
#include "strategy/cross/cross.h"
#include "strategy/worker_sync.h"
#include "trace/health.h"

#include <stdio.h>
#include <string.h>

static choir_status open_replica(chi_run *run, int id)
{
	choir_strategy *s = run->strategy;
	chi_replica *r = &run->replica[id];
	r->run = run;
	r->id = id;
	r->device = chi_strategy_device_index(s, id);
	choir_frame *f = r->base.frame = choir_frame_new(s->replica_device[id]);
	if (f == NULL)
		return choir_error_status();
	f->context = r;
	f->context_kind = CHI_IN_REPLICA;
	if (!s->is_default && s->in_sync > 1)
		snprintf(f->prefix, sizeof f->prefix, "replica %d: ", chi_strategy_id(s, id));
	f->random = (chi_random_key){ .seed = s->options.seed,
		.replica = (uint32_t) (s->first_replica + chi_strategy_id(s, id)) };
	return CHOIR_OK;
}

chi_run *chi_run_new(choir_strategy *s)
{
	chi_run *run = chi_alloc_lines(1, sizeof *run);
	if (run == NULL)
		return NULL;
	run->strategy = s;
	run->failed_replica = s->replicas;
	run->spin = s->devices <= chi_processor_count();
	chi_mutex_init(&run->lock, CHI_RANK_RUN, "run");
	run->device = chi_alloc_lines((size_t) s->devices, sizeof *run->device);
	run->replica = chi_alloc_lines((size_t) s->replicas, sizeof *run->replica);
	choir_status status = run->device == NULL || run->replica == NULL ? CHOIR_NO_MEMORY : CHOIR_OK;
	for (int i = 0; status == CHOIR_OK && i < s->replicas; i++)
		status = open_replica(run, i);
	if (status == CHOIR_OK)
		status = chi_small_all_reduce_open(run);
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
	chi_sync_point_free(run);
	chi_cross_free(run->cross);
	for (int i = 0; run->replica != NULL && i < run->strategy->replicas; i++) {
		choir_frame_free(run->replica[i].base.frame);
		chi_free(run->replica[i].call_args.named);
		chi_free(run->replica[i].returned.named);
		chi_named_tensors_free(&run->replica[i].unkept);
		chi_free(run->replica[i].own_args.named);
	}
	chi_free(run->small_all_reduce);
	chi_free(run->pending);
	chi_free(run->replica);
	chi_free(run->device);
	chi_mutex_destroy(&run->lock);
	chi_free(run);
}

void chi_run_wake_up(chi_run *run)
{
	chi_mutex_lock(&run->lock);
	chi_scheduler_wake(run);
	chi_mutex_unlock(&run->lock);
	chi_atomic32_add(&run->wakeup.word, 1);
	chi_gate_wake(&run->wakeup);
}

// True: the first failure. If two devices wait for a third, one times out and cancels the other;
// the timeout is the cause. With the lock.
static bool record(chi_run *run, int local_replica)
{
	const bool first = chi_atomic32_load(&run->failed) == 0;
	if (choir_error_status() == CHOIR_OK)
		choir_fail(CHOIR_INTERNAL, "run: a failure without a text");
	const bool cause = local_replica == run->failed_replica &&
			run->error.status == CHOIR_CANCELLED && choir_error_status() != CHOIR_CANCELLED;
	if (first || cause || local_replica < run->failed_replica) {
		run->failed_replica = local_replica;
		chi_error_save(&run->error);
	}
	chi_atomic32_store(&run->failed, 1);
	return first;
}

static void forget(chi_run *run)
{
	chi_gradients_discard_updates(run);
	chi_sync_point_clear(run);
	chi_small_all_reduce_clear(run);
	if (chi_atomic32_load(&run->failed) != 0)
		chi_communicator_reset(&run->strategy->communicator);
}

static void tell_of_failure(chi_run *run, bool first)
{
	if (first && !run->isolated)
		chi_communicator_abort(&run->strategy->communicator);
	chi_small_all_reduce_stop(run);
	chi_run_wake_up(run);
}

void chi_run_fail(chi_run *run, int local_replica)
{
	chi_mutex_lock(&run->lock);
	const bool first = record(run, local_replica);
	chi_mutex_unlock(&run->lock);
	tell_of_failure(run, first);
}

bool chi_run_abort_wait(chi_replica *r, const chi_sync_point *point)
{
	chi_run *run = r->run;
	bool first = false;
	chi_mutex_lock(&run->lock);
	const int missing = chi_sync_point_missing(r, point);
	if (missing != CHOIR_NONE) {
		char why[40] = "";
		const int holder = chi_scheduler_holder(run, missing);
		if (holder != missing)
			snprintf(why, sizeof why, ", as replica %d has its device",
					chi_strategy_id(run->strategy, holder));
		choir_fail(CHOIR_TIMEOUT, "replica %d waited %g s in %s; replica %d has not come%s",
				chi_replica_number(r), run->strategy->timeout,
				point == NULL ? "an update" : point->name, chi_strategy_id(run->strategy, missing),
				why);
		first = record(run, run->strategy->replicas);
	}
	chi_mutex_unlock(&run->lock);
	if (missing != CHOIR_NONE)
		tell_of_failure(run, first);
	return missing != CHOIR_NONE;
}

static chi_run *nested_of(chi_run *run)
{
	if (run->nested == NULL)
		run->nested = chi_run_new(run->strategy);
	if (run->nested != NULL)
		run->nested->nested_in_isolated = run->isolated;
	return run->nested;
}

choir_status chi_run_cancelled(chi_run *run)
{
	chi_mutex_lock(&run->lock);
	const bool known = chi_atomic32_load(&run->failed) != 0;
	chi_error cause = run->error;
	chi_mutex_unlock(&run->lock);
	return choir_fail(CHOIR_CANCELLED, "cancelled: %.400s",
			known ? cause.text : "another replica is about to fail");
}

static void begin_replica(chi_replica *r)
{
	r->state = CHI_WAITS_TO_START;
	chi_atomic32_store(&r->has_returned, 0);
	r->sequence = r->small_all_reduces = 0;
	r->order = 0;
	r->updates = 0;
	r->gradient_hash = 0;
	r->adds_to = NULL;
	r->gradients = 0;
	r->trains = r->cancelled = r->ends_later = false;
}

static void begin_device(chi_run *run, int i)
{
	const int *first = run->strategy->first;
	const int count = first[i + 1] - first[i];
	chi_run_device *dev = &run->device[i];
	dev->next = first[i];
	dev->last = first[i + 1];
	dev->left = count;
	dev->shared = count > 1;
	dev->held = true;
	dev->closed = false;
	dev->may = dev->last;
	dev->number = run->number;
	for (int id = first[i]; id < first[i + 1]; id++) {
		begin_replica(&run->replica[id]);
		run->replica[id].call_args.n = run->replica[id].returned.n = 0;
		if (run->replica[id].unkept.n != 0) // keeps the cache line unchanged
			run->replica[id].unkept.n = 0;
		run->replica[id].side = (int) (run->number % 2);
	}
}

static choir_status prepare(chi_run *run, const chi_run_task *task, bool isolated)
{
	choir_strategy *s = run->strategy;
	if (task->args != NULL) {
		if (task->args->strategy != s)
			return choir_fail(CHOIR_INVALID, "run: the arguments belong to another strategy");
		CHOIR_TRY(chi_values_check(task->args));
		CHOIR_TRY(chi_strategy_count_examples(s, task->args));
		CHOIR_TRY(chi_values_publish(task->args));
	}
	run->examples = s->process_group == NULL || task->args == NULL
			? CHOIR_UNKNOWN
			: chi_values_global_examples(task->args);
	if (memcmp(&run->task, task, sizeof *task) != 0)
		run->task = *task;
	if (run->isolated != isolated)
		run->isolated = isolated;
	run->applied = false;
	run->failed_replica = s->replicas;
	run->number++;
	if (chi_atomic32_load(&run->failed) != 0)
		chi_atomic32_store(&run->failed, 0);
	if (chi_atomic32_load(&run->named) != 0)
		chi_atomic32_store(&run->named, 0);
	if (s->process_group != NULL && !isolated)
		chi_atomic64_store(&s->process_group->order, 0);
	for (int i = 0; i < s->devices; i++)
		begin_device(run, i);
	return CHOIR_OK;
}

static void send_devices(chi_run *run)
{
	for (int i = 1; i < run->strategy->devices; i++)
		if (chi_thread_pool_send(run->strategy, i, run) != CHOIR_OK) {
			chi_error_prefix("run: no thread for device %d", i);
			chi_run_fail(run, run->strategy->replicas);
			chi_scheduler_run(run, i, NULL);
		}
}

static void wait_for_device(chi_run *run, int d)
{
	chi_gate *done = &run->device[d].done;
	const uint32_t word = chi_atomic32_load(&done->word);
	if (word == run->number)
		return;
	chi_run_trace_device(run, 0, CHOIR_TRACE_WAIT, "other devices");
	// User code that never returns cannot be stopped.
	(void) chi_gate_wait(done, word, run->spin, chi_clock_deadline(-1));
	chi_trace_end();
}

static void wait_for_devices(chi_run *run)
{
	for (int i = 0; i < run->strategy->devices; i++)
		wait_for_device(run, i);
}

// Devices with several replicas return their threads themselves.
static void rest(chi_run *run)
{
	chi_thread_pool_rest_all(run->busy);
	run->busy = NULL;
}

static choir_status count_step(chi_run *run)
{
	choir_strategy *s = run->strategy;
	s->step++;
	s->compared++;
	if (run != s->run || s->process_group == NULL || !chi_compare_is_due(s))
		return CHOIR_OK;
	const choir_status status = chi_compare_workers(s);
	if (status != CHOIR_OK)
		chi_error_save(&run->error);
	return status;
}

static choir_status finish(chi_run *run)
{
	choir_strategy *s = run->strategy;
	choir_status status = CHOIR_OK;
	if (run == s->run && s->overlap_workers != NULL)
		// the exchange thread may have failed
		chi_overlap_workers_rest(s);
	if (chi_atomic32_load(&run->failed) != 0) {
		status = run->error.status;
	} else {
		status = chi_results_merge(run);
		if (status != CHOIR_OK)
			chi_error_save(&run->error);
	}
	forget(run);
	if (run->cross != NULL)
		chi_cross_clear(run->cross);
	if (run->applied && status != CHOIR_OK)
		s->step++;
	else if (run->applied)
		status = count_step(run);
	if (status != CHOIR_OK) {
		if (run->task.results != NULL)
			choir_values_clear(run->task.results);
		chi_error_restore(&run->error);
		if (!run->isolated)
			chi_strategy_abort(s, status);
	}
	return status;
}

choir_status chi_run_go(
		chi_run *run, choir_replica_fn *fn, void *user, choir_values *args, choir_values *results)
{
	const chi_run_task task = { fn, user, args, results, run->strategy->step };
	const choir_status ready = prepare(run, &task, run->nested_in_isolated);
	if (ready != CHOIR_OK) // others would wait for this worker's replicas
		return chi_strategy_abort(run->strategy, ready);
	chi_trace_begin(CHOIR_TRACE_OTHER, "run");
	chi_health_step(task.step, chi_strategy_id(run->strategy, 0), run->strategy->replicas);
	chi_fpenv_enter(&run->host);
	run->going = true;
	send_devices(run);
	chi_scheduler_run(run, 0, NULL);
	wait_for_devices(run);
	rest(run);
	chi_fpenv_leave(&run->host);
	const choir_status status = finish(run);
	run->going = false;
	chi_trace_end();
	return status;
}

void chi_run_left(chi_run *run, int d)
{
	chi_run_device *dev = &run->device[d];
	const int first = run->strategy->first[d];
	chi_mutex_lock(&run->lock);
	const bool closed = dev->closed;
	chi_replica *r = &run->replica[dev->shared ? chi_scheduler_holder(run, first) : first];
	chi_mutex_unlock(&run->lock);
	if (run->nested != NULL && run->nested->going) // left from a merge function
		chi_run_abandon(run->nested, false);
	choir_fail(CHOIR_STATE, "run: %s", CHI_WAS_LEFT);
	if (closed) {
		chi_run_fail(run, run->strategy->replicas);
		chi_gate_open(&dev->done, dev->number);
		return;
	}
	chi_error_prefix("replica %d", chi_replica_number(r));
	chi_run_fail(run, r->id);
	choir_frame_clear(r->base.frame);
	chi_sync_point_returned(r);
	chi_scheduler_run(run, d, NULL);
}

void chi_run_abandon(chi_run *run, bool back)
{
	if (!run->going)
		return;
	run->task.results = NULL;
	chi_run_left(run, 0);
	wait_for_devices(run);
	rest(run);
	(void) finish(run);
	run->going = false;
	if (back) {
		chi_fpenv_leave(&run->host);
		chi_dlpack_hold(false);
		(void) chi_team_use(NULL);
	}
}

choir_status chi_run_isolated(
		chi_run *run, int local_replica, choir_replica_fn *fn, void *user, choir_values *args)
{
	const chi_run_task task = { fn, user, args, NULL, run->strategy->step };
	CHOIR_TRY(prepare(run, &task, true));
	chi_trace_begin(CHOIR_TRACE_OTHER, "run of one replica");
	chi_replica_call(&run->replica[local_replica]);
	const choir_status status = finish(run);
	chi_trace_end();
	return status;
}

void chi_run_renew(chi_run *run)
{
	choir_strategy *s = run->strategy;
	if (run != s->default_run)
		return;
	chi_replica *r = &run->replica[0];
	forget(run);
	chi_atomic32_store(&run->failed, 0);
	run->failed_replica = s->replicas;
	begin_replica(r);
	if (run->applied)
		r->base.frame->random.step = ++s->step;
	run->applied = false;
}

static chi_run *outer_run(const choir_strategy *s)
{
	const chi_context *c = chi_context_current();
	if (c == NULL || c->kind != CHI_IN_CROSS || c->what == NULL || c->strategy != s)
		return NULL;
	return chi_cross_of(c->what)->run;
}

static choir_status unwrap_variables(const choir_strategy *s)
{
	for (choir_variable *v = s->variables; v != NULL; v = v->next)
		if (v->wrapped != NULL)
			CHOIR_TRY(chi_variable_unwrap(v));
	return CHOIR_OK;
}

static choir_status ready_results(choir_strategy *s, choir_values *args, choir_values **results)
{
	if (*results != NULL && *results == args)
		return choir_fail(CHOIR_INVALID,
				"run: the arguments and the results are the same set; two are needed");
	if (*results != NULL && (*results)->strategy != s)
		return choir_fail(CHOIR_INVALID, "run: the results belong to another strategy");
	if (*results == NULL)
		*results = choir_values_new(s);
	else
		choir_values_clear(*results);
	return chi_made(*results);
}

static choir_status run_in(
		chi_run *run, choir_replica_fn *fn, void *user, choir_values *args, choir_values **results)
{
	if (run == NULL)
		return choir_error_status();
	chi_context inside;
	chi_context *entry = chi_context_enter(&inside, CHI_IN_CROSS, run->strategy, NULL);
	choir_status status = results == NULL ? CHOIR_OK : ready_results(run->strategy, args, results);
	chi_strategy_abort(run->strategy, status);
	if (status == CHOIR_OK)
		status = chi_run_go(run, fn, user, args, results == NULL ? NULL : *results);
	chi_context_pop(entry);
	return status;
}

choir_status choir_strategy_run(choir_strategy *s, choir_replica_fn *fn, void *user,
		choir_values *args, choir_values **results)
{
	CHOIR_TRY(chi_strategy_check(s));
	CHOIR_TRY(chi_context_need_cross(s, "run"));
	if (fn == NULL)
		return choir_fail(CHOIR_INVALID, "run: the function is NULL");
	CHOIR_TRY(chi_strategy_check_not_stopped(s));
	if (s->process_group != NULL)
		CHOIR_TRY(chi_cluster_check(s->process_group->cluster));
	chi_run *outer = outer_run(s);
	if (outer != NULL)
		return run_in(nested_of(outer), fn, user, args, results);
	CHOIR_TRY(chi_remote_refresh_to_write(s));
	if (!chi_atomic32_change(&s->running, 0, 1))
		return choir_fail(
				CHOIR_STATE, "run: another run of this strategy (\"%s\") is in progress", s->kind);
	chi_dlpack_hold(true);
	choir_status status = run_in(s->run, fn, user, args, results);
	if (status == CHOIR_OK && chi_atomic32_load(&s->has_wrapped_memory) != 0)
		status = unwrap_variables(s);
	chi_dlpack_hold(false);
	chi_atomic32_store(&s->running, 0);
	chi_dlpack_run_deleters();
	return status;
}

static choir_status check_run_replica(
		const choir_strategy *s, int local_replica, choir_replica_fn *fn)
{
	const chi_context *c = chi_context_current();
	CHOIR_TRY(chi_strategy_check(s));
	CHOIR_TRY(chi_context_need_cross(s, "run_replica"));
	if (c != NULL && c->kind == CHI_IN_CROSS && c->what != NULL)
		return choir_fail(CHOIR_STATE,
				"run_replica: it was called in a merge function; call it outside of runs");
	if (fn == NULL)
		return choir_fail(CHOIR_INVALID, "run_replica: the function is NULL");
	if (local_replica < 0 || local_replica >= s->replicas)
		return choir_fail(CHOIR_INVALID,
				"run_replica: local replica %d does not exist; there are 0 to %d", local_replica,
				s->replicas - 1);
	return chi_strategy_check_not_stopped(s);
}

choir_status choir_strategy_run_replica(
		choir_strategy *s, int local_replica, choir_replica_fn *fn, void *user, choir_values *args)
{
	CHOIR_TRY(check_run_replica(s, local_replica, fn));
	if (!chi_atomic32_change(&s->running, 0, 1))
		return choir_fail(CHOIR_STATE,
				"run_replica: a run of this strategy (\"%s\") is in progress", s->kind);
	chi_context inside;
	chi_context *entry = chi_context_enter(&inside, CHI_IN_CROSS, s, NULL);
	chi_dlpack_hold(true);
	const choir_status status = chi_run_isolated(s->run, local_replica, fn, user, args);
	chi_dlpack_hold(false);
	chi_context_pop(entry);
	chi_atomic32_store(&s->running, 0);
	chi_dlpack_run_deleters();
	return status;
}
