// Exactly rounded: in any locale and floating-point environment, the bits are those of strtod and
// strtof in the C locale.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
	uint64_t digits; // without the point
	int exponent; // power of ten
	bool negative;
	bool whole; // no point, no exponent
	bool inexact; // more than 19; digits has the first
	const char *text, *end;
} chi_decimal;

// The longest number at text. The byte after it, e.g. zero, must not continue it.
bool chi_decimal_read(const char *text, chi_decimal *d);
// Infinite if out of range. False: the text has more than 1000 bytes.
bool chi_decimal_f64(const chi_decimal *d, double *out);
bool chi_decimal_f32(const chi_decimal *d, float *out);
// False: not whole, or out of range.
bool chi_decimal_i64(const chi_decimal *d, int64_t *out);
