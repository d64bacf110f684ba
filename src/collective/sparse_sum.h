// Sums of slices over replicas, row by row: the rows that stand anywhere, once each, in ascending
// order. A row of the result is made in the order of the dense sum: within a replica one after
// another, over replicas in the canonical tree, in which a replica without the row is left out. So
// it has the bits of the dense sum (but for the sign of a zero).
#pragma once

#include "tensor/tensor.h"

// What one replica has, on the host.
typedef struct {
	int64_t n; // rows of values
	const int64_t *row; // which each of them is
	const void *values;
} chi_sparse_part;

typedef struct {
	int64_t row;
	int part;
	int64_t at; // in the part
} chi_sparse_entry;

// Fills entry (room for all parts' rows), ordered by row, part and place; the number of different
// rows.
int64_t chi_sparse_sum_order(int parts, const chi_sparse_part part[], chi_sparse_entry entry[]);
// How many rows of scratch memory a sum needs.
int chi_slices_levels(int parts);
// Makes the rows of n entries: rows[i] and width elements of values each.
void chi_sparse_sum(int parts, const chi_sparse_part part[], int64_t n,
		const chi_sparse_entry entry[], choir_dtype dtype, int64_t width, int64_t rows[],
		void *values, char *scratch);
