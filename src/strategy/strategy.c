// Making and freeing strategies: which devices there are, which replicas each of them carries, and
// everything that is kept from run to run.
#include "strategy/strategy.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "strategy/merge/merge.h"
#include "strategy/run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICES = 1024, MOST_REPLICAS = 1 << 20 };

static choir_status check_options(const char *kind, const choir_strategy_options *o, int most)
{
	if (o->replicas < 0 || o->replicas > MOST_REPLICAS)
		return choir_fail(CHOIR_INVALID, "strategy: %d replicas: 1 to %d are possible",
				o->replicas, MOST_REPLICAS);
	if (o->replicas > most)
		return choir_fail(CHOIR_INVALID, "strategy: \"%s\" has %d replica, not %d", kind, most,
				o->replicas);
	if (!(o->timeout >= 0) && o->timeout != CHOIR_NONE)
		return choir_fail(CHOIR_INVALID, "strategy: a timeout of %g seconds", o->timeout);
	if (o->cores_per_device < 0)
		return choir_fail(CHOIR_INVALID, "strategy: %d cores a device", o->cores_per_device);
	return CHOIR_OK;
}

// The devices named, or those of CHOIR_DEVICES, or one CPU for each replica up to the cores.
// CHOIR_DEVICES may name more than a strategy can use; it takes the first.
static choir_status find_devices(choir_strategy *s, choir_device **devices, int *count)
{
	const char *names = s->options.devices;
	if (names == NULL || names[0] == '\0')
		names = getenv("CHOIR_DEVICES");
	if (names != NULL && names[0] != '\0')
		return chi_device_list(names, MOST_DEVICES, devices, count);
	const int cores = chi_cpu_count();
	const int want = s->options.replicas > 0 ? s->options.replicas : 1;
	*count = want < cores ? want : cores;
	for (int i = 0; i < *count; i++) {
		char name[16] = "cpu:";
		snprintf(name + 4, sizeof name - 4, "%d", i);
		if ((devices[i] = choir_device_find(name)) == NULL)
			return choir_error_status();
	}
	return CHOIR_OK;
}

// Replicas in contiguous blocks: the first R mod P devices get one more; surplus devices idle.
static choir_status deal_replicas(choir_strategy *s, choir_device *const *devices, int count)
{
	s->replicas = s->options.replicas > 0 ? s->options.replicas : count;
	s->lanes = count < s->replicas ? count : s->replicas;
	s->device = chi_alloc_array((size_t) s->lanes, sizeof *s->device);
	s->first = chi_alloc_array((size_t) s->lanes + 1, sizeof *s->first);
	s->replica_device = chi_alloc_array((size_t) s->replicas, sizeof *s->replica_device);
	if (s->device == NULL || s->first == NULL || s->replica_device == NULL)
		return choir_error_status();
	s->all_host = true;
	for (int i = 0; i < s->lanes; i++) {
		s->device[i] = devices[i];
		s->all_host = s->all_host && devices[i]->host_memory;
		s->first[i + 1] = s->first[i] + (int) chi_share_of(s->replicas, s->lanes, i);
		for (int r = s->first[i]; r < s->first[i + 1]; r++)
			s->replica_device[r] = devices[i];
	}
	s->layout = (chi_layout){ s->replicas, s->replica_device };
	return CHOIR_OK;
}

static choir_status copy_options(choir_strategy *s, const choir_strategy_options *o, int most)
{
	choir_strategy_options all = { .size = sizeof all };
	if (o != NULL && (o->size < sizeof(size_t) || o->size > sizeof all))
		return choir_fail(CHOIR_INVALID,
				"strategy: the options' size is %zu, not %zu: set it with "
				"CHOIR_OPTIONS",
				o->size, sizeof all);
	if (o != NULL)
		memcpy(&all, o, o->size);
	all.size = sizeof all;
	CHOIR_TRY(check_options(s->kind, &all, most));
	if (most == 1)
		all.replicas = 1;
	const char *devices = all.devices, *ops = all.cross_device_ops;
	all.devices = all.cross_device_ops = NULL;
	s->options = all;
	if ((devices != NULL && (s->options.devices = chi_strdup(devices)) == NULL) ||
			(ops != NULL && (s->options.cross_device_ops = chi_strdup(ops)) == NULL))
		return choir_error_status();
	s->timeout = s->options.timeout == 0 ? 60 : s->options.timeout;
	return CHOIR_OK;
}

