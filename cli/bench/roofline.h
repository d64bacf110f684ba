// A lower bound of the time of a training step on this machine.
#pragma once

#include "model/model.h"

// Kinds of work in a step.
typedef enum {
	LIMIT_PRODUCTS,
	LIMIT_CONVOLUTIONS,
	LIMIT_ATTENTION,
	LIMIT_OTHERS,
	LIMIT_REDUCE,
	LIMIT_UPDATE,
	LIMIT_KINDS
} limit_kind;

typedef struct {
	double operations, moved; // per step: of products; bytes of all else
	double flops, copied; // per core and second: operations; bytes read and written
	double part[LIMIT_KINDS]; // seconds per step
	double seconds; // their sum; 0: unknown
} limit;

// Measures the machine on all devices. slots: of the optimizer, per weight.
choir_status limit_find(
		const model_plan *plan, choir_strategy *s, int64_t batch, int slots, limit *out);
