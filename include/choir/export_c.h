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
	// Preparation of an f32 input before the first layer: it is multiplied by scale (0: 1);
	// then, unless both are NULL, mean and deviation are applied as by
	// choir_dataset_standardize.
	double scale;
	const float *mean, *deviation;
} choir_export_options;
// Writes a layer as one C file: its formula for one example in evaluation (no dropout, fixed
// moving statistics), and the values of its variables. The file is C11 and also C++17, allocates
// no memory, and needs only libm. Its first comment says how to call it. Results are those of
// the plain kernels, bit by bit.
//
// input is the shape of one example, without the n of layers: f32; or u8 or i32 [positions],
// indices for an embedding. A call of the exported function may have fewer positions; its result
// is that of the last one. path appears whole or stays as it was. In cross-replica context.
// Threads: the program's, while no run is under way.
//
// CHOIR_UNSUPPORTED: a layer that cannot be exported; sizes larger than an int. CHOIR_INVALID:
// an input that does not fit the layer; a name that is no identifier. CHOIR_STATE: a variable is
// undefined.
CHOIR_MUST_CHECK choir_status choir_layer_export_c(choir_layer *l, choir_dtype dtype,
		choir_shape input, const choir_export_options *o, const char *path);

CHOIR_C_END
