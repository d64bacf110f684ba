// Neighbouring dimensions over which every operand is contiguous or repeated are merged.
#include "op/plain/broadcast_iterator.h"

static int64_t stride_of(const choir_buffer *operand, int rank, int i)
{
	const int axis = i - (rank - operand->shape.rank);
	if (axis < 0 || operand->shape.dim[axis] == 1)
		return 0;
	int64_t stride = 1;
	for (int j = axis + 1; j < operand->shape.rank; j++)
		stride *= operand->shape.dim[j];
	return stride;
}

static bool merges(
		const chi_broadcast_iterator *it, size_t n, const int64_t stride[], int64_t inner)
{
	for (size_t o = 0; o < n; o++)
		if (it->stride[o][it->rank - 1] != stride[o] * inner)
			return false;
	return true;
}

static void append(chi_broadcast_iterator *it, size_t n, int64_t dim, const int64_t stride[])
{
	if (it->rank > 0 && merges(it, n, stride, dim)) {
		it->dim[it->rank - 1] *= dim;
	} else {
		it->dim[it->rank] = dim;
		it->rank++;
	}
	for (size_t o = 0; o < n; o++)
		it->stride[o][it->rank - 1] = stride[o];
}

void chi_broadcast_iterator_init(chi_broadcast_iterator *it, const choir_shape *shape, size_t n,
		const choir_buffer operands[])
{
	*it = (chi_broadcast_iterator){ .done = choir_shape_elements(shape) == 0 };
	for (int i = 0; i < shape->rank; i++) {
		int64_t stride[CHI_BROADCAST_OPERANDS] = { 0 };
		for (size_t o = 0; o < n; o++)
			stride[o] = stride_of(&operands[o], shape->rank, i);
		if (shape->dim[i] != 1)
			append(it, n, shape->dim[i], stride);
	}
	if (it->rank == 0) {
		const int64_t packed[CHI_BROADCAST_OPERANDS] = { 1, 1, 1 };
		append(it, n, 1, packed);
	}
}

void chi_broadcast_iterator_next(chi_broadcast_iterator *it)
{
	for (int i = it->rank - 2; i >= 0; i--) {
		it->index[i]++;
		for (int o = 0; o < CHI_BROADCAST_OPERANDS; o++)
			it->at[o] += it->stride[o][i];
		if (it->index[i] < it->dim[i])
			return;
		for (int o = 0; o < CHI_BROADCAST_OPERANDS; o++)
			it->at[o] -= it->stride[o][i] * it->dim[i];
		it->index[i] = 0;
	}
	it->done = true;
}
