// Variables belong to the first worker, the program's strategy. Each other worker is a strategy on
// a new thread, with its own replicas and devices.
#include "strategy/kinds/kinds.h"

#include "base/alloc.h"

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
	return chi_made(s->device[0]);
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
	CHOIR_TRY(chi_made(owner->by_worker));
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
