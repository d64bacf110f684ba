// Casts between all dtypes, fill, and the sum of halves. A cast goes through f64, which holds
// every value but large i64.
#include "launch.h"

namespace choir_cuda
{

// The fields of a floating-point format of 16 bits.
struct half_format {
	int exponent_bits, fraction_bits;
};
static const int F16_EXPONENT = 5, F16_FRACTION = 10, BF16_EXPONENT = 8, BF16_FRACTION = 7;

__host__ __device__ inline half_format format_of(int dtype)
{
	return dtype == CHOIR_F16 ? half_format{ F16_EXPONENT, F16_FRACTION }
							  : half_format{ BF16_EXPONENT, BF16_FRACTION };
}

// Rounds once, to nearest, ties to even.
__host__ __device__ inline uint16_t narrow_half(double x, half_format f)
{
	union {
		double d;
		uint64_t u;
	} v;
	v.d = x;
	const uint16_t sign = (uint16_t) (v.u >> 63 << 15);
	const int bias = (1 << (f.exponent_bits - 1)) - 1, most = (1 << f.exponent_bits) - 1;
	const uint16_t infinite = (uint16_t) (most << f.fraction_bits);
	if (x != x)
		return (uint16_t) (sign | infinite | 1u << (f.fraction_bits - 1));
	const int e = (int) (v.u >> 52 & 2047) - 1023;
	const uint64_t fraction = (v.u & (((uint64_t) 1 << 52) - 1)) | (uint64_t) 1 << 52;
	if (e == 1024 || e > bias)
		return (uint16_t) (sign | infinite);
	int shift = 52 - f.fraction_bits;
	if (e < 1 - bias) // below the least normal number
		shift += 1 - bias - e;
	if (shift > 54 || (v.u << 1) == 0)
		return sign;
	const uint64_t half = (uint64_t) 1 << (shift - 1), rest = fraction & ((half << 1) - 1);
	uint64_t kept = fraction >> shift;
	kept += rest > half || (rest == half && (kept & 1) != 0);
	const int exponent = e < 1 - bias ? 0 : e + bias - 1; // the hidden bit adds the rest
	const uint64_t bits = ((uint64_t) (exponent < 0 ? 0 : exponent) << f.fraction_bits) + kept;
	return (uint16_t) (sign | (bits > infinite ? infinite : bits));
}

__host__ __device__ inline double widen_half(uint16_t h, half_format f)
{
	const int bias = (1 << (f.exponent_bits - 1)) - 1, most = (1 << f.exponent_bits) - 1;
	const int exponent = h >> f.fraction_bits & most;
	const double fraction = (double) (h & ((1u << f.fraction_bits) - 1u));
	double value = ldexp(exponent == 0 ? fraction : fraction + (double) (1 << f.fraction_bits),
			(exponent == 0 ? 1 : exponent) - bias - f.fraction_bits);
	if (exponent == most)
		value = fraction != 0 ? (double) NAN : (double) INFINITY;
	return (h & 0x8000) != 0 ? -value : value;
}

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
	case CHOIR_BF16:
		return widen_half(((const uint16_t *) data)[i], format_of(dtype));
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
	case CHOIR_BF16:
		((uint16_t *) data)[i] = narrow_half(x, format_of(dtype));
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

// The operands of a sum of halves broadcast. The sum is made in f32 and rounded once more.
__global__ void add_halves_kernel(
		const uint16_t *a, const uint16_t *b, uint16_t *out, int64_t n, nest shape, int dtype)
{
	EACH (i, n) {
		int64_t at[MAX_OPERANDS];
		shape.find(i, at);
		const float sum =
				(float) load_as_double(dtype, a, at[0]) + (float) load_as_double(dtype, b, at[1]);
		store_double(dtype, out, i, (double) sum);
	}
}

static choir_status run_add_halves(const choir_kernel_call *c)
{
	const int64_t n = elements(*c->out);
	nest shape = nest_over(&c->out->shape);
	set_broadcast(&shape, 0, &c->in[0].shape);
	set_broadcast(&shape, 1, &c->in[1].shape);
	return launch_each(c, n, add_halves_kernel, (const uint16_t *) c->in[0].data,
			(const uint16_t *) c->in[1].data, (uint16_t *) c->out->data, n, shape,
			(int) c->in[0].dtype);
}

template <class U> __global__ void fill_kernel(U *out, U bits, int64_t n)
{
	EACH (i, n)
		out[i] = bits;
}

struct fill_with {
	template <class U> static choir_status run(const choir_kernel_call *c)
	{
		const int64_t n = elements(*c->out);
		uint64_t bits = 0;
		store_double(
				c->out->dtype, &bits, 0, ((const choir_fill_attributes *) c->attributes)->value);
		return launch_each(c, n, fill_kernel<U>, (U *) c->out->data, (U) bits, n);
	}
};

static const kernel kernels[] = {
	{ "cast", ALL, run_cast, NULL, NULL },
	{ "add", HALVES, run_add_halves, NULL, NULL },
	{ "fill", ALL, run_size<fill_with>, NULL, NULL },
};
const kernel_list cast_kernels = list_of(kernels);

} // namespace choir_cuda
