// Moving to a position of a pass.
#pragma once

#include "data/data.h"

choir_status chi_dataset_begin(choir_dataset *d, int64_t pass);
// For tables: a stage without a position; a stage that makes one element from each.
choir_status chi_rewind_from(choir_dataset *d);
choir_status chi_seek_from(choir_dataset *d, int64_t elements);
const void *chi_peek_from(choir_dataset *d, size_t column, int64_t first, int64_t count);
choir_status chi_dataset_too_short(const choir_dataset *d, int64_t found, int64_t needed);
// Right after begin. CHOIR_INVALID: too few.
choir_status chi_dataset_pass_over(choir_dataset *d, int64_t elements);
// CHOIR_INVALID: the pass ends before.
choir_status chi_dataset_read_over(choir_dataset *d, int64_t from, int64_t to);
