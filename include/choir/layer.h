// A layer is a formula with variables. Apply it in a replica, a merge call or a frame of the
// program. It reads its variables into the input's frame (variable.h), and gives the result there,
// in f32 or in a mixed precision (precision.h). Images are [n, h, w, c], and n may be 0.
//
// Variables: a layer "hidden" has "hidden/kernel" and "hidden/bias", as in Keras and in weights
// files. A kernel begins Glorot uniform (variable.h), a bias at 0. Layers without a name have no
// variables.
// Errors: a constructor that fails makes no variable. CHOIR_INVALID: the name is in use.
// Threads: as in variable.h.
#pragma once

#include "nn.h"
#include "precision.h"
#include "replica.h"
#include "variable.h"

CHOIR_C_BEGIN

typedef struct choir_layer choir_layer;

// activation(x kernel + bias): [n, .., in] gives [n, .., out]. kernel is [in, out], bias [out].
choir_layer *choir_dense_new(
		const char *name, int64_t in, int64_t out, choir_activation activation);
// x kernel: a dense layer without bias and activation.
choir_layer *choir_dense_no_bias_new(const char *name, int64_t in, int64_t out);
// activation(choir_conv2d(x, kernel) + bias): [n, h, w, in] gives [n, oh, ow, out] (nn.h).
// "name/kernel" is [kernel, kernel, in / groups, out], bias [out].
choir_layer *choir_conv2d_new(
		const char *name, int64_t in, int64_t out, int kernel, const choir_conv_options *o);
// The same with choir_conv1d: [n, w, in] gives [n, ow, out], and "name/kernel" is [kernel, in /
// groups, out].
choir_layer *choir_conv1d_new(
		const char *name, int64_t in, int64_t out, int kernel, const choir_conv_options *o);
// The same with choir_conv3d: x is [n, d, h, w, in], and "name/kernel" is [kernel, kernel, kernel,
// in / groups, out].
choir_layer *choir_conv3d_new(
		const char *name, int64_t in, int64_t out, int kernel, const choir_conv_options *o);
// The same with choir_conv2d_transpose, choir_conv1d_transpose and choir_conv3d_transpose.
// "name/kernel" is [kernel, .., out / groups, in], with kernel once for each axis.
choir_layer *choir_conv2d_transpose_new(
		const char *name, int64_t in, int64_t out, int kernel, const choir_conv_options *o);
choir_layer *choir_conv1d_transpose_new(
		const char *name, int64_t in, int64_t out, int kernel, const choir_conv_options *o);
choir_layer *choir_conv3d_transpose_new(
		const char *name, int64_t in, int64_t out, int kernel, const choir_conv_options *o);
// Apply choir_max_pool2d and choir_average_pool2d. stride 0: size.
choir_layer *choir_max_pool2d_new(int size, int stride, int padding);
choir_layer *choir_average_pool2d_new(int size, int stride, int padding);
// For sequences [n, w, c] and volumes [n, d, h, w, c].
choir_layer *choir_max_pool1d_new(int size, int stride, int padding);
choir_layer *choir_average_pool1d_new(int size, int stride, int padding);
choir_layer *choir_max_pool3d_new(int size, int stride, int padding);
choir_layer *choir_average_pool3d_new(int size, int stride, int padding);
// Averages over all pixels: [n, h, w, c] gives [n, c].
choir_layer *choir_global_average_pool2d_new(void);
// Apply choir_global_max_pool and choir_global_average_pool.
choir_layer *choir_global_max_pool_new(void);
choir_layer *choir_global_average_pool_new(void);
// Applies choir_upsample.
choir_layer *choir_upsample_new(int64_t factor, choir_interpolation interpolation);

// Normalization (nn.h). The variables are [channels], with Keras' names: "name/gamma" begins at 1,
// "name/beta" at 0. An epsilon of 0 means 1e-3, and CHOIR_ZERO means 0.

// Applies choir_layer_norm to [.., channels].
choir_layer *choir_layer_normalization_new(const char *name, int64_t channels, double epsilon);
// Applies choir_rms_norm, without beta.
choir_layer *choir_rms_normalization_new(const char *name, int64_t channels, double epsilon);
// Applies choir_group_norm to [n, .., channels]. groups divides channels.
choir_layer *choir_group_normalization_new(
		const char *name, int64_t channels, int64_t groups, double epsilon);
