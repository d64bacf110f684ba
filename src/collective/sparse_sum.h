// Sums of sparse gradients over replicas. Each row has the bits of a dense sum, except for the
// sign of a zero. Entries of one replica are added in order, then the replicas with the row in the
// canonical tree.
#pragma once

#include "tensor/tensor.h"

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

// By row (not negative), part and position. entry has room for two per row. Returns the number of
// distinct rows.
int64_t chi_sparse_sum_order(int parts, const chi_sparse_part part[], chi_sparse_entry entry[]);
int chi_slices_levels(int parts);
typedef struct {
	choir_dtype dtype;
	choir_dtype rounded; // f32 only: replicas' rows and sums of two are rounded to this
	int64_t width;
} chi_sparse_sum_as;
// For n sorted entries. A distinct row gets its index in rows and width elements in values.
void chi_sparse_sum(int parts, const chi_sparse_part part[], int64_t n,
		const chi_sparse_entry entry[], const chi_sparse_sum_as *as, int64_t rows[], void *values,
		char *scratch);
