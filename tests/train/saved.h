// Trainings that are saved and restored: the small problem on anything that can carry it.
#pragma once

#include "train/problem.h"

enum { SAVED_CARRIERS = 5 };
extern const char *const saved_devices[SAVED_CARRIERS];

// The problem with seed 7, on the devices and the strategy of that number.
problem saved_open(
		int carrier, int replicas, choir_optimizer_kind kind, const choir_optimizer_options *o);
void saved_train(problem *p, int steps);
choir_checkpoint_manager *saved_manage(
		choir_strategy *s, const char *directory, const choir_checkpoint_options *o);
void saved_must(choir_status status); // be CHOIR_OK
// The name of a directory that is not there yet; it stands until the next call.
const char *saved_directory(void);

// A variable of two numbers with a part for each replica, "own", to which each adds something of
// its own: user is the variable.
choir_variable *saved_own(choir_strategy *s, choir_aggregation aggregation);
choir_status saved_count(choir_replica *r, void *user);
