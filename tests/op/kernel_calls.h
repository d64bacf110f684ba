// Calls kernels directly, without registry or devices, on memory of exactly the right size, so
// that sanitizers see every access beyond it.
#pragma once

#include "op/plain/plain.h"

// Allocates a buffer of zeros.
choir_buffer kernels_buffer(choir_dtype dtype, choir_shape shape);
void kernels_free(size_t n, choir_buffer buffers[]);
// Get and set element i as a double.
double kernels_get(const choir_buffer *b, int64_t i);
void kernels_set(choir_buffer *b, int64_t i, double value);

// Draw a number in [low, high), or an integer in [low, high], and advance the seed.
double kernels_number(uint64_t *seed, double low, double high);
int64_t kernels_integer(uint64_t *seed, int64_t low, int64_t high);
// Fills a buffer with such numbers, rounded to its dtype.
void kernels_fill(choir_buffer *b, uint64_t *seed, double low, double high);

// Runs a kernel of these lists with the scratch memory that it asks for. CHOIR_UNSUPPORTED: there
// is none, or its score is 0.
choir_status kernels_run(chi_kernel_lists *lists, const char *operation, size_t n,
		choir_buffer in[], choir_buffer *out, const void *attributes);
// Runs a plain kernel; fails the test if it fails.
void kernels_plain(const char *operation, size_t n, choir_buffer in[], choir_buffer *out,
		const void *attributes);

// Asserts that element i of got is within tolerance of expected.
void kernels_assert_near(
		const char *what, const choir_buffer *got, int64_t i, double expected, double tolerance);
