// The rows that all workers' replicas have, brought to every worker. First workers tell each other
// how many rows each replica has, then they exchange the numbers of the rows and their values, one
// replica's after another's. So each worker can add them up in tree order by itself
// (sparse_sum.h).
#pragma once

#include "collective/process_group.h"
#include "collective/sparse_sum.h"

typedef struct {
	chi_process_group *group;
	const char *what, *name; // "sum of slices of", "f32 [3, 2]": all that must be equal
	int64_t *each; // rows of each replica of all workers
	size_t row_bytes;
	int64_t *row; // memory for the numbers and the values of all rows
	char *values;
	chi_sparse_part *part; // of each replica of all workers
} chi_sparse_gather;

// each: in, of this worker's replicas; out, of all. The fields after it are not used.
choir_status chi_sparse_gather_counts(const chi_sparse_gather *g);
// part: in, of this worker's replicas, whose rows and values may lie where they belong already;
// out, of all. each is as chi_sparse_gather_counts left it.
choir_status chi_sparse_gather_rows(const chi_sparse_gather *g);
