// Casts between all dtypes, and fill. A cast goes through f64, which holds
// every value but large i64.
#include "launch.h"

namespace choir_cuda
{

__host__ __device__ inline double load_as_double(int dtype, const void *data, int64_t i)
{
	switch (dtype) {
	case CHOIR_F32:
		return (double) ((const float *) data)[i];
	case CHOIR_F64:
		return ((const double *) data)[i];
	case CHOIR_I32:
		return (double) ((const int32_t *) data)[i];
	case CHOIR_I64:
		return (double) ((const int64_t *) data)[i];
	case CHOIR_F16:
		return (double) ((const f16 *) data)[i];
	case CHOIR_BF16:
		return (double) ((const bf16 *) data)[i];
	default:
		return (double) ((const uint8_t *) data)[i];
	}
}

// Truncates and saturates; a NAN is 0.
__host__ __device__ inline int64_t whole(
		double x, double low, double high, int64_t least, int64_t most)
{
	return x != x ? 0 : x <= low ? least : x >= high ? most : (int64_t) x;
}

__host__ __device__ inline void store_double(int dtype, void *data, int64_t i, double x)
{
	switch (dtype) {
	case CHOIR_F32:
		((float *) data)[i] = (float) x;
		break;
	case CHOIR_F64:
		((double *) data)[i] = x;
		break;
	case CHOIR_I32:
		((int32_t *) data)[i] =
				(int32_t) whole(x, -2147483648.0, 2147483647.0, INT32_MIN, INT32_MAX);
		break;
	case CHOIR_I64:
		((int64_t *) data)[i] =
				whole(x, -9223372036854775808.0, 9223372036854775808.0, INT64_MIN, INT64_MAX);
		break;
	case CHOIR_F16:
		((f16 *) data)[i] = (f16) x;
		break;
	case CHOIR_BF16:
		((bf16 *) data)[i] = (bf16) x;
		break;
	case CHOIR_U8:
		((uint8_t *) data)[i] = (uint8_t) whole(x, 0, 255, 0, 255);
		break;
	default:
		((uint8_t *) data)[i] = x != 0;
	}
}

__global__ void cast_kernel(const void *x, int from, void *out, int to, int64_t n)
{
	EACH (i, n)
		store_double(to, out, i, load_as_double(from, x, i));
}

static choir_status run_cast(const choir_kernel_call *c)
{
	const int64_t n = elements(*c->out);
	return launch_each(c, n, cast_kernel, (const void *) c->in[0].data, (int) c->in[0].dtype,
			c->out->data, (int) c->out->dtype, n);
}

template <class U> __global__ void fill_kernel(U *out, U bits, int64_t n)
{
	EACH (i, n)
		out[i] = bits;
}

KERNEL(fill_with)
{
	const int64_t n = elements(*c->out);
	uint64_t bits = 0;
	store_double(c->out->dtype, &bits, 0, attributes<choir_fill_attributes>(c)->value);
	return launch_each(c, n, fill_kernel<T>, made<T>(c), (T) bits, n);
}

static const kernel kernels[] = {
	{ "cast", ALL, run_cast },
	{ "fill", ALL, run_size<fill_with> },
};
const kernel_list cast_kernels = list_of(kernels);

} // namespace choir_cuda
