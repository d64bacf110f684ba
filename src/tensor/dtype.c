// Element types: names, sizes, and single elements as doubles.
#include "tensor/tensor.h"

#include <math.h>
#include <string.h>

static const struct {
	const char *name;
	size_t size;
	bool is_float;
} types[] = {
	[CHOIR_F32] = { "f32", 4, true },
	[CHOIR_F64] = { "f64", 8, true },
	[CHOIR_I32] = { "i32", 4, false },
	[CHOIR_I64] = { "i64", 8, false },
	[CHOIR_U8] = { "u8", 1, false },
	[CHOIR_BOOL] = { "bool", 1, false },
	[CHOIR_F16] = { "f16", 2, true },
	[CHOIR_BF16] = { "bf16", 2, true },
};

static bool is_known(choir_dtype dtype)
{
	return (unsigned) dtype < sizeof(types) / sizeof(types[0]);
}

const char *choir_dtype_name(choir_dtype dtype)
{
	return is_known(dtype) ? types[dtype].name : "unknown";
}

size_t chi_dtype_size(choir_dtype dtype)
{
	return is_known(dtype) ? types[dtype].size : 0;
}

bool chi_dtype_is_float(choir_dtype dtype)
{
	return is_known(dtype) && types[dtype].is_float;
}

// All limits are powers of two or their negatives, exact as doubles.
bool chi_dtype_holds(choir_dtype dtype, double value)
{
	if (chi_dtype_is_float(dtype))
		return true;
	if (!(value == trunc(value)))
		return false;
	switch (dtype) {
	case CHOIR_I32:
		return value >= -0x1p31 && value < 0x1p31;
	case CHOIR_I64:
		return value >= -0x1p63 && value < 0x1p63;
	case CHOIR_U8:
		return value >= 0 && value < 256;
	case CHOIR_BOOL:
		return value == 0 || value == 1;
	default:
		return false;
	}
}

static double half_to_double(uint16_t half)
{
	const int exponent = half >> 10 & 31;
	const int mantissa = half & 1023;
	double value;

	if (exponent == 31)
		value = mantissa ? (double) NAN : (double) INFINITY;
	else if (exponent == 0)
		value = ldexp(mantissa, -24);
	else
		value = ldexp(mantissa + 1024, exponent - 25);
	return half & 0x8000 ? -value : value;
}

// Rounds to nearest even, after scaling so that the last place is 1.
static uint16_t half_from_double(double value)
{
	const uint16_t sign = signbit(value) ? 0x8000 : 0;
	const double size = fabs(value);
	int exponent;

	if (isnan(value))
		return sign | 0x7e00;
	if (size >= 65520)
		return sign | 0x7c00;
	frexp(size, &exponent);
	if (exponent < -13 || size == 0)
		exponent = -13;
	// A carry out of the mantissa correctly increments the exponent.
	const double mantissa = nearbyint(ldexp(size, 11 - exponent));
	return (uint16_t) (sign | (uint16_t) ((exponent + 13) * 1024 + (int) mantissa));
}

static uint16_t bfloat_from_float(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	if (isnan(value))
		return (uint16_t) (bits >> 16 | 0x40);
	return (uint16_t) ((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double bfloat_to_double(uint16_t half)
{
	const uint32_t bits = (uint32_t) half << 16;
	float value;
	memcpy(&value, &bits, sizeof(value));
	return (double) value;
}

double chi_dtype_load(choir_dtype dtype, const void *data, int64_t index)
{
	switch (dtype) {
	case CHOIR_F32:
		return (double) ((const float *) data)[index];
	case CHOIR_F64:
		return ((const double *) data)[index];
	case CHOIR_I32:
		return ((const int32_t *) data)[index];
	case CHOIR_I64:
		return (double) ((const int64_t *) data)[index];
	case CHOIR_U8:
	case CHOIR_BOOL:
		return ((const uint8_t *) data)[index];
	case CHOIR_F16:
		return half_to_double(((const uint16_t *) data)[index]);
	case CHOIR_BF16:
		return bfloat_to_double(((const uint16_t *) data)[index]);
	}
	return (double) NAN;
}

void chi_dtype_store(choir_dtype dtype, void *data, int64_t index, double value)
{
	switch (dtype) {
	case CHOIR_F32:
		((float *) data)[index] = (float) value;
		return;
	case CHOIR_F64:
		((double *) data)[index] = value;
		return;
	case CHOIR_I32:
		((int32_t *) data)[index] = (int32_t) value;
		return;
	case CHOIR_I64:
		((int64_t *) data)[index] = (int64_t) value;
		return;
	case CHOIR_U8:
	case CHOIR_BOOL:
		((uint8_t *) data)[index] = (uint8_t) value;
		return;
	case CHOIR_F16:
		((uint16_t *) data)[index] = half_from_double(value);
		return;
	case CHOIR_BF16:
		((uint16_t *) data)[index] = bfloat_from_float((float) value);
		return;
	}
}
