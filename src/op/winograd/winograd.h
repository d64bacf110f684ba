// 3 x 3 convolutions by minimal filtering (Winograd 1980; Lavin and Gray 2016, arXiv:1509.09308).
// Tiles of 4 x 4 pixels and the filter are transformed; 16 products instead of 36 give tiles of 2
// x 2. Transforms only add, subtract and halve, which costs little accuracy.
#pragma once

#include "op/kernel/kernel_list.h"

enum {
	CHI_WINOGRAD_PLACES = 16, // points of a transformed tile
	CHI_WINOGRAD_ROWS = 8 // rows of products are multiples of this
};

// apart: floats from point to point. Channels are whole vectors.
typedef struct {
	int64_t width;

	// A tile's row: four points, each to a row of v.
	void (*input)(float *v, int64_t apart, const float *const pixel[16], int row, int64_t c);
	// [3, 3, n], n = c out.
	void (*filter)(float *u, int64_t apart, const float *filter, int64_t n);
	// m [rows, n] = v [rows, k] u [k, n]
	void (*gemm)(float *m, const float *v, const float *u, int64_t rows, int64_t k, int64_t n);
	// A row of m to 2 x 2 pixels; bias may be NULL.
	void (*output)(float *const pixel[4], const float *m, int64_t apart, const float *bias,
			bool relu, int64_t n);

	// 2 x 2 pixels: four points, each to a row of w.
	void (*gradient)(float *w, int64_t apart, const float *const pixel[4], int row, int64_t n);
	// u [k, n] += v^T w
	void (*add_gemm)(float *u, const float *v, const float *w, int64_t rows, int64_t k, int64_t n);
	// From that of the transformed filter.
	void (*filter_gradient)(float *out, const float *u, int64_t apart, int64_t n);
} chi_winograd_loops;

#ifdef CHI_HAS_X86_KERNELS
extern const chi_winograd_loops chi_winograd_avx2, chi_winograd_avx512;
#endif

chi_kernel_list chi_winograd_list(size_t index);
