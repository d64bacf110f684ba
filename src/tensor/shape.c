// Dimensions come from callers and files, so all products are checked.
#include "base/size.h"
#include "tensor/tensor.h"

#include <inttypes.h>
#include <stdio.h>

static bool has_sizes(const choir_shape *shape)
{
	if (shape->rank < 0 || shape->rank > CHOIR_MAX_RANK)
		return false;
	for (int i = 0; i < shape->rank; i++)
		if (shape->dim[i] < 0)
			return false;
	return true;
}

int64_t choir_shape_elements(const choir_shape *shape)
{
	int64_t elements = 1;

	if (!has_sizes(shape))
		return CHOIR_NONE;
	for (int i = 0; i < shape->rank; i++)
		if (shape->dim[i] == 0)
			return 0;
	for (int i = 0; i < shape->rank; i++)
		if (!chi_int64_multiply(elements, shape->dim[i], &elements))
			return CHOIR_NONE;
	return elements;
}

bool chi_shape_bytes(const choir_shape *shape, choir_dtype dtype, size_t *bytes)
{
	const int64_t elements = choir_shape_elements(shape);
	size_t product;

	if (elements < 0 || !chi_size_multiply((size_t) elements, chi_dtype_size(dtype), &product) ||
			product > PTRDIFF_MAX)
		return false;
	*bytes = product;
	return true;
}

bool chi_shape_equal(const choir_shape *a, const choir_shape *b)
{
	if (a->rank != b->rank)
		return false;
	for (int i = 0; i < a->rank; i++)
		if (a->dim[i] != b->dim[i])
			return false;
	return true;
}

// Shows an invalid rank as such.
const char *chi_shape_print(const choir_shape *shape, char text[CHI_SHAPE_TEXT])
{
	if (shape->rank < 0 || shape->rank > CHOIR_MAX_RANK) {
		snprintf(text, CHI_SHAPE_TEXT, "[rank %d]", shape->rank);
		return text;
	}
	size_t used = (size_t) snprintf(text, CHI_SHAPE_TEXT, "[");
	for (int i = 0; i < shape->rank && used < CHI_SHAPE_TEXT - 2; i++)
		used += (size_t) snprintf(text + used, CHI_SHAPE_TEXT - 1 - used, "%s%" PRId64,
				i ? ", " : "", shape->dim[i]);
	if (used > CHI_SHAPE_TEXT - 2)
		used = CHI_SHAPE_TEXT - 2;
	snprintf(text + used, CHI_SHAPE_TEXT - used, "]");
	return text;
}

choir_axes choir_axes_of(int n, const int axes[])
{
	uint32_t bits = 0;
	for (int i = 0; axes != NULL && i < n; i++)
		bits |= CHOIR_AXIS(axes[i]).bits;
	return CHOIR_AXES_BITS(bits);
}
