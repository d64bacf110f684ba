// Moving to a position of a pass.
#pragma once

#include "data/data.h"

choir_status chi_dataset_begin(choir_dataset *d, int64_t pass);
// For tables: the rewind of a stage without a position, and the seek of one that makes one element
// from each.
choir_status chi_rewind_from(choir_dataset *d);
choir_status chi_seek_from(choir_dataset *d, int64_t elements);
// Reports that the pass has only found elements.
choir_status chi_dataset_too_short(const choir_dataset *d, int64_t found, int64_t needed);
// Passes over the first elements of a pass, right after begin. CHOIR_INVALID: there are fewer.
choir_status chi_dataset_pass_over(choir_dataset *d, int64_t elements);
// Reads from element from up to element to. CHOIR_INVALID: the pass ends before.
choir_status chi_dataset_read_over(choir_dataset *d, int64_t from, int64_t to);
