// Export to C: writes a trained layer as one C file, for programs and machines without Choir.
#pragma once

#include "layer.h"

CHOIR_C_BEGIN

typedef struct {
	size_t size;
	const char *name; // prefix of all names in the file, a C identifier; NULL: "model"
	// Text for the file's first comment. Backslashes and bytes that are not printable ASCII
	// become '?'. NULL: none.
	const char *about;
	// An f32 input is first multiplied by scale (0: 1). Then mean and deviation, unless both are
	// NULL, are applied as by choir_dataset_standardize.
	double scale;
	const float *mean, *deviation;
} choir_export_options;
// Writes a layer as one C file: the values of its variables, and its formula for one example in
// evaluation (no dropout, fixed moving statistics). The file is C11 and also C++17, allocates no
// memory, and needs only libm. Its first comment says how to call it. Results are those of
// Choir's plain C kernels, bit by bit.
//
// input is the shape of one example, without the dimension n of layers. dtype is f32. If the
// first layer is an embedding, input is [positions] and dtype is u8 or i32. A call of the
// exported function may then have fewer positions; its result is that of the last position. path
// gets the complete file or stays as it was. Call this in cross-replica context.
// Threads: the program's, while no run is under way.
//
// CHOIR_UNSUPPORTED: a layer that cannot be exported; a size that does not fit an int.
// CHOIR_INVALID: an input that does not fit the layer; a name that is no identifier. CHOIR_STATE:
// a variable is undefined.
CHOIR_MUST_CHECK choir_status choir_layer_export_c(choir_layer *l, choir_dtype dtype,
		choir_shape input, const choir_export_options *o, const char *path);

CHOIR_C_END
