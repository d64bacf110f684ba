// Central storage: one copy of every variable, on one device.
#include "strategy/kinds/kinds.h"

typedef struct {
	choir_device *device;
} central;

static choir_status open_central(
		void *self, const choir_strategy_options *options, int n, choir_device *const devices[])
{
	central *c = self;
	const char *names = options->parameter_devices;
	if (names == NULL || names[0] == '\0') {
		c->device = n == 1 ? devices[0] : choir_device_find("cpu:0");
		return chi_made(c->device);
	}
	choir_device *found[2];
	int count;
	CHOIR_TRY(chi_device_list(names, 2, found, &count));
	c->device = found[0];
	return count == 1 ? CHOIR_OK
					  : choir_fail(CHOIR_INVALID,
								"strategy: \"central_storage\" needs one "
								"parameter device; .parameter_devices is \"%s\"",
								names);
}

static int device(void *self, int capacity, choir_device *devices[])
{
	(void) capacity;
	devices[0] = ((const central *) self)->device;
	return 1;
}

static int place(void *self, const choir_new_variable *v, int capacity, choir_device *devices[])
{
	(void) v;
	return device(self, capacity, devices);
}

const choir_strategy_table chi_central_storage_table = {
	.size = sizeof(choir_strategy_table),
	.version = CHOIR_TABLE_VERSION,
	.name = "central_storage",
	.self_size = sizeof(central),
	.features = CHOIR_FEATURE_PARAMETER_DEVICES,
	.open = open_central,
	.parameter_devices = device,
	.non_slot_devices = device,
	.place_variable = place,
};

choir_strategy *choir_central_storage_strategy_new(const choir_strategy_options *o)
{
	return choir_strategy_new("central_storage", o);
}
