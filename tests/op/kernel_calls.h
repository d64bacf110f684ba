// Calling kernels by their lists, without registry or devices, on memory of exactly the needed
// size so that the sanitizers see every step beyond it.
#pragma once

#include "op/plain/plain.h"

// A buffer on the heap. Its elements are 0.
choir_buffer kernels_buffer(choir_dtype dtype, choir_shape shape);
void kernels_free(size_t n, choir_buffer buffers[]);
double kernels_get(const choir_buffer *b, int64_t i);
void kernels_set(choir_buffer *b, int64_t i, double value);

// Numbers in [low, high), from a seed that moves on; and integers in [low, high].
double kernels_number(uint64_t *seed, double low, double high);
int64_t kernels_integer(uint64_t *seed, int64_t low, int64_t high);
// Fills a buffer so, rounded as its dtype needs.
void kernels_fill(choir_buffer *b, uint64_t *seed, double low, double high);

// Runs the kernel of a list with scratch memory of the size it asks for. CHOIR_UNSUPPORTED: there
// is none, or it scores 0.
choir_status kernels_run(chi_kernel_lists *lists, const char *operation, size_t n,
		choir_buffer in[], choir_buffer *out, const void *attributes);
// The same for the plain kernels; fails the test unless it succeeds.
void kernels_plain(const char *operation, size_t n, choir_buffer in[], choir_buffer *out,
		const void *attributes);

// Fails the test unless element i of got is near what is expected.
void kernels_assert_near(
		const char *what, const choir_buffer *got, int64_t i, double expected, double tolerance);
