// Going to a place of a pass: what stages call, and what stands in their tables.
#pragma once

#include "data/data.h"

// To the start of a pass.
choir_status chi_dataset_begin(choir_dataset *d, int64_t pass);
// For tables: the rewind of a stage without a position, the seek of one that makes one element of
// each.
choir_status chi_rewind_from(choir_dataset *d);
choir_status chi_seek_from(choir_dataset *d, int64_t elements);
// Says that a pass has found elements only, though it was read further once.
choir_status chi_dataset_too_short(const choir_dataset *d, int64_t found, int64_t needed);
// Passes over so many elements, which must be there; by seek right after begin.
choir_status chi_dataset_pass_over(choir_dataset *d, int64_t elements);
// Reads from element on up to another, which must be there: what seek ends with.
choir_status chi_dataset_read_over(choir_dataset *d, int64_t from, int64_t to);
