// Batches, also padded.
#pragma once

#include "data/dataset.h"

// CHOIR_INVALID: from does not have batches of this size.
choir_status chi_batch_check(const choir_dataset *from, const char *what, int64_t size);
void chi_batch_count(choir_dataset *d, int64_t size, bool drop_remainder);
// The last batch may be short.
choir_status chi_batch_seek(choir_dataset *d, int64_t elements);
