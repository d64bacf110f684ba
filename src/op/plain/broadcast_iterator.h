// Broadcasting, as NumPy's nditer.
#pragma once

#include "choir/extend/kernel_table.h"

// Strides are in elements. The last dimension is a run.
enum { CHI_BROADCAST_OPERANDS = 3 };
typedef struct {
	int rank;
	int64_t dim[CHOIR_MAX_RANK];
	int64_t stride[CHI_BROADCAST_OPERANDS][CHOIR_MAX_RANK];
	int64_t index[CHOIR_MAX_RANK];
	int64_t at[CHI_BROADCAST_OPERANDS];
	bool done;
} chi_broadcast_iterator;

void chi_broadcast_iterator_init(chi_broadcast_iterator *it, const choir_shape *shape, size_t n,
		const choir_buffer operands[]);
void chi_broadcast_iterator_next(chi_broadcast_iterator *it);
static inline int64_t chi_broadcast_iterator_run(const chi_broadcast_iterator *it)
{
	return it->dim[it->rank - 1];
}
static inline bool chi_broadcast_iterator_repeats(const chi_broadcast_iterator *it, size_t operand)
{
	return it->stride[operand][it->rank - 1] == 0;
}
