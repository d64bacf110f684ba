// For sizes from files and callers. False: an overflow; *out is unchanged.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool chi_size_add(size_t a, size_t b, size_t *out)
{
	size_t sum;
	if (__builtin_add_overflow(a, b, &sum))
		return false;
	*out = sum;
	return true;
}

static inline bool chi_size_multiply(size_t a, size_t b, size_t *out)
{
	size_t product;
	if (__builtin_mul_overflow(a, b, &product))
		return false;
	*out = product;
	return true;
}

static inline bool chi_int64_add(int64_t a, int64_t b, int64_t *out)
{
	int64_t sum;
	if (__builtin_add_overflow(a, b, &sum))
		return false;
	*out = sum;
	return true;
}

static inline bool chi_int64_multiply(int64_t a, int64_t b, int64_t *out)
{
	int64_t product;
	if (__builtin_mul_overflow(a, b, &product))
		return false;
	*out = product;
	return true;
}

// to is a power of two.
static inline bool chi_size_round_up(size_t size, size_t to, size_t *out)
{
	size_t sum;
	if (!chi_size_add(size, to - 1, &sum))
		return false;
	*out = sum & ~(to - 1);
	return true;
}
