// Sums of sparse gradients over replicas: every row that occurs, once, in ascending order. Each
// row is added in the order of a dense sum: entries of a replica one after another, replicas in
// the canonical tree without those that lack the row. So it has the bits of the dense sum, except
// for the sign of a zero.
#pragma once

#include "tensor/tensor.h"

// One replica's rows, in host memory.
typedef struct {
	int64_t n; // number of rows
	const int64_t *row; // their indices
	const void *values;
} chi_sparse_part;

typedef struct {
	int64_t row;
	int part;
	int64_t at; // position in the part
} chi_sparse_entry;

// Fills entry, with room for all rows, sorted by row, part and position. Returns the number of
// distinct rows.
int64_t chi_sparse_sum_order(int parts, const chi_sparse_part part[], chi_sparse_entry entry[]);
// Returns the scratch size of a sum, in rows.
int chi_slices_levels(int parts);
// Sums n sorted entries. Each distinct row gets its index in rows and width elements in values.
void chi_sparse_sum(int parts, const chi_sparse_part part[], int64_t n,
		const chi_sparse_entry entry[], choir_dtype dtype, int64_t width, int64_t rows[],
		void *values, char *scratch);
