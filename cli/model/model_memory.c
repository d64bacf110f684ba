// Estimates the memory of a training from the sizes of its model.
#include "model/model_memory.h"

#include "output.h"

memory_plan memory_needed(
		const model_plan *plan, const choir_strategy *s, int slots, int64_t batch)
{
	const bool mixed = choir_strategy_precision(s) > CHOIR_PRECISION_TF32;
	const double weights = sizeof(float) * model_plan_weights(plan);
	const double activations = (mixed ? 2 : sizeof(float)) * model_plan_activations(plan);
	const int replicas = choir_strategy_replicas(s), devices = choir_strategy_worker_devices(s);
	// A device runs one replica at a time and holds one sum of gradients.
	const double part = (double) ((batch + replicas - 1) / replicas);
	return (memory_plan){ .weights = mixed ? 1.5 * weights : weights, // with copies in 16 bits
		.gradients = devices * weights,
		.optimizer = slots * weights,
		.activations = devices * part * activations };
}

choir_status memory_check(const memory_plan *needed, const char *kind, const choir_strategy *s)
{
	char text[6][32];
	choir_device_info info = { .size = sizeof info };
	CHOIR_TRY(choir_device_describe(choir_strategy_worker_device(s, 0), &info));
	const double sum =
			needed->weights + needed->gradients + needed->optimizer + needed->activations;
	if (info.memory_total == 0 || sum <= (double) info.memory_total)
		return CHOIR_OK;
	return choir_fail(CHOIR_NO_MEMORY,
			"%s: needs about %s of memory (weights %s, gradients "
			"%s, optimizer %s, activations %s); the machine has %s",
			kind, print_bytes(sum, text[0]), print_bytes(needed->weights, text[1]),
			print_bytes(needed->gradients, text[2]), print_bytes(needed->optimizer, text[3]),
			print_bytes(needed->activations, text[4]),
			print_bytes((double) info.memory_total, text[5]));
}
