// Making and freeing strategies: which devices there are, which replicas each of them carries, and
// everything that is kept from run to run.
#include "strategy/strategy.h"

#include "base/alloc.h"
#include "base/options.h"
#include "base/processors.h"
#include "base/thread.h"
#include "strategy/replica/merge_call.h"
#include "strategy/run/run.h"
#include "strategy/gradients/overlap_workers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static chi_atomic32 made; // strategies of the process

enum { MAX_DEVICES = 1024, MAX_REPLICAS = 1 << 20 };

static choir_status check_workers(const choir_strategy_table *t, const choir_strategy_options *o)
{
	if ((o->workers != 0 || o->locked_updates != CHOIR_DEFAULT) &&
			!(t->features & CHOIR_FEATURE_WORKERS))
		return choir_fail(CHOIR_INVALID,
				"strategy: \"%s\" has no workers of its own, so no "
				".workers and no .locked_updates",
				t->name);
	if (o->workers < 0 || o->workers > MAX_DEVICES)
		return choir_fail(CHOIR_INVALID, "strategy: %d workers: 1 to %d are possible", o->workers,
				MAX_DEVICES);
	if (o->replicas > 0 && o->replicas < o->workers)
		return choir_fail(CHOIR_INVALID, "strategy: %d replica%s for %d workers: each needs one",
				o->replicas, o->replicas == 1 ? "" : "s", o->workers);
	return CHOIR_OK;
}

static choir_status check_cluster(const choir_strategy_table *t, const choir_strategy_options *o)
{
	if (o->cluster == NULL)
		return CHOIR_OK;
	if (!(t->features & CHOIR_FEATURE_CLUSTER))
		return choir_fail(CHOIR_INVALID,
				"strategy: \"%s\" is of one process, so no .cluster: "
				"\"multi_worker_mirrored\" has one",
				t->name);
	const int workers = choir_cluster_workers(o->cluster);
	if (o->replicas > 0 && o->replicas < workers)
		return choir_fail(CHOIR_INVALID,
				"strategy: %d replica%s for %d workers of the cluster: each needs one",
				o->replicas, o->replicas == 1 ? "" : "s", workers);
	return CHOIR_OK;
}

static choir_status check_partition(const choir_strategy_table *t, const choir_strategy_options *o)
{
	const bool partitioned = o->partition != CHOIR_PARTITION_NONE;
	if ((partitioned || o->partition_size != 0 || o->max_shards != 0) &&
			!(t->features & CHOIR_FEATURE_SHARDS))
		return choir_fail(CHOIR_INVALID,
				"strategy: \"%s\" has no shards, so no .partition, no "
				".partition_size and no .max_shards",
				t->name);
	if ((unsigned) o->partition > CHOIR_PARTITION_MAX_SIZE)
		return choir_fail(CHOIR_INVALID,
				"strategy: partition %d: NONE, FIXED, MIN_SIZE or "
				"MAX_SIZE is needed",
				(int) o->partition);
	if (o->max_shards < 0 || (o->max_shards > 0 && !partitioned) ||
			(o->max_shards == 0 && o->partition == CHOIR_PARTITION_FIXED))
		return choir_fail(CHOIR_INVALID,
				"strategy: .max_shards is %d: FIXED needs 1 or more, "
				"MIN_SIZE and MAX_SIZE 0 or more, without .partition there are none",
				o->max_shards);
	const bool by_size = partitioned && o->partition != CHOIR_PARTITION_FIXED;
	if (o->partition_size < 0 || (o->partition_size > 0 && !by_size) ||
			(o->partition_size == 0 && o->partition == CHOIR_PARTITION_MAX_SIZE))
		return choir_fail(CHOIR_INVALID,
				"strategy: .partition_size is %lld bytes: MAX_SIZE needs "
				"1 or more, MIN_SIZE 0 or more, others have none",
				(long long) o->partition_size);
	return CHOIR_OK;
}

