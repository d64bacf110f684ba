// Numbers as people write them, -12.5e3, to the nearest number that the machine has. Rounding is
// exact: a text gives the same bits as strtod and strtof of the C locale do, in any locale and
// whatever the floating-point environment is set to.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
	uint64_t digits; // all of them as one whole number, without the point
	int exponent; // the value is digits times 10 to this power
	bool negative;
	bool whole; // neither a point nor an exponent was written
	bool inexact; // more than 19 digits: digits holds the first ones only
	const char *text, *end;
} chi_decimal;

// Reads a number of decimal digits at text as far as it goes: sign, digits, point, digits,
// exponent. What is behind it must be a byte that is none of those (a zero byte, at the end).
// False: there is none.
bool chi_decimal_read(const char *text, chi_decimal *d);
// The nearest value; beyond the largest an infinite one. False: it is written with more than 1000
// bytes.
bool chi_decimal_f64(const chi_decimal *d, double *out);
bool chi_decimal_f32(const chi_decimal *d, float *out);
// False: it is not whole, or not of the 64 bits.
bool chi_decimal_i64(const chi_decimal *d, int64_t *out);
