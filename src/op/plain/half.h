// Without branches, so that loops vectorise. To nearest even; every NaN becomes quiet.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "op/plain/bits.inc"

static inline float chi_f32_of_f16(uint16_t h)
{
	const uint32_t magnitude = (uint32_t) (h & 0x7fff) << 13;
	const uint32_t sign = (uint32_t) (h & 0x8000) << 16;
	// With f32's bias the number is 2^112 too small.
	const uint32_t finite = chi_bits_of_float(chi_float_of_bits(magnitude) * 0x1p112f);
	const uint32_t special = magnitude | 0x7f800000;
	return chi_float_of_bits(sign | (magnitude >= 0x0f800000 ? special : finite));
}

static inline uint16_t chi_f16_of_f32(float f)
{
	const uint32_t bits = chi_bits_of_float(f);
	const uint32_t magnitude = bits & 0x7fffffff;
	const uint32_t sign = bits >> 16 & 0x8000;
	const uint32_t normal = (magnitude + 0x0fff + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
	// Adding 0.5 leaves the rounded denormal in the lowest bits.
	const uint32_t tiny = chi_bits_of_float(chi_float_of_bits(magnitude) + 0.5f) - 0x3f000000;
	uint32_t half = magnitude < 0x38800000 ? tiny : normal;
	half = magnitude >= 0x477ff000 ? 0x7c00 : half; // 65520 and above
	half = magnitude > 0x7f800000 ? 0x7e00 : half;
	return (uint16_t) (sign | half);
}

static inline float chi_f32_of_bf16(uint16_t h)
{
	return chi_float_of_bits((uint32_t) h << 16);
}

static inline uint16_t chi_bf16_of_f32(float f)
{
	const uint32_t bits = chi_bits_of_float(f);
	const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
	return (uint16_t) ((isnan(f) ? bits | 0x400000 : rounded) >> 16); // one shift: vectors
}

// Rounds to odd, so that rounding again is as rounding once.
static inline float chi_f32_odd_of_f64(double d)
{
	const float f = (float) d;
	const double back = (double) f;
	const uint32_t bits = chi_bits_of_float(f);
	if (back == d || isnan(d) || bits & 1)
		return f;
	return chi_float_of_bits(fabs(back) > fabs(d) ? bits - 1 : bits + 1);
}
