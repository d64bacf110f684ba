// Strategies: creation, freeing, ownership, waits and properties.
#include "strategy/strategy.h"

#include "base/options.h"
#include "base/registry.h"
#include "base/thread.h"
#include "strategy/gradients/overlap_workers.h"
#include "strategy/kinds/kinds.h"
#include "strategy/device_placement.h"
#include "strategy/cross/cross.h"
#include "strategy/run/run.h"
#include "strategy/strategy_options.h"
#include "strategy/strategy_precision.h"
#include "strategy/worker_sync.h"

#include <stdio.h>

static chi_atomic32 made;

static int no_devices(void *self, int capacity, choir_device *devices[])
{
	(void) self, (void) capacity, (void) devices;
	choir_fail(CHOIR_UNSUPPORTED, "strategy: its table has no parameter_devices");
	return CHOIR_NONE;
}

static int no_place(void *self, const choir_new_variable *v, int capacity, choir_device *devices[])
{
	(void) self, (void) capacity, (void) devices;
	choir_fail(CHOIR_UNSUPPORTED, "variable \"%s\": the strategy's table has no place_variable",
			v->name);
	return CHOIR_NONE;
}

static choir_status no_open(
		void *self, const choir_strategy_options *options, int n, choir_device *const devices[])
{
	(void) self, (void) options, (void) n, (void) devices;
	return CHOIR_OK;
}

static void no_close(void *self)
{
	(void) self;
}

static choir_strategy_table filled(const choir_strategy_table *table)
{
	choir_strategy_table t = *table;
	t.open = t.open != NULL ? t.open : no_open;
	t.close = t.close != NULL ? t.close : no_close;
	t.parameter_devices = t.parameter_devices != NULL ? t.parameter_devices : no_devices;
	t.non_slot_devices = t.non_slot_devices != NULL ? t.non_slot_devices : t.parameter_devices;
	t.place_variable = t.place_variable != NULL ? t.place_variable : no_place;
	return t;
}

static choir_status open_exchange(choir_strategy *s)
{
	s->exchange = chi_alloc_array((size_t) s->devices, sizeof *s->exchange);
	CHOIR_TRY(chi_made(s->exchange));
	for (int i = 0; i < s->devices; i++)
		if ((s->exchange[i] = chi_stream_new(s->device[i])) == NULL)
			return choir_error_status();
	if (s->process_group != NULL)
		return chi_communicator_open_among_workers(&s->communicator, s->devices, s->device,
				s->process_group, s->options.cross_device_ops);
	return chi_communicator_open(
			&s->communicator, s->devices, s->replicas, s->device, s->options.cross_device_ops);
}

static bool shares_with_a_device(const choir_strategy *s, const choir_device *device)
{
	for (int i = 0; i < s->devices; i++)
		if (chi_device_shares(s->device[i], device))
			return true;
	return false;
}

static choir_status open_parameter_streams(choir_strategy *s)
{
	s->parameter_stream = chi_alloc_array((size_t) s->parameters, sizeof *s->parameter_stream);
	CHOIR_TRY(chi_made(s->parameter_stream));
	s->all_here = true;
	for (int i = 0; i < s->parameters; i++) {
		if (shares_with_a_device(s, s->parameter[i]))
			continue;
		s->all_here = false;
		if ((s->parameter_stream[i] = chi_stream_new(s->parameter[i])) == NULL)
			return choir_error_status();
	}
	return CHOIR_OK;
}

choir_status chi_strategy_open_block(choir_strategy *s)
{
	CHOIR_TRY(chi_layout_open_block(s));
	CHOIR_TRY(open_parameter_streams(s));
	CHOIR_TRY(open_exchange(s));
	CHOIR_TRY(chi_overlap_workers_open(s));
	CHOIR_TRY(chi_thread_pool_open(s));
	s->run = chi_run_new(s);
	return chi_made(s->run);
}

// Before freeing what runs and threads use. left: this thread has left a function that s called.
static void close_runs(choir_strategy *s, bool left)
{
	if (s->run != NULL && s->fork_generation == chi_fork_generation())
		chi_run_abandon(s->run, left);
	chi_thread_pool_close(s);
	chi_run_free(s->run);
	chi_cross_free(s->cross);
	s->run = NULL;
	s->cross = NULL;
}

void chi_strategy_close_block(choir_strategy *s)
{
	close_runs(s, false);
	chi_overlap_workers_close(s);
	chi_communicator_close(&s->communicator);
	for (chi_more_communicators *g = s->more_communicators, *next; g != NULL; g = next) {
		next = g->next;
		chi_communicator_close(&g->communicator);
		chi_free(g);
	}
	for (int i = 0; s->exchange != NULL && i < s->devices; i++)
		chi_stream_free(s->exchange[i]);
	for (int i = 0; s->parameter_stream != NULL && i < s->parameters; i++)
		chi_stream_free(s->parameter_stream[i]);
	chi_free(s->exchange);
	chi_free(s->parameter_stream);
	chi_free(s->device);
	chi_free(s->first);
}

