// Shared by the tests that save and restore the small problem, on different devices and
// strategies.
#pragma once

#include "train/problem.h"

enum { SAVED_CARRIERS = 5 };
extern const char *const saved_devices[SAVED_CARRIERS];

// Opens the problem with seed 7, on the devices and the strategy of carrier.
problem saved_open(
		int carrier, int replicas, choir_optimizer_kind kind, const choir_optimizer_options *o);
void saved_train(problem *p, int steps);
// Makes a checkpoint manager; fails the test if it cannot.
choir_checkpoint_manager *saved_manage(
		choir_strategy *s, const char *directory, const choir_checkpoint_options *o);
void saved_must(choir_status status); // asserts CHOIR_OK
// Returns the name of a directory that does not exist; the next call overwrites it.
const char *saved_directory(void);

// Makes a variable "own" of two numbers, with a part per replica. saved_count, with the variable
// as user, adds a value to each part.
choir_variable *saved_own(choir_strategy *s, choir_aggregation aggregation);
choir_status saved_count(choir_replica *r, void *user);
