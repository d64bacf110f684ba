// Named tensors, which replicas receive and return, and the merging of what replicas return into
// the results of a run.
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

// Adds a tensor, replacing one of the same name. The name is copied to f; errors are recorded in
// f.
choir_status chi_named_tensors_put(
		chi_named_tensors *list, choir_frame *f, const char *name, choir_tensor *t);
choir_tensor *chi_named_tensors_find(const chi_named_tensors *list, const char *name);
// Frees a list whose names are on the heap.
void chi_named_tensors_free(chi_named_tensors *unkept);

// Merges what all replicas returned into the run's results. CHOIR_STATE: the replicas' names
// differ, also if the run keeps no results.
choir_status chi_results_merge(struct chi_run *run);
// Checks what a replica or an update function returns: a name, and a valid tensor of f. Errors
// are recorded in f.
choir_status chi_results_check(choir_frame *f, const char *name, const choir_tensor *value);
