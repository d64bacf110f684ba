// What transforms share with each other and with the chain around them.
#pragma once

#include "data/stage.h"

// Whether from comes in single examples, of which size fit in a tensor of one rank more. If not,
// that is recorded, and from is freed.
bool chi_batch_possible(choir_dataset *from, const char *what, int64_t size);
// d, which is as its source so far, comes in batches of size.
void chi_batch_count(choir_dataset *d, int64_t size, bool drop_remainder);
// To behind so many batches of the pass. The last of them is read, since it may be a short one.
choir_status chi_batch_seek(choir_dataset *d, int64_t elements);
// A shard stage with hint gets its count and index, before anything is read.
void chi_dataset_take_hint(choir_dataset *d, int64_t count, int64_t index);
