// CSV files: one column is the target, all other columns of numbers are the input.
#pragma once

#include "data/training_data.h"

// Finds the target (s->target, or "label", or the last column) and reads all rows; count gets
// their batches.
choir_status table_open(source *s, inspect_fn *count);
choir_dataset *table_examples(const source *s);
size_t table_inputs(const source *s, char *list, size_t size);
void table_print(const source *s, bool json);
choir_status table_describe(const source *s, table_plan *t);
void table_keep_one_hot(const source *s, float mean[], float deviation[]);
