// A training: its model, data and memory per device.
#pragma once

#include "data/training_data.h"
#include "model/model_memory.h"

typedef struct {
	choir_strategy *strategy;
	const model *model;
	const source *data;
	const char *optimizer;
	int64_t train_examples, test_examples, batch;
	uint64_t seed;
	const memory_plan *memory;
	int slots; // per weight
} summary;

void summary_print(const summary *s, bool json);
