// Several operands that broadcast to one shape.
#pragma once

#include "choir/extend/kernel_table.h"

// Loops over the elements of a shape, with a stride (in elements) for each of its operands, which
// broadcast to it. Dimensions that can be walked as one are one; the last is the loop for the
// kernel.
enum { CHI_BROADCAST_OPERANDS = 3 };
typedef struct {
	int rank; // at least 1
	int64_t dim[CHOIR_MAX_RANK];
	int64_t stride[CHI_BROADCAST_OPERANDS][CHOIR_MAX_RANK];
	int64_t index[CHOIR_MAX_RANK]; // of the dimensions before the last
	int64_t at[CHI_BROADCAST_OPERANDS]; // where each operand is
	bool done;
} chi_broadcast_iterator;

void chi_broadcast_iterator_init(chi_broadcast_iterator *it, const choir_shape *shape, size_t n,
		const choir_buffer operands[]);
// Moves on by one run of the last dimension; done is set after the last run.
void chi_broadcast_iterator_next(chi_broadcast_iterator *it);
static inline int64_t chi_broadcast_iterator_run(const chi_broadcast_iterator *it)
{
	return it->dim[it->rank - 1];
}
// Whether an operand has one element for the whole run.
static inline bool chi_broadcast_iterator_repeats(const chi_broadcast_iterator *it, size_t operand)
{
	return it->stride[operand][it->rank - 1] == 0;
}
