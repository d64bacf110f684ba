// Elements as the program's functions see them: each component with its shape and with contiguous
// values.
#pragma once

#include "data/stage.h"

typedef struct {
	chi_ragged_value *ragged_value;
	const choir_column *column;
} chi_component_capacity;

// Fills component with the components of one element of column, which begins at example at.
// examples: those of a batch.
void chi_components_of(const choir_dataset *d, void *const column[], int64_t at, int64_t examples,
		choir_component component[]);
// The same for writing: components that vary begin empty and can be resized.
choir_status chi_components_for(const choir_dataset *d, void *const column[], int64_t at,
		int64_t examples, choir_component component[], chi_component_capacity capacity[]);
// Refuses columns that vary after batch, where ragged values are not contiguous. False: recorded,
// and d is freed.
bool chi_components_possible(choir_dataset *d, const char *what);
// Adds the element's number to a failure that the program's function has returned.
choir_status chi_function_failed(choir_status status, const char *what, int64_t element);
// Names the first difference of the columns. NULL: none.
const char *chi_columns_differ(const chi_spec *a, const chi_spec *b);
