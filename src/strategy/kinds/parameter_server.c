// Parameter server: variables go round robin to parameter devices; workers, each with its own
// replicas and its own loop, read copies and update them where they lie.
#include "strategy/strategy.h"

#include "base/alloc.h"

enum { MAX = 256 };

typedef struct {
	int devices;
	choir_device *device[MAX];
	chi_atomic32 placed; // variables so far
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

// What belongs to an optimizer as a whole lies together.
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
	.place = place,
};

choir_strategy *choir_parameter_server_strategy_new(const choir_strategy_options *o)
{
	return choir_strategy_new("parameter_server", o);
}
