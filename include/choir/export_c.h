// Writes a trained layer as one C file, for programs and machines without Choir.
#pragma once

#include "layer.h"

CHOIR_C_BEGIN

// How the C file is written.
typedef struct {
	size_t size;
	const char *name; // prefix of all names in the file, a C identifier; NULL: "model"
	// Text for the file's first comment; NULL: none. Backslashes, and characters other than
	// printable ASCII, become '?'.
	const char *about;
	// The file multiplies an f32 input by scale (0: 1), then standardizes it
	// (choir_dataset_standardize) unless mean and deviation are NULL.
	double scale;
	const float *mean, *deviation;
	// The mean replaces NaN in the input. Needs .mean. Default: off.
	choir_toggle fill_nan;
	// Of a regression of standardized numbers: the result is multiplied by output_deviation, plus
	// output_mean, one of each per output. NULL: neither.
	const float *output_mean, *output_deviation;
} choir_export_options;
// Writes a layer's variables, and its formula for one example in evaluation (no dropout, fixed
// moving statistics). The file is valid C11 and C++17, allocates no memory, and needs only libm.
// Its first comment explains the call. With -ffp-contract=off it gives the bits of Choir's plain C
// kernels.
//
// input is the shape of one example, without the dimension n. dtype is f32. For an embedding as
// the first layer, input is [positions], dtype u8 or i32; the function also takes fewer positions,
// and gives the last's result. After a failure the file is unchanged. Call this in cross-replica
// context. Threads: one at a time, outside of runs.
//
// CHOIR_UNSUPPORTED: a layer that cannot be exported (bidirectional, group_normalization,
// upsample, conv3d, transposed convolutions, pools of 1 or 3 axes, global_max_pool,
// global_average_pool); a size that does not fit an int. CHOIR_STATE: a variable is undefined.
CHOIR_MUST_CHECK choir_status choir_layer_export_c(choir_layer *l, choir_dtype dtype,
		choir_shape input, const choir_export_options *o, const char *path);

CHOIR_C_END
