// Sums of sparse gradients over replicas. The result has the distinct rows in ascending order.
// Each row has the bits of a dense sum, except for the sign of a zero. Entries of one replica are
// added one after another; then the replicas that have the row are added in the canonical tree.
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

// Sorts the rows of sparse gradients by row, part and position. Rows are not negative. entry has
// room for twice as many entries as there are rows. Returns the number of distinct rows.
int64_t chi_sparse_sum_order(int parts, const chi_sparse_part part[], chi_sparse_entry entry[]);
// Returns the scratch size of a sparse sum, in rows.
int chi_slices_levels(int parts);
typedef struct {
	choir_dtype dtype;
	choir_dtype rounded; // f32 only: each replica's rows and each sum of two are rounded to this
	int64_t width; // elements of a row
} chi_sparse_sum_as;
// Sums n sorted entries of sparse gradients. Each distinct row gets its index in rows and width
// elements in values.
void chi_sparse_sum(int parts, const chi_sparse_part part[], int64_t n,
		const chi_sparse_entry entry[], const chi_sparse_sum_as *as, int64_t rows[], void *values,
		char *scratch);
