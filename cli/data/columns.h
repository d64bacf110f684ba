// Data files with named columns of numbers: TFRecord, npz, HDF5, CIFAR-10. One column is the
// target, all others are the input.
#pragma once

#include "data/source.h"

// Finds the target (s->target, or "label", or the last column) and reads all examples. Calls count
// with the batches of labels.
choir_status columns_open(source *s, inspect_fn *count);
choir_dataset *columns_examples(const source *s);
size_t columns_inputs(const source *s, char *list, size_t size);
void columns_print(const source *s, bool json);