static choir_status open_exchange(choir_strategy *s)
{
	s->exchange = chi_alloc_array((size_t) s->lanes, sizeof *s->exchange);
	if (s->exchange == NULL)
		return choir_error_status();
	for (int i = 0; i < s->lanes; i++)
		if ((s->exchange[i] = chi_stream_new(s->device[i])) == NULL)
			return choir_error_status();
	return chi_group_open(&s->group, s->lanes, s->replicas, s->device,
			s->options.cross_device_ops);
}

static choir_status open_strategy(choir_strategy *s, int most_replicas)
{
	choir_device **devices = chi_alloc_array(MOST_DEVICES, sizeof *devices);
	if (devices == NULL)
		return choir_error_status();
	int count = 0;
	choir_status status = find_devices(s, devices, &count);
	if (status == CHOIR_OK && most_replicas == 1 && count > 1 && s->options.devices != NULL)
		status = choir_fail(CHOIR_INVALID, "strategy: \"%s\" has one device, not \"%s\"", s->kind,
				s->options.devices);
	if (status == CHOIR_OK)
		status = deal_replicas(s, devices, count);
	chi_free(devices);
	CHOIR_TRY(status);
	CHOIR_TRY(open_exchange(s));
	CHOIR_TRY(chi_crew_open(s));
	s->run = chi_run_new(s);
	return s->run == NULL ? choir_error_status() : CHOIR_OK;
}

choir_strategy *chi_strategy_new(
		const char *kind, const choir_strategy_options *o, int most_replicas)
{
	choir_strategy *s = chi_alloc(sizeof *s);
	if (s == NULL)
		return NULL;
	s->kind = kind;
	s->variables_end = &s->variables;
	s->fork_generation = chi_fork_generation();
	chi_mutex_init(&s->lock, CHI_RANK_STRATEGY, "strategy");
	if (copy_options(s, o, most_replicas) != CHOIR_OK ||
			open_strategy(s, most_replicas) != CHOIR_OK) {
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
	if (s == NULL || s->is_default)
		return;
	chi_context_forget(s);
	chi_crew_close(s);
	chi_run_free(s->run);
	chi_run_free(s->standing);
	chi_cross_free(s->cross);
	free_members(s);
	chi_group_close(&s->group);
	for (int i = 0; s->exchange != NULL && i < s->lanes; i++)
		chi_stream_free(s->exchange[i]);
	chi_free(s->exchange);
	chi_free(s->device);
	chi_free(s->first);
	chi_free(s->replica_device);
	chi_free((void *) (uintptr_t) s->options.devices);
	chi_free((void *) (uintptr_t) s->options.cross_device_ops);
	chi_mutex_destroy(&s->lock);
	chi_free(s);
}

choir_status chi_strategy_own(choir_strategy *s, void (*fn)(void *self), void *self)
{
	chi_stateful *item = chi_alloc(sizeof *item);
	if (item == NULL) {
		fn(self);
		return choir_error_status();
	}
	item->free = fn;
	item->self = self;
	chi_mutex_lock(&s->lock);
	item->next = s->stateful;
	s->stateful = item;
	chi_mutex_unlock(&s->lock);
	return CHOIR_OK;
}

int chi_strategy_lane(const choir_strategy *s, int replica)
{
	int lane = 0;
	while (replica >= s->first[lane + 1])
		lane++;
	return lane;
}

choir_status chi_strategy_wait(choir_strategy *s, int from, int to, choir_status status)
{
	chi_error first;
	chi_error_save(&first);
	for (int lane = from; lane < to; lane++) {
		const choir_status waited = chi_stream_wait(s->exchange[lane]);
		if (status == CHOIR_OK && waited != CHOIR_OK) {
			status = waited;
			chi_error_save(&first);
		}
	}
	chi_error_restore(&first);
	return status;
}

void chi_strategy_start_over(choir_strategy *s)
{
	chi_group_abort(&s->group);
	chi_group_reset(&s->group);
}

choir_status chi_strategy_check(const choir_strategy *s)
{
	if (s == NULL)
		return choir_fail(CHOIR_INVALID, "strategy: it is NULL");
	if (s->fork_generation != chi_fork_generation())
		return choir_fail(CHOIR_STATE,
				"strategy \"%s\" was made before a fork and its threads are "
				"in the parent: make a new one in the child",
				s->kind);
	return CHOIR_OK;
}
