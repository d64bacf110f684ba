// Tensors of one number, and random ones. The call's position in the program is part of the key.
#include "base/hash.h"
#include "op/op.h"

bool chi_op_draw(choir_frame *f, const char *what, uint64_t seed, choir_random_attributes *next)
{
	if (f->random.place == CHI_NO_DRAWS) {
		chi_frame_fail_null(f, CHOIR_UNSUPPORTED,
				"%s: an elementwise update cannot draw random numbers, since any thread "
				"may take its chunks; draw them before and pass them as an argument",
				what);
		return false;
	}
	*next = (choir_random_attributes){ .seed = seed ^ chi_hash_mix(f->random.seed),
		.step = f->random.step,
		.replica_id = f->random.replica,
		.place = f->random.place++ };
	return true;
}

choir_tensor *choir_fill(choir_frame *f, choir_dtype dtype, choir_shape shape, double value)
{
	if (!f)
		return chi_frame_null_argument(NULL, "fill: frame");
	if (chi_dtype_size(dtype) != 0 && !chi_dtype_holds(dtype, value))
		return chi_frame_fail_null(f, CHOIR_INVALID, "fill: the number %g is not a value of %s",
				value, choir_dtype_name(dtype));
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
