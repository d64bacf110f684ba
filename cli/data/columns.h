// Files whose examples have named columns of numbers, as data of the command: TFRecord, npz, HDF5,
// CIFAR-10. One column is what to learn, all others are the input.
#pragma once

#include "data/source.h"

// Whether name is of such files ("tfrecord:FILE").
bool columns_known(const char *name);
// Opens the files, finds the column of labels (s->target, or "label", or the last) and looks at
// all examples. count is called with the labels.
choir_status columns_open(source *s, inspect_fn *count);
choir_dataset *columns_examples(const source *s);
size_t columns_inputs(const source *s, char *list, size_t size);
void columns_print(const source *s, bool json);
