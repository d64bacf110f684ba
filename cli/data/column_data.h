// Data with named columns: TFRecord, npz, HDF5, CIFAR-10.
#pragma once

#include "data/training_data.h"

// Finds the target (s->target, or "label", or the last column) and reads all examples; count gets
// their batches.
choir_status columns_open(source *s, inspect_fn *count);
choir_dataset *columns_examples(const source *s);
size_t columns_inputs(const source *s, char *list, size_t size);
void columns_print(const source *s, bool json);
