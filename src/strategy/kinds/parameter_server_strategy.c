// Variables belong to the first worker, the program's strategy. Each other worker is a strategy on
// a new thread, with its own replicas and devices.
#include "strategy/kinds/kinds.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "strategy/context.h"
#include "strategy/run/run.h"

#include <stdio.h>
#include <string.h>

enum { MAX = 256 };

typedef struct {
	int devices;
	choir_device *device[MAX];
	chi_atomic32 placed;
} server;

static choir_status open_server(
		void *self, const choir_strategy_options *options, int n, choir_device *const devices[])
{
	server *s = self;
	const char *names = options->parameter_devices;
	if (names != NULL && names[0] != '\0')
		return chi_device_list(names, MAX, s->device, &s->devices);
	s->devices = 1;
	s->device[0] = n == 1 ? devices[0] : choir_device_find("cpu:0");
	return s->device[0] == NULL ? choir_error_status() : CHOIR_OK;
}

static int all_devices(void *self, int capacity, choir_device *devices[])
{
	const server *s = self;
	for (int i = 0; i < s->devices && i < capacity; i++)
		devices[i] = s->device[i];
	return s->devices;
}

static int first_device(void *self, int capacity, choir_device *devices[])
{
	(void) capacity;
	devices[0] = ((const server *) self)->device[0];
	return 1;
}

static int place(void *self, const choir_new_variable *v, int capacity, choir_device *devices[])
{
	server *s = self;
	(void) v;
	(void) capacity;
	devices[0] = s->device[chi_atomic32_add(&s->placed, 1) % (uint32_t) s->devices];
	return 1;
}

const choir_strategy_table chi_parameter_server_table = {
	.size = sizeof(choir_strategy_table),
	.version = CHOIR_TABLE_VERSION,
	.name = "parameter_server",
	.self_size = sizeof(server),
	.features = CHOIR_FEATURE_PARAMETER_DEVICES | CHOIR_FEATURE_WORKERS | CHOIR_FEATURE_SHARDS,
	.open = open_server,
	.parameter_devices = all_devices,
	.non_slot_devices = first_device,
	.place_variable = place,
};

choir_strategy *choir_parameter_server_strategy_new(const choir_strategy_options *o)
{
	return choir_strategy_new("parameter_server", o);
}

static choir_strategy *new_worker(choir_strategy *owner, int worker, int first_replica)
{
	choir_strategy *s = chi_alloc(sizeof *s);
	if (s == NULL)
		return NULL;
	s->owner = owner;
	s->kind = owner->kind;
	memcpy(s->label, owner->label, sizeof s->label);
	s->table = owner->table;
	s->options = owner->options;
	s->communication = owner->communication;
	s->timeout = owner->timeout;
	s->workers = owner->workers;
	s->worker = worker;
	s->first_replica = first_replica;
	s->concurrency = owner->concurrency;
	s->parameters = owner->parameters;
	s->parameter = owner->parameter;
	s->non_slots = owner->non_slots;
	s->non_slot = owner->non_slot;
	s->all_host = owner->all_host;
	s->variables_end = &s->variables;
	s->fork_generation = owner->fork_generation;
	chi_mutex_init(&s->lock, CHI_RANK_STRATEGY, "worker");
	return s;
}

choir_status chi_strategy_open_workers(choir_strategy *owner)
{
	owner->by_worker = chi_alloc_array((size_t) owner->workers, sizeof(choir_strategy *));
	if (owner->by_worker == NULL)
		return choir_error_status();
	owner->by_worker[0] = owner;
	int first = owner->replicas;
	for (int w = 1; w < owner->workers; w++) {
		choir_strategy *s = owner->by_worker[w] = new_worker(owner, w, first);
		if (s == NULL)
			return choir_error_status();
		CHOIR_TRY(chi_strategy_open_block(s));
		first += s->replicas;
	}
	return CHOIR_OK;
}

void chi_strategy_close_workers(choir_strategy *owner)
{
	for (int w = 1; owner->by_worker != NULL && w < owner->workers; w++) {
		choir_strategy *s = owner->by_worker[w];
		if (s == NULL)
			continue;
		chi_strategy_close_block(s);
		chi_mutex_destroy(&s->lock);
		chi_free(s);
	}
	chi_free(owner->by_worker);
}

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
	choir_status status = calls == NULL ? choir_error_status() : CHOIR_OK;
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
