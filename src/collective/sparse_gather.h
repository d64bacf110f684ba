// Workers exchange each replica's number of rows, then indices and values, in the order of
// replicas. Each sums them itself (sparse_sum.h).
#pragma once

#include "collective/process_group.h"
#include "collective/sparse_sum.h"

typedef struct {
	chi_process_group *group;
	const char *what, *name; // "sum of slices of", "f32 [3, 2]"; equal on all workers
	int64_t *each;
	size_t row_bytes;
	int64_t *row;
	char *values;
	chi_sparse_part *part;
} chi_sparse_gather;

// each: this worker's before, all after. Uses no field below it.
choir_status chi_sparse_gather_counts(const chi_sparse_gather *g);
// part: this worker's before, all after. The own rows may already be in place.
choir_status chi_sparse_gather_rows(const chi_sparse_gather *g);
