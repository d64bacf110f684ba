// The time that a training step takes at least on the machine that it was measured on.
#pragma once

#include "model/model.h"

// What a step is made of.
typedef enum {
	LIMIT_PRODUCTS,
	LIMIT_CONVOLUTIONS,
	LIMIT_ATTENTION,
	LIMIT_OTHERS, // all other operations
	LIMIT_REDUCE, // reading what each device's gradients add up to
	LIMIT_UPDATE, // weights and what the optimizer keeps for them, read and written
	LIMIT_KINDS
} limit_kind;

typedef struct {
	double operations, moved; // of a step: multiplications and additions; bytes of all else
	double flops, copied; // of a core, a second: operations, and bytes read and written
	double part[LIMIT_KINDS]; // seconds of a step
	double seconds; // their sum; 0: unknown
} limit;

// Of a step on batch examples with an optimizer that keeps so many slots for each weight. The
// strategy's devices measure what they can at the same time.
choir_status limit_find(
		const model_plan *plan, choir_strategy *s, int64_t batch, int slots, limit *out);
