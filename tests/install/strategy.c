// What somebody else makes, against the installed library: a strategy, with variables in turn on
// one of the devices that carry replicas, and cross-device operations (tests/collective/toy.c),
// with which mirrored must give the same bits. They must pass the suite of strategies, whose files
// need nothing but public headers. And memory of a device of one's own (tests/device/toy.c).
#include "suite.h"

#include "collective/toy.h"
#include "device/toy.h"

#include <choir/extend.h>

#include <stdatomic.h>
#include <stdio.h>

typedef struct {
	int n;
	choir_device *const *devices;
	atomic_uint made;
} in_turn;

static choir_status open_in_turn(
		void *self, const choir_strategy_options *options, int n, choir_device *const devices[])
{
	in_turn *s = self;
	(void) options;
	s->n = n;
	s->devices = devices;
	return CHOIR_OK;
}

static int all_devices(void *self, int capacity, choir_device *devices[])
{
	const in_turn *s = self;
	for (int i = 0; i < s->n && i < capacity; i++)
		devices[i] = s->devices[i];
	return s->n;
}

static int next_device(
		void *self, const choir_new_variable *v, int capacity, choir_device *devices[])
{
	in_turn *s = self;
	(void) v;
	(void) capacity;
	devices[0] = s->devices[atomic_fetch_add(&s->made, 1) % (unsigned) s->n];
	return 1;
}

static int one(void)
{
	return 1;
}

static bool keeps_values(void)
{
	const choir_device_table table = toy_table("toy", one);
	float there[] = { 1, 2, 3 }, back[3] = { 0 };
	if (choir_register_device(&table) != CHOIR_OK)
		return false;
	choir_frame *toy = choir_frame_new(choir_device_find("toy")), *host = choir_frame_new(NULL);
	choir_tensor *t = choir_constant(toy, CHOIR_F32, CHOIR_SHAPE(3), there);
	const bool moved = choir_tensor_data(t) == NULL && // the host may not look
			choir_tensor_to_host(choir_copy(t, host), back, sizeof back) == CHOIR_OK;
	choir_frame_free(host);
	choir_frame_free(toy);
	return moved && back[0] == 1 && back[2] == 3;
}

int main(void)
{
	const choir_strategy_table table = { .size = sizeof table,
		.version = CHOIR_TABLE_VERSION,
		.name = "in_turn",
		.self_size = sizeof(in_turn),
		.open = open_in_turn,
		.parameter_devices = all_devices,
		.place_variable = next_device };
	const strategy_subject in_turn = { .kind = "in_turn", .host_only = true };
	const choir_strategy_options by_toy = { .size = sizeof by_toy, .cross_device_ops = "toy" };
	const strategy_subject mirrored = {
		.kind = "mirrored", .options = &by_toy, .host_only = true
	};
	if (!keeps_values() || choir_register_strategy(&table) != CHOIR_OK ||
			choir_register_cross_device_ops(&toy_ops) != CHOIR_OK) {
		printf("%s\n", choir_error());
		return 1;
	}
	return strategy_suite_run(&in_turn) + strategy_suite_run(&mirrored);
}
