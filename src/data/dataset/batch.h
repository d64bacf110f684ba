// Batches, also for padded_batch.
#pragma once

#include "data/stage.h"

// Checks that single examples of from fit in batches of size. False: from is freed.
bool chi_batch_possible(choir_dataset *from, const char *what, int64_t size);
void chi_batch_count(choir_dataset *d, int64_t size, bool drop_remainder);
// Skips elements batches. Reads the last one, since it may be short.
choir_status chi_batch_seek(choir_dataset *d, int64_t elements);
