// Plain kernels.
#pragma once

#include "op/kernel/kernel_list.h"
#include "op/plain/loops.h"
#include "tensor/tensor.h"

extern const chi_kernel_list chi_plain_attention, chi_plain_cast, chi_plain_conv2d,
		chi_plain_elementwise, chi_plain_matmul, chi_plain_slice_transpose, chi_plain_norm,
		chi_plain_pool2d, chi_plain_random, chi_plain_recurrent, chi_plain_reduce,
		chi_plain_gather_scatter, chi_plain_softmax, chi_plain_update;

chi_kernel_list chi_plain_list(size_t index);

static inline int64_t chi_elements(const choir_buffer *b)
{
	return choir_shape_elements(&b->shape);
}

static inline void *chi_element(const choir_buffer *b, int64_t i)
{
	return (char *) b->data + (size_t) i * chi_dtype_size(b->dtype);
}

static inline int64_t chi_index_at(const choir_buffer *b, int64_t i)
{
	if (b->dtype == CHOIR_U8)
		return ((const uint8_t *) b->data)[i];
	return b->dtype == CHOIR_I32 ? ((const int32_t *) b->data)[i] : ((const int64_t *) b->data)[i];
}
