// Decimal numbers to binary ones. Rounding is exact: the bits are those of strtod and strtof in
// the C locale, in any locale and floating-point environment.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
	uint64_t digits; // as a whole number, without the point
	int exponent; // the value is digits times 10 to this power
	bool negative;
	bool whole; // written without point and exponent
	bool inexact; // more than 19 digits, of which digits has the first
	const char *text, *end;
} chi_decimal;

// Reads the longest number at text: sign, digits, point, digits, exponent. The byte after it, e.g.
// zero, must not continue it. False: there is no number.
bool chi_decimal_read(const char *text, chi_decimal *d);
// Gives the nearest value; infinite if out of range. False: it has more than 1000 bytes.
bool chi_decimal_f64(const chi_decimal *d, double *out);
bool chi_decimal_f32(const chi_decimal *d, float *out);
// Gives the value. False: not whole, or out of range.
bool chi_decimal_i64(const chi_decimal *d, int64_t *out);
