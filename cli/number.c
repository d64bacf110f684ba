// Elements of every dtype as doubles, and shapes as text.
#include "number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// IEEE half precision: 1 sign bit, 5 exponent bits, 10 fraction bits.
static double of_f16(uint16_t bits)
{
	const int exponent = bits >> 10 & 31, fraction = bits & 1023;
	const double size = exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
			: exponent == 0			   ? ldexp(fraction, -24)
									   : ldexp(1024 + fraction, exponent - 25);
	return bits >> 15 != 0 ? -size : size;
}

// bfloat16: the upper half of a float.
static double of_bf16(uint16_t bits)
{
	const uint32_t wide = (uint32_t) bits << 16;
	float value;
	memcpy(&value, &wide, sizeof value);
	return (double) value;
}

double number_at(choir_dtype dtype, const void *data, int64_t i)
{
	switch (dtype) {
	case CHOIR_F32:
		return (double) ((const float *) data)[i];
	case CHOIR_F64:
		return ((const double *) data)[i];
	case CHOIR_F16:
		return of_f16(((const uint16_t *) data)[i]);
	case CHOIR_BF16:
		return of_bf16(((const uint16_t *) data)[i]);
	case CHOIR_I32:
		return ((const int32_t *) data)[i];
	case CHOIR_I64:
		return (double) ((const int64_t *) data)[i];
	case CHOIR_U8:
	case CHOIR_BOOL:
		return ((const uint8_t *) data)[i];
	}
	return NAN;
}

int number_bytes(choir_dtype dtype)
{
	switch (dtype) {
	case CHOIR_F64:
	case CHOIR_I64:
		return 8;
	case CHOIR_F32:
	case CHOIR_I32:
		return 4;
	case CHOIR_F16:
	case CHOIR_BF16:
		return 2;
	case CHOIR_U8:
	case CHOIR_BOOL:
		break;
	}
	return 1;
}

const char *shape_text(const choir_shape *shape, char text[SHAPE_TEXT])
{
	size_t at = (size_t) snprintf(text, SHAPE_TEXT, "[");
	for (int k = 0; k < shape->rank; k++) {
		at += (size_t) snprintf(text + at, SHAPE_TEXT - at, "%s", k == 0 ? "" : ", ");
		at += shape->dim[k] == CHOIR_UNKNOWN
				? (size_t) snprintf(text + at, SHAPE_TEXT - at, "?")
				: (size_t) snprintf(text + at, SHAPE_TEXT - at, "%lld", (long long) shape->dim[k]);
	}
	snprintf(text + at, SHAPE_TEXT - at, "]");
	return text;
}

bool all_finite(const float *values, int64_t n)
{
	bool finite = true;
	for (int64_t i = 0; i < n; i++)
		finite = finite && isfinite(values[i]);
	return finite;
}
