// Each variable has a copy on every device with replicas: mirrored, multi-worker mirrored,
// one-device and the default.
#include "strategy/kinds/kinds.h"

typedef struct {
	int devices;
	choir_device *const *device;
} mirrored;

static choir_status open_mirrored(
		void *self, const choir_strategy_options *options, int n, choir_device *const devices[])
{
	(void) options;
	*(mirrored *) self = (mirrored){ n, devices };
	return CHOIR_OK;
}

static int all_devices(void *self, int capacity, choir_device *devices[])
{
	const mirrored *m = self;
	for (int i = 0; i < m->devices && i < capacity; i++)
		devices[i] = m->device[i];
	return m->devices;
}

static int place(void *self, const choir_new_variable *v, int capacity, choir_device *devices[])
{
	(void) v;
	return all_devices(self, capacity, devices);
}

#define MIRRORED(kind, max, has) \
	{ \
		.size = sizeof(choir_strategy_table), .version = CHOIR_TABLE_VERSION, .name = kind, \
		.self_size = sizeof(mirrored), .max_replicas = max, .features = has, \
		.open = open_mirrored, .parameter_devices = all_devices, .non_slot_devices = all_devices, \
		.place_variable = place, \
	}
const choir_strategy_table chi_mirrored_table = MIRRORED("mirrored", 0, 0);
const choir_strategy_table chi_one_device_table = MIRRORED("one_device", 1, 0);
const choir_strategy_table chi_default_table = MIRRORED("default", 1, 0);
const choir_strategy_table chi_multi_worker_mirrored_table =
		MIRRORED("multi_worker_mirrored", 0, CHOIR_FEATURE_CLUSTER);

choir_strategy *choir_mirrored_strategy_new(const choir_strategy_options *o)
{
	return choir_strategy_new("mirrored", o);
}

choir_strategy *choir_multi_worker_mirrored_strategy_new(const choir_strategy_options *o)
{
	return choir_strategy_new("multi_worker_mirrored", o);
}

choir_strategy *choir_one_device_strategy_new(const choir_strategy_options *o)
{
	return choir_strategy_new("one_device", o);
}
