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
	CHOIR_GELU, // choir_gelu, the exact form
	CHOIR_GELU_TANH, // choir_gelu_tanh, its approximation
	CHOIR_SILU
} choir_activation;

// activation(x kernel + bias): [n, .., in] gives [n, .., out]. kernel is [in, out], bias [out].
choir_layer *choir_dense_new(
		const char *name, int64_t in, int64_t out, choir_activation activation);
// x kernel, without a bias.
choir_layer *choir_projection_new(const char *name, int64_t in, int64_t out);
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
choir_layer *choir_conv2d_new(
		const char *name, int64_t in, int64_t out, int kernel, const choir_conv2d_options *o);
// The same of sequences: [n, w, in] gives [n, ow, out], the filter is [kernel, in / groups, out].
// With before (kernel - 1) dilation nothing is seen of what comes later.
choir_layer *choir_conv1d_new(
		const char *name, int64_t in, int64_t out, int kernel, const choir_conv2d_options *o);
// The largest element, or the mean, of each window of size by size pixels, a stride apart (0:
// size): [n, h, w, c] gives [n, (h - size) / stride + 1, (w - size) / stride + 1, c], rounded
// down. No variables, no name.
choir_layer *choir_max_pool2d_new(int size, int stride);
choir_layer *choir_average_pool2d_new(int size, int stride);
// The mean of all pixels: [n, h, w, c] gives [n, c]. No variables, no name.
choir_layer *choir_global_average_pool2d_new(void);

// Norms (nn.h); their variables are named as in Keras. "name/gamma" begins at one, "name/beta" at
// zero, both [channels]. epsilon 0: 1e-3; CHOIR_NONE: 0.

// choir_layer_norm of [.., channels].
choir_layer *choir_layer_normalization_new(const char *name, int64_t channels, double epsilon);
// choir_rms_norm of [.., channels]; there is no beta.
choir_layer *choir_rms_normalization_new(const char *name, int64_t channels, double epsilon);
typedef struct {
	size_t size;
	double momentum, epsilon; // 0: 0.99, 1e-3; CHOIR_NONE: 0
	choir_toggle over_replicas; // off; on: statistics of the global batch, two meetings a step
} choir_batch_normalization_options;
// choir_batch_norm of [.., channels], where a tape records; "name/moving_mean" and
// "name/moving_variance", from 0 and 1, then move to the batch's by 1 - momentum (not for a
// replica without examples, unless over replicas). Where none records they take the batch's place.
// They are ON_READ variables with MEAN: each replica has its own, and what is read outside, or
// saved, is the mean. NULL options: all defaults.
choir_layer *choir_batch_normalization_new(
		const char *name, int64_t channels, const choir_batch_normalization_options *o);

// Sequences [n, places, width].

// Numbers [..], u8, i32 or i64, of rows of "name/embeddings" [rows, width], which begins normal
// with deviation 0.02: gives [.., width]. CHOIR_INVALID when applied: a number of no row.
choir_layer *choir_embedding_new(const char *name, int64_t rows, int64_t width);
// x [.., width] times the transposed matrix of an embedding layer, which is used a second time so
// (Press and Wolf 2017, arXiv:1608.05859): gives [.., rows]. It has no variables of its own.
choir_layer *choir_tied_new(choir_layer *embedding);
// x and, for each place, its row of "name/embeddings" [places, width], which begins as that of an
// embedding; x may have fewer places.
choir_layer *choir_position_embedding_new(const char *name, int64_t places, int64_t width);
// choir_self_attention between two dense layers without activation, "name/qkv" to 3 width and
// "name/output" to width, with kernel and bias each. causal: off unless CHOIR_ON.
choir_layer *choir_self_attention_new(
		const char *name, int64_t width, int64_t heads, choir_toggle causal);
// choir_lstm and choir_gru (nn.h) from zero states: [n, places, in] gives [n, places, units].
// "name/kernel" and "name/recurrent_kernel" begin Glorot uniform, "name/bias" at zero, but for the
// LSTM's forget gate at one; the GRU has a "name/recurrent_bias", too.
choir_layer *choir_lstm_new(const char *name, int64_t in, int64_t units);
choir_layer *choir_gru_new(const char *name, int64_t in, int64_t units);
// The last place: [n, places, ..] gives [n, ..]. No variables, no name.
choir_layer *choir_last_place_new(void);

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
// activation(inside(x) + shortcut(x)); shortcut NULL: x itself (He et al. 2015, arXiv:1512.03385).
// Its variables are those of inside, then of shortcut.
choir_layer *choir_residual_new(
		choir_layer *inside, choir_layer *shortcut, choir_activation activation);
// An activation alone. No variables, no name.
choir_layer *choir_activation_new(choir_activation activation);

// The layer's formula on x, in x's frame. NULL: x was NULL, or the frame has the failure, which
// names the layer: CHOIR_INVALID for a shape or dtype that does not fit, CHOIR_STATE for a frame
// of another strategy's replica.
choir_tensor *choir_layer_apply(choir_layer *l, choir_tensor *x);
// How many variables the layer has, those of the layers inside included; 0 for NULL.
int choir_layer_variables(const choir_layer *l);
// The index-th: in the order in which the layer's description above names them; of sequential and
// residual those of their layers in order. It belongs to its strategy. NULL: there is none
// (CHOIR_INVALID).
choir_variable *choir_layer_variable(choir_layer *l, int index);

typedef struct {
	size_t size;
	const char *name; // what the file defines begins with it, a C identifier; NULL: "model"
	// Lines for the comment that the file begins with; what is not printable ASCII, and
	// backslashes, become '?'. NULL: none.
	const char *about;
	// What is done with the elements of an f32 input before the first layer: times scale (0: 1),
	// and, as choir_dataset_standardize does, less a mean and over a deviation of its own each;
	// NULL: not.
	double scale;
	const float *mean, *deviation;
} choir_export_options;
// Writes the layer's formula on one example (evaluation: dropout off, moving statistics fixed) and
// the values of its variables as one file of C11 that is also C++17, allocates nothing and needs
// nothing but libm. The comment it begins with says how it is called; its results are to the bit
// those of the plain kernels. input is the shape of one example, without the n of layers: f32; or
// u8 or i32 [places], numbers for an embedding, of which there may be fewer, and then the result
// is that of the last place. path appears whole or stays as it was. Cross-replica context;
// threads: the program's, while no run is under way.
// CHOIR_UNSUPPORTED: a layer of which there is no C, sizes beyond what an int can count.
// CHOIR_INVALID: an input that does not fit the layer, a name that is no identifier; CHOIR_IO: the
// system refused, and why; CHOIR_STATE: a variable is undefined.
CHOIR_MUST_CHECK choir_status choir_layer_export_c(choir_layer *l, choir_dtype dtype,
		choir_shape input, const choir_export_options *o, const char *path);

CHOIR_C_END
