// Parts of a dataset.
#pragma once

#include "data/dataset.h"

// For a shard with a hint.
void chi_dataset_take_hint(choir_dataset *d, int64_t count, int64_t index);
