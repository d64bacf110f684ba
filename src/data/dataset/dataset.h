// Functions that transforms share.
#pragma once

#include "data/stage.h"

// Checks that from yields single examples that fit in batches of size. False: recorded, and from
// is freed.
bool chi_batch_possible(choir_dataset *from, const char *what, int64_t size);
// Gives d batches of size.
void chi_batch_count(choir_dataset *d, int64_t size, bool drop_remainder);
// Moves past the given number of batches. Reads the last one, since it may be short.
choir_status chi_batch_seek(choir_dataset *d, int64_t elements);
// Sets count and index of a shard stage with a hint.
void chi_dataset_take_hint(choir_dataset *d, int64_t count, int64_t index);
