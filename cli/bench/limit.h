// A lower bound of the time of a training step on this machine.
#pragma once

#include "model/model.h"

// Kinds of work in a step.
typedef enum {
	LIMIT_PRODUCTS,
	LIMIT_CONVOLUTIONS,
	LIMIT_ATTENTION,
	LIMIT_OTHERS, // all other operations
	LIMIT_REDUCE, // reading each device's sum of gradients
	LIMIT_UPDATE, // weights and slots, read and written
	LIMIT_KINDS
} limit_kind;

typedef struct {
	double operations, moved; // per step: multiplications and additions; bytes of all else
	double flops, copied; // per core and second: operations; bytes read and written
	double part[LIMIT_KINDS]; // seconds per step
	double seconds; // their sum; 0: unknown
} limit;

// Finds the limit of a step. slots: optimizer slots per weight. Measures the machine on all
// devices of the strategy.
choir_status limit_find(
		const model_plan *plan, choir_strategy *s, int64_t batch, int slots, limit *out);