static choir_status check_options(const choir_strategy_table *t, const choir_strategy_options *o)
{
	if (o->replicas < 0 || o->replicas > MAX_REPLICAS)
		return choir_fail(CHOIR_INVALID, "strategy: %d replicas: 1 to %d are possible",
				o->replicas, MAX_REPLICAS);
	if (t->most_replicas > 0 && o->replicas > t->most_replicas)
		return choir_fail(CHOIR_INVALID, "strategy: \"%s\" has %d replica, not %d", t->name,
				t->most_replicas, o->replicas);
	if (!(o->timeout >= 0) && o->timeout != CHOIR_NONE)
		return choir_fail(CHOIR_INVALID,
				"strategy: a timeout of %g seconds: 0 or more, or CHOIR_NONE, is needed",
				o->timeout);
	if (o->cores_per_device < 0)
		return choir_fail(CHOIR_INVALID, "strategy: %d cores a device: 0 or more are needed",
				o->cores_per_device);
	if (o->parameter_devices != NULL && !(t->features & CHOIR_FEATURE_PARAMETER_DEVICES))
		return choir_fail(CHOIR_INVALID,
				"strategy: \"%s\" has no parameter devices of its own, "
				"so not \"%s\"",
				t->name, o->parameter_devices);
	if (o->compare_steps < CHOIR_NONE)
		return choir_fail(CHOIR_INVALID, "strategy: .compare_steps is %lld: 0, CHOIR_NONE or more",
				(long long) o->compare_steps);
	if ((unsigned) o->overlap > CHOIR_OFF)
		return choir_fail(CHOIR_INVALID, "strategy: .overlap is %d: CHOIR_ON or CHOIR_OFF",
				(int) o->overlap);
	CHOIR_TRY(check_workers(t, o));
	CHOIR_TRY(check_cluster(t, o));
	return check_partition(t, o);
}