static choir_status check_concurrency(const choir_strategy *s)
{
	for (int i = 0; s->concurrency == CHI_LOCK_FREE && i < s->parameters; i++)
		if (!s->parameter[i]->host_memory)
			return choir_fail(CHOIR_INVALID,
					"strategy: updates without locks need "
					"host memory; parameter device %s has none",
					choir_device_name(s->parameter[i]));
	return CHOIR_OK;
}

static choir_status open_strategy(choir_strategy *s)
{
	s->owner = s;
	s->workers = s->options.workers > 0 ? s->options.workers : 1;
	s->concurrency = s->workers == 1				 ? CHI_EXCLUSIVE
			: s->options.locked_updates == CHOIR_OFF ? CHI_LOCK_FREE
													 : CHI_LOCKED;
	CHOIR_TRY(chi_layout_open(s));
	CHOIR_TRY(check_concurrency(s));
	CHOIR_TRY(chi_strategy_open_block(s));
	CHOIR_TRY(chi_strategy_open_precision(s));
	return chi_strategy_open_workers(s);
}

static choir_status open_or_abort(choir_strategy *s, const choir_strategy_options *o)
{
	choir_strategy_options all = { 0 };
	choir_status status = chi_options_take("strategy: the options'", &all, sizeof all, o);
	if (status == CHOIR_OK)
		status = chi_strategy_options_copy(s, &all);
	if (status == CHOIR_OK)
		status = open_strategy(s);
	if (status != CHOIR_OK && all.cluster != NULL)
		chi_cluster_give_up(all.cluster);
	return status;
}

choir_strategy *chi_strategy_new(
		const choir_strategy_table *table, const choir_strategy_options *o)
{
	choir_strategy *s = chi_alloc(sizeof *s);
	if (s == NULL)
		return NULL;
	s->table = filled(table);
	s->kind = s->table.name;
	snprintf(s->label, sizeof s->label, "\"%.24s\" #%u", s->kind, chi_atomic32_add(&made, 1) + 1);
	s->variables_end = &s->variables;
	s->fork_generation = chi_fork_generation();
	chi_mutex_init(&s->lock, CHI_RANK_STRATEGY, "strategy");
	if (open_or_abort(s, o) != CHOIR_OK) {
		choir_strategy_free(s);
		return NULL;
	}
	return s;
}

static void free_members(choir_strategy *s)
{
	while (s->stateful != NULL) {
		chi_stateful *next = s->stateful->next;
		s->stateful->free(s->stateful->self);
		chi_free(s->stateful);
		s->stateful = next;
	}
	while (s->variables != NULL) {
		choir_variable *next = s->variables->next;
		chi_variable_free(s->variables);
		s->variables = next;
	}
}

void choir_strategy_free(choir_strategy *s)
{
	if (s == NULL || s->is_default || (s->owner != NULL && s->owner != s))
		return;
	const bool left = chi_context_forget(s);
	for (int w = 1; s->by_worker != NULL && w < s->workers; w++)
		if (s->by_worker[w] != NULL)
			close_runs(s->by_worker[w], left);
	close_runs(s, left);
	chi_run_free(s->default_run);
	free_members(s);
	chi_strategy_close_workers(s);
	chi_strategy_close_block(s);
	if (s->self != NULL)
		s->table.close(s->self);
	chi_free(s->self);
	chi_free(s->parameter);
	chi_free(s->non_slot);
	chi_free(s->devices_in_use);
	chi_strategy_close_process_group(s);
	chi_free((void *) (uintptr_t) s->all_replicas.device);
	chi_free((void *) (uintptr_t) s->options.devices);
	chi_free((void *) (uintptr_t) s->options.cross_device_ops);
	chi_free((void *) (uintptr_t) s->options.parameter_devices);
	chi_mutex_destroy(&s->lock);
	chi_free(s);
}

static choir_status own(
		choir_strategy *s, void (*fn)(void *self), const chi_stateful_table *table, void *self)
{
	s = s->owner;
	chi_stateful *entry = chi_alloc(sizeof *entry);
	if (entry == NULL) {
		fn(self);
		return choir_error_status();
	}
	*entry = (chi_stateful){ .table = table, .free = fn, .self = self };
	chi_mutex_lock(&s->lock);
	entry->next = s->stateful;
	s->stateful = entry;
	chi_mutex_unlock(&s->lock);
	return CHOIR_OK;
}

choir_status chi_strategy_own(choir_strategy *s, void (*fn)(void *self), void *self)
{
	return own(s, fn, NULL, self);
}

choir_status chi_strategy_own_stateful(
		choir_strategy *s, const chi_stateful_table *table, void *self)
{
	return own(s, table->free, table, self);
}

void chi_strategy_free_owned(choir_strategy *s, const void *self)
{
	s = s->owner;
	chi_mutex_lock(&s->lock);
	chi_stateful **at = &s->stateful;
	while ((*at)->self != self)
		at = &(*at)->next;
	chi_stateful *entry = *at;
	*at = entry->next;
	chi_mutex_unlock(&s->lock);
	entry->free(entry->self);
	chi_free(entry);
}

