// Tensors that a kernel makes from nothing: filled with a number, or with random ones.
#include "op/op.h"

choir_tensor *choir_fill(choir_frame *f, choir_dtype dtype, choir_shape shape, double value)
{
	if (!f)
		return chi_frame_null_argument(NULL, "fill: frame");
	if (chi_dtype_size(dtype) != 0 && !chi_dtype_holds(dtype, value))
		return chi_frame_fail_null(
				f, CHOIR_INVALID, "fill: the number %g is no %s", value, choir_dtype_name(dtype));
	const choir_fill_attributes fill = { value };
	return chi_op_kernel(f, "fill", 0, NULL, &fill, dtype, &shape);
}

choir_tensor *choir_random_normal(
		choir_frame *f, choir_dtype dtype, choir_shape shape, uint64_t seed)
{
	if (!f)
		return chi_frame_null_argument(NULL, "random_normal: frame");
	choir_random_attributes random;
	if (!chi_op_draw(f, "random_normal", seed, &random))
		return NULL;
	return chi_op_kernel(f, "random_normal", 0, NULL, &random, dtype, &shape);
}
