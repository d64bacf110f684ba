// Layers: variables and the formula that uses them. A layer belongs to the strategy that is
// current where it is made and is freed with it, so make layers once, in the strategy's scope. It
// is applied alike in a replica, a merge call or a program's own frame: the result belongs to its
// input's frame, and the variables are read as that frame sees them. All compute in f32, images
// are [n, h, w, c], and n may be 0. One's own layer is a struct and a function that calls
// operations.
//
// Names: the variables of a layer "hidden" are "hidden/kernel" and "hidden/bias", as in Keras;
// they are what a weights file holds. Kernels begin Glorot uniform (Glorot and Bengio 2010), drawn
// from the strategy's seed and their name; biases begin at zero.
// Errors: constructors return NULL, and choir_error says why: CHOIR_INVALID for a name that is
// missing or in use and for sizes that cannot be; then no variable was made. A NULL layer or
// tensor flows through as NULL and keeps the first cause.
// Threads: making, as making a variable; applying, the thread of the input's frame; the getters,
// any.
#pragma once

#include "variable.h"

CHOIR_C_BEGIN

typedef struct choir_layer choir_layer;
typedef enum {
	CHOIR_LINEAR = 0,
	CHOIR_RELU,
	CHOIR_TANH,
	CHOIR_SIGMOID,
	CHOIR_GELU
} choir_activation;

// activation(x kernel + bias): [n, in] gives [n, out]. kernel is [in, out], bias [out].
choir_layer *choir_dense_new(
		const char *name, int64_t in, int64_t out, choir_activation activation);
typedef struct {
	size_t size;
	int stride; // 0: 1
	int padding; // zeros around the image, pixels a side; CHOIR_NONE: SAME, as in TensorFlow
	choir_activation activation;
	int dilation; // 0: 1, none
	int64_t groups; // of channels, which divide in and out; 0: 1
	int before, after; // more zeros, above and left, below and right; not with SAME
	choir_toggle bias; // on
} choir_conv2d_options;
// activation(x * kernel + bias), a cross-correlation: [n, h, w, in] gives [n, oh, ow, out], where
// oh is (h + 2 padding - kernel) / stride + 1, rounded down, or with SAME h / stride, rounded up.
// The filter "name/kernel" is [kernel, kernel, in / groups, out], bias [out]. With dilation the
// kernel counts as (kernel - 1) dilation + 1 pixels wide. The formula is choir_convolution's
// (nn.h). NULL options: all defaults.
choir_layer *choir_conv2d_new(const char *name, int64_t in, int64_t out, int kernel,
		const choir_conv2d_options *o);
// The same of sequences: [n, w, in] gives [n, ow, out], the filter is [kernel, in / groups, out].
// With before (kernel - 1) dilation nothing is seen of what comes later.
choir_layer *choir_conv1d_new(
		const char *name, int64_t in, int64_t out, int kernel, const choir_conv2d_options *o);
// The largest element, or the mean, of each window of size by size pixels, a stride apart (0:
// size): [n, h, w, c] gives [n, (h - size) / stride + 1, (w - size) / stride + 1, c], rounded
// down. No variables, no name.
choir_layer *choir_max_pool2d_new(int size, int stride);
choir_layer *choir_average_pool2d_new(int size, int stride);
// [n, ...] seen as [n, product of the rest]; nothing is copied.
choir_layer *choir_flatten_new(void);
// Sets each element to 0 with probability rate, 0 or more and less than 1, and divides the others
// by 1 - rate (Srivastava et al. 2014), where a tape records; x itself where none does. Which
// elements follows from the strategy's seed, the step, the replica and name, not from devices or
// threads.
choir_layer *choir_dropout_new(const char *name, double rate);
// n layers of one strategy, one applied to what the one before gave; n may be 0. The array is
// copied. The layers stay what they are and may be used in other places as well.
choir_layer *choir_sequential_new(size_t n, choir_layer *const layers[]);

// The layer's formula on x, in x's frame. NULL: x was NULL, or the frame has the failure, which
// names the layer: CHOIR_INVALID for a shape or dtype that does not fit, CHOIR_STATE for a frame
// of another strategy's replica.
choir_tensor *choir_layer_apply(choir_layer *l, choir_tensor *x);
// How many variables the layer has, those of the layers inside included; 0 for NULL.
int choir_layer_variables(const choir_layer *l);
// The index-th: of dense and conv2d the kernel and the bias, of sequential those of its layers in
// order. It belongs to its strategy. NULL: there is none (CHOIR_INVALID).
choir_variable *choir_layer_variable(choir_layer *l, int index);

CHOIR_C_END
