// Sums of sparse gradients over replicas: every row that occurs, once, in ascending order. Each
// row has the bits of a dense sum, except for the sign of a zero: a replica's entries are added
// one after another, replicas in the canonical tree without those that lack the row.
#pragma once

#include "tensor/tensor.h"

// One replica's rows, in host memory.
typedef struct {
	int64_t n;
	const int64_t *row;
	const void *values;
} chi_sparse_part;

typedef struct {
	int64_t row;
	int part;
	int64_t at;
} chi_sparse_entry;

// Sorts the rows of sparse gradients by row, part and position. entry has room for all. Returns
// the number of distinct rows.
int64_t chi_sparse_sum_order(int parts, const chi_sparse_part part[], chi_sparse_entry entry[]);
// Returns the scratch size of a sparse sum, in rows.
int chi_slices_levels(int parts);
// Sums n sorted entries of sparse gradients. Each distinct row gets its index in rows and width
// elements in values.
void chi_sparse_sum(int parts, const chi_sparse_part part[], int64_t n,
		const chi_sparse_entry entry[], choir_dtype dtype, int64_t width, int64_t rows[],
		void *values, char *scratch);
