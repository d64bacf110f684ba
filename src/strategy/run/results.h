// Named tensors, which replicas receive and return, and the results of a run.
#pragma once

#include "strategy/strategy.h"

struct chi_run;

typedef struct {
	const char *name;
	choir_tensor *tensor;
} chi_named;

typedef struct {
	size_t n, capacity;
	chi_named *named;
} chi_named_tensors;

// Adds a named tensor or replaces it. The name is copied to f; errors are recorded in f.
choir_status chi_named_tensors_put(
		chi_named_tensors *list, choir_frame *f, const char *name, choir_tensor *t);
choir_tensor *chi_named_tensors_find(const chi_named_tensors *list, const char *name);
// Frees a list whose names are on the heap.
void chi_named_tensors_free(chi_named_tensors *unkept);

// Merges what all replicas returned into the run's results. CHOIR_STATE: their names differ, also
// if no results are kept.
choir_status chi_results_merge(struct chi_run *run);
// Checks a result of a replica or update function: a name, and a valid tensor of f. Errors are
// recorded in f.
choir_status chi_results_check(choir_frame *f, const char *name, const choir_tensor *value);
