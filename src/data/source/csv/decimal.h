// Exactly rounded: the bits are those of strtod and strtof in the C locale, in any locale and
// floating-point environment.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
	uint64_t digits;
	int exponent;
	bool negative;
	bool whole;
	bool inexact;
	char point;
	const char *text, *end;
} chi_decimal;

// The longest number, which the next byte must not continue.
bool chi_decimal_read_with(const char *text, char point, chi_decimal *d);
static inline bool chi_decimal_read(const char *text, chi_decimal *d)
{
	return chi_decimal_read_with(text, '.', d);
}
// Infinite if out of range. False: more than 1000 bytes.
bool chi_decimal_f64(const chi_decimal *d, double *out);
bool chi_decimal_f32(const chi_decimal *d, float *out);
// False: not whole, or out of range.
bool chi_decimal_i64(const chi_decimal *d, int64_t *out);
// Also of 1.0 and 2e3.
bool chi_decimal_whole(const chi_decimal *d, int64_t *out);
