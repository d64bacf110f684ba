// image_resize.c's loops.
#pragma once

#include "data/source/image/image.h"

enum { CHI_RESIZE_BITS = 22 };

// Output i: the sum of weight[i * taps + k] * input[first[2 * i] + k], for first[2 * i + 1] values
// of k.
typedef struct {
	int64_t outputs, taps;
	int64_t *first;
	int32_t *weight;
} chi_resize_axis;

typedef struct {
	// May read one byte behind the row.
	void (*rgb)(const chi_resize_axis *a, const uint8_t *from, uint8_t *to);
	// From n rows of width values.
	void (*column)(
			const int32_t *weight, int64_t n, const uint8_t *from, int64_t width, uint8_t *to);
} chi_resize_loops;

typedef int32_t chi_resize_sums __attribute__((vector_size(16)));

extern const chi_resize_loops chi_resize_baseline;
#ifdef CHI_HAS_X86_KERNELS
extern const chi_resize_loops chi_resize_avx2;
#endif