chi_stream *chi_strategy_stream(const choir_strategy *s, int d, const choir_device *device)
{
	for (int i = 0; i < s->parameters; i++)
		if (s->parameter_stream[i] != NULL && chi_device_shares(s->parameter[i], device))
			return s->parameter_stream[i];
	return s->exchange[d];
}

static choir_status wait_for(chi_stream *const stream[], int from, int to, choir_status status)
{
	chi_error first;
	chi_error_save(&first);
	for (int i = from; i < to; i++) {
		const choir_status waited = stream[i] == NULL ? CHOIR_OK : chi_stream_wait(stream[i]);
		if (status == CHOIR_OK && waited != CHOIR_OK) {
			status = waited;
			chi_error_save(&first);
		}
	}
	chi_error_restore(&first);
	return status;
}

choir_status chi_strategy_wait(choir_strategy *s, int from, int to, choir_status status)
{
	return wait_for(s->exchange, from, to, status);
}

choir_status chi_strategy_wait_away(choir_strategy *s, choir_status status)
{
	return wait_for(s->parameter_stream, 0, s->parameters, status);
}

void chi_strategy_reset_collectives(choir_strategy *s)
{
	chi_communicator_abort(&s->communicator);
	chi_communicator_reset(&s->communicator);
	for (chi_more_communicators *g = s->more_communicators; g != NULL; g = g->next) {
		chi_communicator_abort(&g->communicator);
		chi_communicator_reset(&g->communicator);
	}
}

choir_status chi_strategy_check(const choir_strategy *s)
{
	if (s == NULL)
		return choir_fail(CHOIR_INVALID, "strategy: it is NULL");
	if (s->fork_generation != chi_fork_generation())
		return choir_fail(CHOIR_STATE,
				"strategy \"%s\" was made before a fork and its "
				"threads are in the parent; make a new one in the child",
				s->kind);
	return CHOIR_OK;
}

static const void *const builtin[] = { &chi_default_table, &chi_one_device_table,
	&chi_mirrored_table, &chi_central_storage_table, &chi_parameter_server_table,
	&chi_multi_worker_mirrored_table, NULL };
static choir_strategy_table registered[CHI_REGISTRY_MAX];
static chi_registry registry = { "strategy", sizeof registered[0], builtin, registered, { 0 } };

choir_status choir_register_strategy(const choir_strategy_table *given)
{
	return chi_registry_add(&registry, given) != NULL ? CHOIR_OK : choir_error_status();
}

choir_strategy *choir_strategy_new(const char *name, const choir_strategy_options *o)
{
	const choir_strategy_table *t = chi_registry_find(&registry, name == NULL ? "" : name);
	return t == NULL ? NULL : chi_strategy_new(t, o);
}

choir_strategy *choir_strategy_copy_new(const choir_strategy *s)
{
	if (s == NULL || s->is_default)
		return chi_fail_null(s == NULL ? CHOIR_INVALID : CHOIR_STATE, "strategy: %s",
				s == NULL ? "it is NULL" : "the default strategy cannot be copied");
	return chi_strategy_new(&s->table, &s->options);
}

int choir_strategy_workers(const choir_strategy *s)
{
	return s == NULL ? 0 : s->workers;
}

int choir_strategy_replicas(const choir_strategy *s)
{
	return s == NULL ? 0 : s->in_sync;
}

int choir_strategy_local_replicas(const choir_strategy *s)
{
	return s == NULL ? 0 : s->replicas;
}

int choir_strategy_first_replica_id(const choir_strategy *s)
{
	return s == NULL ? 0 : s->replica_offset;
}

const char *choir_strategy_name(const choir_strategy *s)
{
	return s == NULL ? "" : s->kind;
}

const char *choir_strategy_cross_device_ops(const choir_strategy *s)
{
	return s == NULL ? "" : s->communicator.table->name;
}

int choir_strategy_worker_devices(const choir_strategy *s)
{
	return s == NULL ? 0 : s->devices;
}

choir_device *choir_strategy_worker_device(const choir_strategy *s, int index)
{
	return s == NULL || index < 0 || index >= s->devices ? NULL : s->device[index];
}

int choir_strategy_worker_device_index(const choir_strategy *s, const choir_device *d)
{
	for (int i = 0; s != NULL && i < s->devices; i++)
		if (s->device[i] == d)
			return i;
	return CHOIR_NONE;
}

int choir_strategy_parameter_devices(const choir_strategy *s)
{
	return s == NULL ? 0 : s->parameters;
}

choir_device *choir_strategy_parameter_device(const choir_strategy *s, int index)
{
	return s == NULL || index < 0 || index >= s->parameters ? NULL : s->parameter[index];
}

bool choir_strategy_is_chief(const choir_strategy *s)
{
	return s != NULL && (s->options.cluster == NULL || choir_cluster_is_chief(s->options.cluster));
}

choir_cluster *choir_strategy_cluster(const choir_strategy *s)
{
	return s == NULL ? NULL : s->options.cluster;
}