// The devices named, or those of CHOIR_DEVICES, or one CPU for each replica up to the cores.
// CHOIR_DEVICES may name more than a strategy can use; it takes the first.
static choir_status find_devices(choir_strategy *s, choir_device **devices, int *count)
{
	const char *names = s->options.devices;
	if (names == NULL || names[0] == '\0')
		names = getenv("CHOIR_DEVICES");
	if (names != NULL && names[0] != '\0')
		return chi_device_list(names, MAX_DEVICES, devices, count);
	const int cores = chi_processor_count();
	const int all = s->options.replicas > 0 ? s->options.replicas : s->workers;
	const choir_cluster *c = s->options.cluster;
	const int want = c == NULL || s->options.replicas == 0
			? all
			: (int) chi_share_of(all, choir_cluster_workers(c), choir_cluster_worker(c));
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
static choir_status share_out_replicas(choir_strategy *s, choir_device *const *devices, int count)
{
	const int min = count > s->workers ? count : s->workers;
	int all = s->options.replicas > 0 ? s->options.replicas : min;
	CHOIR_TRY(chi_strategy_open_process_group(s, &all));
	const int used = count < all ? count : all;
	choir_device **of_replica = chi_alloc_array((size_t) all, sizeof(choir_device *));
	s->all_replicas = (chi_layout){ all, of_replica };
	s->devices_in_use = chi_alloc_array((size_t) used, sizeof *s->devices_in_use);
	if (of_replica == NULL || s->devices_in_use == NULL)
		return choir_error_status();
	s->all_host = true;
	for (int i = 0, r = 0; i < used; i++) {
		s->devices_in_use[i] = devices[i];
		s->all_host = s->all_host && devices[i]->host_memory;
		for (int end = r + (int) chi_share_of(all, used, i); r < end; r++)
			of_replica[r] = devices[i];
	}
	return CHOIR_OK;
}

// The devices of a worker: those of its block of replicas.
static choir_status share_out_devices(choir_strategy *s)
{
	const choir_strategy *owner = s->owner;
	s->replicas = (int) chi_share_of(owner->all_replicas.replicas, owner->workers, s->worker);
	s->replica_device = owner->all_replicas.device + s->first_replica;
	s->layout = (chi_layout){ s->replicas, s->replica_device };
	const size_t max = (size_t) s->replicas;
	s->device = chi_alloc_array(max, sizeof *s->device);
	s->first = chi_alloc_array(max + 1, sizeof *s->first);
	if (s->device == NULL || s->first == NULL)
		return choir_error_status();
	for (int r = 0; r < s->replicas; r++) {
		if (r == 0 || s->replica_device[r] != s->replica_device[r - 1]) {
			s->device[s->devices] = s->replica_device[r];
			s->first[s->devices++] = r;
		}
	}
	s->first[s->devices] = s->replicas;
	s->replica_offset =
			s->process_group == NULL ? 0 : chi_process_group_first_replica(s->process_group);
	s->in_sync = s->process_group == NULL ? s->replicas : s->process_group->replicas;
	return CHOIR_OK;
}

// The way that communication names becomes cross_device_ops, which is another word for it.
static choir_status copy_communication(choir_strategy *s, choir_strategy_options *o)
{
	CHOIR_TRY(chi_communication_check(o->communication, &s->communication));
	const char *algorithm = s->communication.implementation;
	if (algorithm != NULL && o->cross_device_ops != NULL)
		return choir_fail(CHOIR_INVALID,
				"strategy: cross_device_ops \"%s\" and the "
				"communication's implementation \"%s\" are two words for one thing: give one",
				o->cross_device_ops, algorithm);
	if (algorithm != NULL && strcmp(algorithm, "auto") != 0)
		o->cross_device_ops = algorithm;
	s->communication.implementation = NULL;
	o->communication = o->communication == NULL ? NULL : &s->communication;
	return CHOIR_OK;
}

// *text becomes a copy of it.
static choir_status copy_text(const char **text)
{
	if (*text != NULL)
		*text = chi_strdup(*text);
	return *text == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_status copy_options(choir_strategy *s, const choir_strategy_options *o)
{
	choir_strategy_options all = *o;
	CHOIR_TRY(check_options(&s->table, &all));
	if (s->table.most_replicas == 1)
		all.replicas = 1;
	CHOIR_TRY(copy_communication(s, &all));
	s->options = all;
	s->timeout = all.timeout == 0 ? 60 : all.timeout;
	const char **texts[] = { &s->options.devices, &s->options.cross_device_ops,
		&s->options.parameter_devices };
	choir_status status = CHOIR_OK;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		if (*texts[i] == NULL)
			continue;
		else if (status != CHOIR_OK || (status = copy_text(texts[i])) != CHOIR_OK)
			*texts[i] = NULL; // the caller's is not ours to free
	return status;
}

// The devices that a slot of the table gives, in memory of their own. CHOIR_NONE: a failure.
static int ask_devices(choir_strategy *s, int (*slot)(void *, int, choir_device **),
		choir_device **capacity, choir_device ***devices)
{
	const int n = slot(s->self, MAX_DEVICES, capacity);
	if (n == CHOIR_NONE)
		return CHOIR_NONE;
	if (n < 1 || n > MAX_DEVICES) {
		choir_fail(CHOIR_INVALID,
				"strategy: \"%s\" has its variables on %d devices: 1 to %d are "
				"possible",
				s->kind, n, MAX_DEVICES);
		return CHOIR_NONE;
	}
	*devices = chi_alloc_array((size_t) n, sizeof **devices);
	if (*devices == NULL)
		return CHOIR_NONE;
	memcpy(*devices, capacity, (size_t) n * sizeof **devices);
	return n;
}

// What the table says of where variables lie.
static choir_status open_table(choir_strategy *s, choir_device **capacity)
{
	s->self = chi_alloc(s->table.self_size + 1);
	if (s->self == NULL)
		return choir_error_status();
	const int all = s->all_replicas.replicas;
	int used = 1;
	for (int r = 1; r < all; r++)
		used += s->all_replicas.device[r] != s->all_replicas.device[r - 1];
	CHOIR_TRY(s->table.open(s->self, &s->options, used, s->devices_in_use));
	int n = ask_devices(s, s->table.parameter_devices, capacity, &s->parameter);
	if (n == CHOIR_NONE)
		return choir_error_status();
	s->parameters = n;
	n = ask_devices(s, s->table.non_slot_devices, capacity, &s->non_slot);
	if (n == CHOIR_NONE)
		return choir_error_status();
	for (int i = 0; i < n; i++) { // one for each separate memory
		int k = 0;
		while (k < s->non_slots && !chi_device_shares(s->non_slot[k], s->non_slot[i]))
			k++;
		if (k == s->non_slots)
			s->non_slot[s->non_slots++] = s->non_slot[i];
	}
	return CHOIR_OK;
}

static choir_status open_devices(choir_strategy *s, choir_device **devices)
{
	int count = 0;
	CHOIR_TRY(find_devices(s, devices, &count));
	if (s->table.most_replicas == 1 && count > 1 && s->options.devices != NULL)
		return choir_fail(CHOIR_INVALID, "strategy: \"%s\" has one device, not \"%s\"", s->kind,
				s->options.devices);
	CHOIR_TRY(share_out_replicas(s, devices, count));
	return open_table(s, devices);
}

static choir_status open_exchange(choir_strategy *s)
{
	s->exchange = chi_alloc_array((size_t) s->devices, sizeof *s->exchange);
	if (s->exchange == NULL)
		return choir_error_status();
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

// Streams of the parameter devices where no device has one.
static choir_status open_parameter_streams(choir_strategy *s)
{
	s->parameter_stream = chi_alloc_array((size_t) s->parameters, sizeof *s->parameter_stream);
	if (s->parameter_stream == NULL)
		return choir_error_status();
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
	CHOIR_TRY(share_out_devices(s));
	CHOIR_TRY(open_parameter_streams(s));
	CHOIR_TRY(open_exchange(s));
	CHOIR_TRY(chi_overlap_workers_open(s));
	CHOIR_TRY(chi_thread_pool_open(s));
	s->run = chi_run_new(s);
	return s->run == NULL ? choir_error_status() : CHOIR_OK;
}

// Its threads and what runs have: they look at variables and updates, which go next.
// left: this thread has left a function that s called.
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

// Which memory can be shared without a lock.
static choir_status check_concurrency(const choir_strategy *s)
{
	for (int i = 0; s->concurrency == CHI_LOCK_FREE && i < s->parameters; i++)
		if (!s->parameter[i]->host_memory)
			return choir_fail(CHOIR_INVALID,
					"strategy: updates without locks need host memory, "
					"which parameter device %s has not",
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
	choir_device **devices = chi_alloc_array(MAX_DEVICES, sizeof *devices);
	if (devices == NULL)
		return choir_error_status();
	const choir_status status = open_devices(s, devices);
	chi_free(devices);
	CHOIR_TRY(status);
	CHOIR_TRY(check_concurrency(s));
	CHOIR_TRY(chi_strategy_open_block(s));
	return chi_strategy_open_workers(s);
}

// A worker of several that cannot make its strategy says so to the others.
static choir_status open_or_abort(choir_strategy *s, const choir_strategy_options *o)
{
	choir_strategy_options all = { 0 };
	choir_status status = chi_options_take("strategy: the options'", &all, sizeof all, o);
	if (status == CHOIR_OK)
		status = copy_options(s, &all);
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
	s->table = chi_strategy_table_filled(table);
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
	chi_stateful *item = chi_alloc(sizeof *item);
	if (item == NULL) {
		fn(self);
		return choir_error_status();
	}
	*item = (chi_stateful){ .table = table, .free = fn, .self = self };
	chi_mutex_lock(&s->lock);
	item->next = s->stateful;
	s->stateful = item;
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

int chi_strategy_device_index(const choir_strategy *s, int replica)
{
	int d = 0;
	while (replica >= s->first[d + 1])
		d++;
	return d;
}

chi_stream *chi_strategy_stream(const choir_strategy *s, int d, const choir_device *device)
{
	for (int i = 0; i < s->parameters; i++)
		if (s->parameter_stream[i] != NULL && chi_device_shares(s->parameter[i], device))
			return s->parameter_stream[i];
	return s->exchange[d];
}

// Streams from .. to - 1 that are there.
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
				"strategy \"%s\" was made before a fork and its threads are "
				"in the parent: make a new one in the child",
				s->kind);
	return CHOIR_OK;
}
