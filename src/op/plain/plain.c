// The lists of plain kernels.
#include "op/plain/plain.h"

chi_kernel_list chi_plain_list(size_t index)
{
	static const chi_kernel_list *const lists[] = { &chi_plain_elementwise, &chi_plain_cast,
		&chi_plain_reduce, &chi_plain_matmul, &chi_plain_conv2d, &chi_plain_pool2d,
		&chi_plain_softmax, &chi_plain_norm, &chi_plain_slice_transpose, &chi_plain_attention,
		&chi_plain_recurrent, &chi_plain_random, &chi_plain_gather_scatter, &chi_plain_update };
	return index < sizeof lists / sizeof lists[0] ? *lists[index] : (chi_kernel_list){ NULL, 0 };
}
