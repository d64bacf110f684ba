// What a training begins with: the model's variables and the bytes that each device holds.
#pragma once

#include "data/source.h"
#include "model/model_memory.h"

typedef struct {
	choir_strategy *strategy;
	const model *model;
	const source *data;
	const char *optimizer;
	int64_t train_examples, test_examples, batch;
	uint64_t seed;
	const memory_plan *memory;
	int slots; // numbers that the optimizer keeps beside each weight
} summary;

void summary_print(const summary *s, bool json);
