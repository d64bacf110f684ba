// Estimates how much memory a training needs, before it starts.
#pragma once

#include "model/model.h"

// Bytes by a formula; activations are counted by hand, rounding by memory pools is left out.
typedef struct {
	double weights, gradients, optimizer, activations;
} memory_plan;

// slots: optimizer slots per weight. batch: examples per step.
memory_plan memory_needed(
		const model_plan *plan, const choir_strategy *s, int slots, int64_t batch);
// CHOIR_NO_MEMORY: the machine has less; the text lists the bytes of each part.
choir_status memory_check(const memory_plan *needed, const char *kind, const choir_strategy *s);
