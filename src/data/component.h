// Components have a shape and contiguous values.
#pragma once

#include "data/dataset.h"

typedef struct {
	chi_ragged_value *ragged_value;
	const choir_column *column;
} chi_component_capacity;

// The element at example at of column. examples: of a batch.
void chi_components_of(const choir_dataset *d, void *const column[], int64_t at, int64_t examples,
		choir_component component[]);
// To write. Components that vary begin empty.
choir_status chi_components_for(const choir_dataset *d, void *const column[], int64_t at,
		int64_t examples, choir_component component[], chi_component_capacity capacity[]);
// Not contiguous: columns that vary, after batch.
choir_status chi_components_check(const choir_dataset *d, const char *what);
choir_status chi_function_failed(choir_status status, const char *what, int64_t element);
// NULL: they are equal.
const char *chi_columns_differ(const chi_spec *a, const chi_spec *b);
