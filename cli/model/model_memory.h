// How much memory a training takes, before it takes any.
#pragma once

#include "model/model.h"

// Bytes. Numbers from a formula, not measured: what each kind keeps of an example is counted by
// hand, and what pools round up is left out.
typedef struct {
	double weights, gradients, optimizer, activations;
} memory_plan;

// Of a model with an optimizer that keeps so many numbers beside each weight, and batch examples
// in each step.
memory_plan memory_needed(
		const model_plan *plan, const choir_strategy *s, int slots, int64_t batch);
// CHOIR_NO_MEMORY: the machine has less than that; with the bytes, and by what.
choir_status memory_check(const memory_plan *needed, const char *kind, const choir_strategy *s);
