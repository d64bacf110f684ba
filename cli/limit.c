// The limit of a training step: the arithmetic of its products at the speed of a loop of fused
// multiply-adds, and after it the bytes that all other operations read and write at the speed of
// a copy between memory that no cache holds; each device does its part of both. Both loops run on
// all devices at the same time, as the step does, since cores share their memory and the power
// that sets their clock.
#include "limit.h"

#include "machine.h"

#include <stdlib.h>

enum { COPIED = 256 << 20 }; // bytes, of all devices together

typedef struct {
	size_t bytes;
	double *flops, *seconds; // of each replica
} measured;

static choir_status measure(choir_replica *r, void *user)
{
	const measured *m = user;
	m->flops[choir_replica_id(r)] = machine_flops();
	m->seconds[choir_replica_id(r)] = machine_copy(m->bytes);
	return CHOIR_OK;
}

// The numbers that an update reads and writes: a sum of gradients of each device, and the weight
// and its slots both ways.
static double update_numbers(int devices, int slots)
{
	return devices + 2 * (1 + slots);
}

choir_status limit_find(
		const model_plan *plan, choir_strategy *s, int64_t batch, int slots, limit *out)
{
	const int replicas = choir_strategy_replicas(s), devices = choir_strategy_worker_devices(s);
	const model_work work = model_plan_work(plan);
	double *each = calloc(2 * (size_t) replicas, sizeof *each);
	measured m = { .bytes = COPIED / (size_t) devices, .flops = each };
	*out = (limit){ .seconds = 0 };
	if (each == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "no memory for what %d replicas measure", replicas);
	m.seconds = each + replicas;
	const choir_status status = choir_strategy_run(s, measure, &m, NULL, NULL);
	for (int i = 0; i < replicas; i++) {
		out->flops += m.flops[i] / replicas;
		out->copied += m.seconds[i] > 0 ? (double) m.bytes / m.seconds[i] / replicas : 0;
	}
	const double bytes = sizeof(float) *
			((double) batch * work.numbers +
					model_plan_weights(plan) * update_numbers(devices, slots));
	if (out->flops > 0 && out->copied > 0)
		out->seconds = ((double) batch * work.flops / out->flops + bytes / out->copied) / devices;
	free(each);
	return status;
}
