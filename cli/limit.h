// The time that a training step takes at least on the machine that it was measured on.
#pragma once

#include "model.h"

typedef struct {
	double flops, copied; // of a core, a second: operations, and bytes read and written
	double seconds; // of a step; 0: unknown
} limit;

// Of a step on batch examples with an optimizer that keeps so many slots for each weight. The
// strategy's devices measure what they can at the same time.
choir_status limit_find(
		const model_plan *plan, choir_strategy *s, int64_t batch, int slots, limit *out);
