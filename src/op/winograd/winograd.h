// Convolutions with filters of 3 x 3 pixels by Winograd's minimal filtering (Winograd 1980; Lavin
// and Gray 2016, arXiv:1509.09308): tiles of 4 x 4 pixels of x and the filter are transformed, so
// that 16 products of matrices [tiles, channels] make what takes 36 otherwise, and what comes out
// is transformed back to tiles of 2 x 2 pixels. Transforms only add, subtract and halve, so little
// accuracy is lost. The loops are compiled for each instruction set with fused multiply-adds.
#pragma once

#include "op/kernel_list.h"

enum {
	CHI_WINOGRAD_PLACES = 16, // of a transformed tile
	CHI_WINOGRAD_ROWS = 8 // numbers of rows of products are multiples of it
};

// A transformed value has its places so many floats apart. Channels are whole vectors.
typedef struct {
	int64_t width; // floats of a vector

	// Of one tile of x, of which pixel points to 4 x 4 pixels of c channels, four places: a row of
	// the transformed tile, to one row of v each.
	void (*input)(float *v, int64_t apart, const float *const pixel[16], int row, int64_t c);
	// The filter [3, 3, n], where n is c times out.
	void (*filter)(float *u, int64_t apart, const float *filter, int64_t n);
	// m [rows, n] = v [rows, k] u [k, n].
	void (*gemm)(float *m, const float *v, const float *u, int64_t rows, int64_t k, int64_t n);
	// One row of m, of n channels, to 2 x 2 pixels; bias may be NULL.
	void (*output)(float *const pixel[4], const float *m, int64_t apart, const float *bias,
			bool relu, int64_t n);

	// Of the gradient of 2 x 2 pixels of n channels the same four places, to one row of w each.
	void (*gradient)(float *w, int64_t apart, const float *const pixel[4], int row, int64_t n);
	// u [k, n] += v^T w, of rows rows, k of v's columns.
	void (*add_gemm)(float *u, const float *v, const float *w, int64_t rows, int64_t k, int64_t n);
	// The gradient of a filter [3, 3, n] from that of the transformed one.
	void (*filter_gradient)(float *out, const float *u, int64_t apart, int64_t n);
} chi_winograd_loops;

#ifdef CHI_HAS_X86_KERNELS
extern const chi_winograd_loops chi_winograd_avx2, chi_winograd_avx512;
#endif

chi_kernel_list chi_winograd_list(size_t index);