typedef struct {
	size_t size;
	double momentum, epsilon; // 0: 0.99 and 1e-3; CHOIR_ZERO: 0
	// On: the statistics are of all replicas, with two sync points a step. Default: off.
	choir_toggle over_replicas;
} choir_batch_normalization_options;
// Applies choir_batch_norm to [.., channels]. While a tape records, it uses the batch's
// statistics, and moves the moving ones towards them by the factor 1 - momentum. Else it uses the
// latter: "name/moving_mean", first 0, and "name/moving_variance", first 1, both ON_READ with
// MEAN. A replica without examples changes its components only if over_replicas is on.
choir_layer *choir_batch_normalization_new(
		const char *name, int64_t channels, const choir_batch_normalization_options *o);

// Sequences [n, positions, width]

// Applies choir_gather to "name/embeddings" [rows, width], which begin random normal with
// deviation 0.02: indices [..] give [.., width].
choir_layer *choir_embedding_new(const char *name, int64_t rows, int64_t width);
// Multiplies x [.., width] by an embedding's transposed matrix; gives [.., rows] (weight tying:
// arXiv:1608.05859).
choir_layer *choir_tied_embedding_new(choir_layer *embedding);
// Adds row i of "name/embeddings" [places, width], which begin as in choir_embedding_new, to
// position i of x, which has at most places positions.
choir_layer *choir_position_embedding_new(const char *name, int64_t places, int64_t width);
// Applies the dense layer "name/qkv" with 3 * width columns, choir_self_attention, and the dense
// layer "name/output" with width columns. Both have a bias, no activation. causal: default off.
choir_layer *choir_self_attention_new(
		const char *name, int64_t width, int64_t heads, choir_toggle causal);
// Apply choir_lstm and choir_gru (nn.h) from zero states: [n, t, in] gives [n, t, units].
// "name/recurrent_kernel" begins Glorot uniform, the LSTM's "name/bias" at 1 for the forget gate.
// The GRU also has "name/recurrent_bias".
choir_layer *choir_lstm_new(const char *name, int64_t in, int64_t units);
choir_layer *choir_gru_new(const char *name, int64_t in, int64_t units);
// Applies forward to x [n, t, ..], and backward in reverse order of time, reverses the latter's
// result, and joins both along the last axis (Schuster, Paliwal 1997). If both layers end with
// choir_last_timestep_new, the results are [n, ..], as in Keras without return_sequences.
choir_layer *choir_bidirectional_new(choir_layer *forward, choir_layer *backward);
// Takes the last time step: [n, t, ..] gives [n, ..].
choir_layer *choir_last_timestep_new(void);

// Other layers

// [n, ...] becomes [n, product of the other dimensions], as a view.
choir_layer *choir_flatten_new(void);
// Applies choir_dropout, with a seed made from name.
choir_layer *choir_dropout_new(const char *name, double rate);
// Applies n layers of one strategy in order. Copies the array.
choir_layer *choir_sequential_new(size_t n, choir_layer *const layers[]);
// activation(inside(x) + shortcut(x)) (arXiv:1512.03385); shortcut NULL: x itself.
choir_layer *choir_residual_new(
		choir_layer *inside, choir_layer *shortcut, choir_activation activation);
choir_layer *choir_activation_new(choir_activation activation);

// Applies the layer to x, in x's frame. A failure names the layer. CHOIR_STATE: x belongs to a
// replica of another strategy.
choir_tensor *choir_layer_apply(choir_layer *l, choir_tensor *x);
// The same for sequences x [n, t, ..] of different lengths (nn.h). Results and gradients are those
// without padding; the result's padding is zeros. choir_last_timestep_new, bidirectional layers
// and choir_global_average_pool_new act on each sequence's time steps. Padding holds finite
// numbers, in an embedding's indices any row. CHOIR_INVALID: the layers contain convolutions,
// other pools, batch or group normalization, upsampling or flatten.
choir_tensor *choir_layer_apply_sequences(choir_layer *l, choir_tensor *x, choir_tensor *lengths);
// Gives the sum of penalties of l's variables with a regularizer (scope.h), divided by the number
// of replicas: a scalar in r's frame, to add to choir_replica_average_loss. A repeated layer
// counts twice. CHOIR_STATE: r belongs to another strategy.
choir_tensor *choir_layer_regularization_loss(choir_layer *l, choir_replica *r);
// Sets the precision of l, and of layers inside it that have none, before l is applied. DEFAULT:
// the frame's. CHOIR_INVALID: AUTO.
CHOIR_MUST_CHECK choir_status choir_layer_set_precision(choir_layer *l, choir_precision p);

// The variables of the layer and those inside it, in the order of the constructors' arguments.
int choir_layer_variables(const choir_layer *l);
choir_variable *choir_layer_variable(choir_layer *l, int index);

CHOIR_C_END

#include "export_c.h"
