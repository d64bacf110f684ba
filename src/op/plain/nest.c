// Walking several operands that broadcast to one shape. Neighbouring dimensions are merged
// wherever every operand walks them as one, so that equal shapes become a single run and a bias
// one run a row.
#include "op/plain/plain.h"

// The stride of operand's dimension that lies under dimension i of a shape of this rank; 0:
// repeats.
static int64_t stride_of(const choir_buffer *operand, int rank, int i)
{
	const int own = i - (rank - operand->shape.rank);
	if (own < 0 || operand->shape.dim[own] == 1)
		return 0;
	int64_t stride = 1;
	for (int j = own + 1; j < operand->shape.rank; j++)
		stride *= operand->shape.dim[j];
	return stride;
}

// Whether every operand walks dimension i (stride) and the nest's last dimension as one.
static bool merges(const chi_nest *nest, size_t n, const int64_t stride[], int64_t inner)
{
	for (size_t o = 0; o < n; o++)
		if (nest->stride[o][nest->rank - 1] != stride[o] * inner)
			return false;
	return true;
}

static void append(chi_nest *nest, size_t n, int64_t dim, const int64_t stride[])
{
	if (nest->rank > 0 && merges(nest, n, stride, dim)) {
		nest->dim[nest->rank - 1] *= dim;
	} else {
		nest->dim[nest->rank] = dim;
		nest->rank++;
	}
	for (size_t o = 0; o < n; o++)
		nest->stride[o][nest->rank - 1] = stride[o];
}

void chi_nest_init(
		chi_nest *nest, const choir_shape *shape, size_t n, const choir_buffer operands[])
{
	*nest = (chi_nest){ .done = choir_shape_elements(shape) == 0 };
	for (int i = 0; i < shape->rank; i++) {
		int64_t stride[CHI_NEST_OPERANDS] = { 0 };
		for (size_t o = 0; o < n; o++)
			stride[o] = stride_of(&operands[o], shape->rank, i);
		if (shape->dim[i] != 1)
			append(nest, n, shape->dim[i], stride);
	}
	if (nest->rank == 0) {
		const int64_t packed[CHI_NEST_OPERANDS] = { 1, 1, 1 };
		append(nest, n, 1, packed);
	}
}

void chi_nest_next(chi_nest *nest)
{
	for (int i = nest->rank - 2; i >= 0; i--) {
		nest->index[i]++;
		for (int o = 0; o < CHI_NEST_OPERANDS; o++)
			nest->at[o] += nest->stride[o][i];
		if (nest->index[i] < nest->dim[i])
			return;
		for (int o = 0; o < CHI_NEST_OPERANDS; o++)
			nest->at[o] -= nest->stride[o][i] * nest->dim[i];
		nest->index[i] = 0;
	}
	nest->done = true;
}
