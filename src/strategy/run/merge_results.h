// Named tensors, which replicas get and return, and a run's results.
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

// The name is copied to f, which records errors.
choir_status chi_named_tensors_put(
		chi_named_tensors *list, choir_frame *f, const char *name, choir_tensor *t);
choir_tensor *chi_named_tensors_find(const chi_named_tensors *list, const char *name);
void chi_named_tensors_free(chi_named_tensors *unkept);

// CHOIR_STATE: the replicas' names differ, also if no results are kept.
choir_status chi_results_merge(struct chi_run *run);
choir_status chi_results_check(choir_frame *f, const char *name, const choir_tensor *value);
