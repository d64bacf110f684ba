// Elements as functions of the program see them: an entry for each column, with its shape and its
// values in one piece.
#pragma once

#include "data/stage.h"

// What a entry that the function may resize needs to know.
typedef struct {
	chi_ragged_value *ragged_value;
	const choir_column *column;
} chi_component_capacity;

// The entries of one element that lies in column from example at on; of a batch, examples of
// them.
void chi_components_of(const choir_dataset *d, void *const column[], int64_t at, int64_t examples,
		choir_entry entry[]);
// The same, to be written: entries that vary begin empty, with room to say which value they are.
choir_status chi_components_for(const choir_dataset *d, void *const column[], int64_t at,
		int64_t examples, choir_entry entry[], chi_component_capacity capacity[]);
// Whether no column varies behind batch, where ragged values are not in one piece. If one does,
// that is recorded, and d is freed.
bool chi_components_possible(choir_dataset *d, const char *what);
// A function of the program has failed at an element: names it, keeping what the function said.
choir_status chi_function_failed(choir_status status, const char *what, int64_t element);
// Whether a is what b is, column by column; else NULL is not the answer, but what differs.
const char *chi_columns_differ(const chi_spec *a, const chi_spec *b);
