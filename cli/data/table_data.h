// CSV files as data of the command.
#pragma once

#include "data/source.h"

// Finds the column of labels (s->target, or "label", or the last) and the columns of numbers,
// and looks at all rows. count is called with the labels.
choir_status table_open(source *s, const char *path, inspect_fn *count);
choir_dataset *table_examples(const source *s);
size_t table_inputs(const source *s, char *list, size_t size);
void table_print(const source *s, bool json);
