// Named tensors, which replicas give and return, and the results of a run.
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

// Adds name to a list, replacing an equal one; the name is copied to f.
choir_status chi_named_tensors_put(
		chi_named_tensors *list, choir_frame *f, const char *name, choir_tensor *t);
choir_tensor *chi_named_tensors_find(const chi_named_tensors *list, const char *name);
// Frees a list of names that are on the heap.
void chi_named_tensors_free(chi_named_tensors *unkept);

// Merges what all replicas returned into the run's results, if it has any: CHOIR_STATE naming a
// replica that returned other names than replica 0.
choir_status chi_results_merge(struct chi_run *run);
// What a replica or an update function may return from its frame f: a named tensor of f that can
// be used. Else the failure, which f keeps.
choir_status chi_results_check(choir_frame *f, const char *name, const choir_tensor *value);
