// Layers: variables and the formula that uses them. A layer is applied in the same way in a
// replica, a merge call or a program's own frame: the result belongs to the frame of the input,
// and variables are read as that frame sees them. All layers compute in f32. Images are [n, h,
// w, c], and n may be 0. Options may be NULL: all defaults.
//
// Ownership: a layer belongs to the strategy that is current when it is made.
// Variables: those of a layer "hidden" are "hidden/kernel" and "hidden/bias", as in Keras, also
// in a weights file. A kernel begins with Glorot uniform values (Glorot and Bengio 2010), drawn
// from the strategy's seed and the variable's name. A bias begins at zero.
// Errors: a constructor fails with CHOIR_INVALID for a name that is missing or in use, and for
// impossible sizes; no variable is made then.
// Threads: constructors as choir_variable_new; getters any.
#pragma once

#include "nn.h"
#include "variable.h"

CHOIR_C_BEGIN

typedef struct choir_layer choir_layer;

// activation(x kernel + bias): [n, .., in] gives [n, .., out]. kernel is [in, out], bias [out].
choir_layer *choir_dense_new(
		const char *name, int64_t in, int64_t out, choir_activation activation);
// x kernel: a dense layer without bias and activation.
choir_layer *choir_dense_no_bias_new(const char *name, int64_t in, int64_t out);
// activation(choir_conv2d(x, kernel) + bias): [n, h, w, in] gives [n, oh, ow, out]. "name/kernel"
// is [kernel, kernel, in / groups, out], bias [out]. For the options and oh see nn.h.
choir_layer *choir_conv2d_new(
		const char *name, int64_t in, int64_t out, int kernel, const choir_conv_options *o);
// The same with choir_conv1d: [n, w, in] gives [n, ow, out], and "name/kernel" is [kernel, in /
// groups, out].
choir_layer *choir_conv1d_new(
		const char *name, int64_t in, int64_t out, int kernel, const choir_conv_options *o);
// The largest element, or the mean, of each window of size x size pixels, at a distance of
// stride (0: size): [n, h, w, c] gives [n, (h - size) / stride + 1, (w - size) / stride + 1, c],
// rounded down. No variables, no name.
choir_layer *choir_max_pool2d_new(int size, int stride);
choir_layer *choir_average_pool2d_new(int size, int stride);
// The mean of all pixels: [n, h, w, c] gives [n, c]. No variables, no name.
choir_layer *choir_global_average_pool2d_new(void);

// Normalization (nn.h). Variables have Keras' names: "name/gamma" begins at one, "name/beta" at
// zero; both are [channels]. epsilon 0: 1e-3; CHOIR_ZERO: 0.

// choir_layer_norm of [.., channels].
choir_layer *choir_layer_normalization_new(const char *name, int64_t channels, double epsilon);
// choir_rms_norm of [.., channels], without beta.
choir_layer *choir_rms_normalization_new(const char *name, int64_t channels, double epsilon);
typedef struct {
	size_t size;
	double momentum, epsilon; // 0: 0.99, 1e-3; CHOIR_ZERO: 0
	choir_toggle over_replicas; // off; on: of the global batch, with two sync points a step
} choir_batch_normalization_options;
// choir_batch_norm of [.., channels]. If a tape records, it uses the batch's statistics, and the
// moving statistics "name/moving_mean" (from 0) and "name/moving_variance" (from 1) move towards
// them by 1 - momentum; those of a replica without examples do not move, unless over_replicas is
// on. If no tape records, it uses the moving statistics. These are ON_READ variables with MEAN:
// each replica has its own, and a read outside of replicas, or a save, gives the mean.
choir_layer *choir_batch_normalization_new(
		const char *name, int64_t channels, const choir_batch_normalization_options *o);

// Sequences [n, positions, width]

// choir_gather of "name/embeddings" [rows, width], which begins normally distributed with
// standard deviation 0.02: indices [..] give [.., width].
choir_layer *choir_embedding_new(const char *name, int64_t rows, int64_t width);
// Multiplies x [.., width] by the transposed matrix of an embedding layer: gives [.., rows]
// (weight tying; Press and Wolf 2017, arXiv:1608.05859). No variables of its own.
choir_layer *choir_tied_embedding_new(choir_layer *embedding);
// Adds to x, at each position, the position's row of "name/embeddings" [places, width], which
// begins like an embedding's. x has at most places positions.
choir_layer *choir_position_embedding_new(const char *name, int64_t places, int64_t width);
// choir_self_attention between two dense layers without activation: "name/qkv", to 3 width, and
// "name/output", to width; each has a kernel and a bias. causal: off unless CHOIR_ON.
choir_layer *choir_self_attention_new(
		const char *name, int64_t width, int64_t heads, choir_toggle causal);
// choir_lstm and choir_gru (nn.h) from zero states: [n, t, in] gives [n, t, units].
// "name/kernel" and "name/recurrent_kernel" begin Glorot uniform, "name/bias" at zero, except at
// one for the LSTM's forget gate. The GRU also has "name/recurrent_bias".
choir_layer *choir_lstm_new(const char *name, int64_t in, int64_t units);
choir_layer *choir_gru_new(const char *name, int64_t in, int64_t units);
// The last time step: [n, t, ..] gives [n, ..]. No variables, no name.
choir_layer *choir_last_timestep_new(void);

// Other layers

// Flattens examples: [n, ...] becomes [n, product of the rest], as a view.
choir_layer *choir_flatten_new(void);
// choir_dropout, with a seed made of name.
choir_layer *choir_dropout_new(const char *name, double rate);
// Applies n layers of one strategy one after another; n may be 0. The array is copied.
choir_layer *choir_sequential_new(size_t n, choir_layer *const layers[]);
// activation(inside(x) + shortcut(x)) (He et al. 2015, arXiv:1512.03385); shortcut NULL: x
// itself. Its variables are those of inside, then those of shortcut.
choir_layer *choir_residual_new(
		choir_layer *inside, choir_layer *shortcut, choir_activation activation);
choir_layer *choir_activation_new(choir_activation activation);

// Applies the layer to x, in x's frame. A failure names the layer: CHOIR_INVALID for a shape or
// dtype that does not fit, CHOIR_STATE for the frame of another strategy's replica.
choir_tensor *choir_layer_apply(choir_layer *l, choir_tensor *x);
// The number of variables of the layer, including those of layers in it.
int choir_layer_variables(const choir_layer *l);
// The index-th variable, in the order in which the layer's comment names them; for sequential
// and residual those of their layers, in order.
choir_variable *choir_layer_variable(choir_layer *l, int index);

CHOIR_C_END

#include "export_c.h"
