// Shared by the tests of the training loop: a small classification problem with dropout.
#pragma once

#include "choir/fit.h"
#include "train/problem.h"

enum { EXAMPLES = 45, TESTED = 20, FEATURES = 5, CLASSES = 3, BATCH = 8, BATCHES = 6 };

// Of all examples.
extern float training_weights[EXAMPLES];
extern uint8_t training_labels[EXAMPLES];

typedef struct {
	choir_strategy *strategy;
	choir_distributed_dataset *train, *test;
	choir_layer *layers;
	choir_optimizer *optimizer;
	choir_metric *accuracy, *loss; // loss: of a loop by hand
	choir_model *model;
	// What callbacks saw and do.
	char seen[400];
	int64_t stop_at, fail_at; // steps; 0: never
} training;

// Opens a training with a model of other options; fails the test if it cannot.
training training_open_with(const char *devices, int replicas, const choir_model_options *like);
training training_open(const char *devices, int replicas);
// Fails the test unless status is CHOIR_OK.
void must(choir_status status);
