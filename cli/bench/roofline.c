// The roofline of a step: its products as fused multiply-adds, plus the bytes of all other
// operations as a copy outside of caches, divided among the devices. All devices measure at once,
// since they share memory bandwidth and power.
#include "bench/roofline.h"

#include "bench/peak_rates.h"

#include <stdlib.h>

enum { COPIED = 256 << 20 }; // bytes of all devices
static const double COPYING = 0.3; // seconds

typedef struct {
	size_t bytes;
	bool bf16;
	double *flops, *seconds; // per replica
} measured;

static choir_status measure(choir_replica *r, void *user)
{
	const measured *m = user;
	m->flops[choir_replica_id(r)] = m->bf16 ? machine_flops_bf16() : machine_flops();
	m->seconds[choir_replica_id(r)] = machine_copy(m->bytes, COPYING);
	return CHOIR_OK;
}

// number: bytes of a number between products
typedef struct {
	double batch, weights, number;
	int slots, devices;
} step_size;

static void divide(limit *l, const model_work *work, const step_size *s)
{
	const double batch = s->batch, weights = s->weights;
	const int devices = s->devices;
	const double part[LIMIT_KINDS] = { // operations first, then bytes
		[LIMIT_PRODUCTS] = batch * work->products,
		[LIMIT_CONVOLUTIONS] = batch * work->convolutions,
		[LIMIT_ATTENTION] = batch * work->attention,
		[LIMIT_OTHERS] = s->number * batch * work->numbers,
		[LIMIT_REDUCE] = sizeof(float) * weights * devices,
		[LIMIT_UPDATE] = sizeof(float) * weights * 2 * (1 + s->slots)
	};
	for (int kind = 0; kind < LIMIT_KINDS; kind++) {
		*(kind < LIMIT_OTHERS ? &l->operations : &l->moved) += part[kind];
		if (l->flops > 0 && l->copied > 0)
			l->part[kind] = part[kind] / (kind < LIMIT_OTHERS ? l->flops : l->copied) / devices;
		l->seconds += l->part[kind];
	}
}

choir_status limit_find(
		const model_plan *plan, choir_strategy *s, int64_t batch, int slots, limit *out)
{
	const int replicas = choir_strategy_replicas(s), devices = choir_strategy_worker_devices(s);
	const model_work work = model_plan_work(plan);
	double *each = calloc(2 * (size_t) replicas, sizeof *each);
	const choir_precision p = choir_strategy_precision(s);
	measured m = {
		.bytes = COPIED / (size_t) devices, .bf16 = choir_precision_is_native(p), .flops = each
	};
	const step_size size = { (double) batch, model_plan_weights(plan),
		p <= CHOIR_PRECISION_TF32 ? 4 : 2, slots, devices };
	*out = (limit){ .seconds = 0 };
	if (each == NULL)
		return choir_fail(
				CHOIR_NO_MEMORY, "no memory for the measurements of %d replicas", replicas);
	m.seconds = each + replicas;
	const choir_status status = choir_strategy_run(s, measure, &m, NULL, NULL);
	for (int i = 0; i < replicas; i++) {
		out->flops += m.flops[i] / replicas;
		out->copied += m.seconds[i] > 0 ? (double) m.bytes / m.seconds[i] / replicas : 0;
	}
	divide(out, &work, &size);
	free(each);
	return status;
}
