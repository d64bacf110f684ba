// The memory of a training, before it starts.
#pragma once

#include "model/model.h"

// Bytes by formulas, without the rounding of memory pools.
typedef struct {
	double weights, gradients, optimizer, activations;
} memory_plan;

// slots: per weight.
memory_plan memory_needed(
		const model_plan *plan, const choir_strategy *s, int slots, int64_t batch);
// CHOIR_NO_MEMORY: the machine has less.
choir_status memory_check(const memory_plan *needed, const char *kind, const choir_strategy *s);
