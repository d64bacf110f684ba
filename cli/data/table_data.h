// CSV files: one column is the target, all other columns of numbers are the input.
#pragma once

#include "data/training_data.h"

// Finds the target (s->target, or "label", or the last column) and reads all rows; count gets
// their batches.
choir_status table_open(source *s, inspect_fn *count);
choir_dataset *table_examples(const source *s);
bool table_is_target(const source *s, const char *name);
// The numbers that a column of the files becomes; 0: it is no input.
int64_t table_width_of(const source *s, const choir_csv_inferred *c);
// A column, and whether its values in the file differ, but by less than limit.
enum { MAX_CLOSE = 32 };
typedef struct {
	const char *name;
	double limit, near;
	bool varies;
} close_values;
// Reads the files once, if n > 0, and sets varies.
void table_find_close(const source *s, size_t n, close_values columns[]);
size_t table_inputs(const source *s, char *list, size_t size);
void table_print(const source *s, bool json);
choir_status table_describe(const source *s, table_plan *t);
void table_keep_one_hot(const source *s, float mean[], float deviation[]);
