// Elements as functions of the program see them: each column with its shape, its values
// contiguous.
#pragma once

#include "data/stage.h"

// What choir_component_resize needs.
typedef struct {
	chi_ragged_value *ragged_value;
	const choir_column *column;
} chi_component_capacity;

// The components of the element that lies in column from example at on. examples: of a batch.
void chi_components_of(const choir_dataset *d, void *const column[], int64_t at, int64_t examples,
		choir_component component[]);
// The same, to be written: those that vary begin empty and can be resized.
choir_status chi_components_for(const choir_dataset *d, void *const column[], int64_t at,
		int64_t examples, choir_component component[], chi_component_capacity capacity[]);
// Whether no column varies after batch, where ragged values are not contiguous. False: recorded,
// and d is freed.
bool chi_components_possible(choir_dataset *d, const char *what);
// A function of the program has failed at an element: names it, keeping what the function said.
choir_status chi_function_failed(choir_status status, const char *what, int64_t element);
// What differs between the columns of a and b, in words; NULL: nothing.
const char *chi_columns_differ(const chi_spec *a, const chi_spec *b);
