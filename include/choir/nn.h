// Operations of neural networks, with the rules of op.h. All operands of a call are f32, or all
// are f64.
#pragma once

#include "op.h"

CHOIR_C_BEGIN

// Activations

// The function that a layer or convolution applies to its result.
typedef enum {
	CHOIR_LINEAR = 0, // none
	CHOIR_RELU,
	CHOIR_TANH,
	CHOIR_SIGMOID,
	CHOIR_GELU,
	CHOIR_GELU_TANH,
	CHOIR_SILU
} choir_activation;

// Elementwise.
choir_tensor *choir_relu(choir_tensor *x); // max(x, 0); the gradient at 0 is 0
choir_tensor *choir_tanh(choir_tensor *x);
choir_tensor *choir_sigmoid(choir_tensor *x); // 1 / (1 + exp(-x))
// x (1 + erf(x / sqrt(2))) / 2 (arXiv:1606.08415). In f32, the error of x's factor is at most
// 2e-7.
choir_tensor *choir_gelu(choir_tensor *x);
// GPT-2's approximation of choir_gelu:
//     x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
choir_tensor *choir_gelu_tanh(choir_tensor *x);
// x sigmoid(x), or swish (arXiv:1702.03118).
choir_tensor *choir_silu(choir_tensor *x);
choir_tensor *choir_softplus(choir_tensor *x); // log(1 + exp(x)), without overflow
// max(x, 0) + slope min(x, 0) (Maas, Hannun, Ng 2013). PyTorch's slope is 0.01, Keras' 0.2.
choir_tensor *choir_leaky_relu(choir_tensor *x, double slope);
// x where x > 0, else alpha (exp(x) - 1) (arXiv:1511.07289). Keras' and PyTorch's alpha is 1.
choir_tensor *choir_elu(choir_tensor *x, double alpha);
// exp(x) / sum(exp(x)) along the last axis, without overflow. x is not a scalar.
choir_tensor *choir_softmax(choir_tensor *x);
// x - log(sum(exp(x))) along the last axis, without overflow. x is not a scalar.
choir_tensor *choir_log_softmax(choir_tensor *x);

// Weighted sums of rows

// How rows are combined.
typedef enum {
	CHOIR_COMBINER_MEAN = 0, // divides by the sum of the weights
	CHOIR_COMBINER_SUM,
	CHOIR_COMBINER_SQRTN // divides by the square root of the sum of the squared weights
} choir_combiner;
// Adds each example's n rows times their weights, and divides the sum as combiner says. Division
// by 0 gives 0. rows [.., n, width] and weights [.., n] give [.., width]. With rows of
// choir_gather this is tf.nn.embedding_lookup_sparse; pad examples with ids of weight 0.
choir_tensor *choir_combine_rows(
		choir_tensor *rows, choir_tensor *weights, choir_combiner combiner);

// Convolutions and pools of images
//
// x is [n, h, w, c]: n images of h rows, w columns and c channels. size is a window's height and
// width, stride the distance between windows, in pixels.
// - padding 0 or more: the number of zeros on each side. There are (h + 2 padding - size) / stride
//   + 1 windows along h, rounded down.
// - padding CHOIR_PADDING_SAME: there are h / stride windows along h, rounded up. Half of the
//   zeros that they need are before the image, an odd one after it, as in TensorFlow.
//
// A window must fit into the padded image. In pools, stride is at least 1, and padding is less
// than size.

// Options of convolutions and of convolution layers.
typedef struct {
	size_t size;
	int stride; // 0: 1
	int padding; // 0: no zeros
	int dilation; // distance in x between neighboring filter elements; 0: 1
	int64_t groups; // 0: 1
	// Additional zeros before and after each axis of x between n and c. Not with SAME.
	int pad_before[3], pad_after[3];
	choir_activation activation; // after a layer's bias; default: linear
	choir_toggle bias; // of layers only; default: on
} choir_conv_options;
// Cross-correlates images with filter [kh, kw, c / groups, out]; gives [n, oh, ow, out]:
//     y[i, r, s, o] = sum over p, q, c of
//         x[i, r stride + p dilation - top, s stride + q dilation - left, c] filter[p, q, c, o]
// where x is 0 outside of the image, and top and left are the rows and columns of zeros before it.
// The channels of x and y are in equal groups; channels o of a group use only channels c of this
// group. o->bias is not CHOIR_ON.
choir_tensor *choir_conv2d(choir_tensor *x, choir_tensor *filter, const choir_conv_options *o);
// For sequences [n, w, c] with filter [k, c / groups, out]; gives [n, ow, out]. The convolution is
// causal if pad_before[0] is (k - 1) dilation.
choir_tensor *choir_conv1d(choir_tensor *x, choir_tensor *filter, const choir_conv_options *o);
// For volumes [n, d, h, w, c] with filter [kd, kh, kw, c / groups, out]; gives [n, od, oh, ow,
// out]. The result is the sum of kd convolutions of images.
choir_tensor *choir_conv3d(choir_tensor *x, choir_tensor *filter, const choir_conv_options *o);
// The transposed convolution: the gradient of choir_conv2d with respect to its input. x is [n, h,
// w, c], filter [kh, kw, out / groups, c]; gives [n, oh, ow, out]. oh is h stride for
// CHOIR_PADDING_SAME, else (h - 1) stride + (kh - 1) dilation + 1 minus the padding on both sides,
// as in PyTorch.
choir_tensor *choir_conv2d_transpose(
		choir_tensor *x, choir_tensor *filter, const choir_conv_options *o);
// For sequences [n, w, c] with filter [k, out / groups, c].
choir_tensor *choir_conv1d_transpose(
		choir_tensor *x, choir_tensor *filter, const choir_conv_options *o);
// For volumes [n, d, h, w, c] with filter [kd, kh, kw, out / groups, c].
choir_tensor *choir_conv3d_transpose(
		choir_tensor *x, choir_tensor *filter, const choir_conv_options *o);
// The largest element of each window, or NAN if one is NAN; padding is ignored. The first such
// element, row by row, gets the gradient.
choir_tensor *choir_max_pool2d(choir_tensor *x, int size, int stride, int padding);
// The mean of each window; padding is ignored.
choir_tensor *choir_average_pool2d(choir_tensor *x, int size, int stride, int padding);
// For sequences [n, w, c] and volumes [n, d, h, w, c].
choir_tensor *choir_max_pool1d(choir_tensor *x, int size, int stride, int padding);
choir_tensor *choir_average_pool1d(choir_tensor *x, int size, int stride, int padding);
choir_tensor *choir_max_pool3d(choir_tensor *x, int size, int stride, int padding);
choir_tensor *choir_average_pool3d(choir_tensor *x, int size, int stride, int padding);
// Over all axes but the first and the last: [n, .., c] gives [n, c].
choir_tensor *choir_global_max_pool(choir_tensor *x);
choir_tensor *choir_global_average_pool(choir_tensor *x);

// How an image is enlarged.
typedef enum {
	CHOIR_NEAREST = 0,
	// Linear between the centres of elements, constant beyond the outer centres (PyTorch's
	// align_corners=False).
	CHOIR_BILINEAR
} choir_interpolation;
// Enlarges all axes but the first and the last: [n, h, w, c] gives [n, h factor, w factor, c].
choir_tensor *choir_upsample(choir_tensor *x, int64_t factor, choir_interpolation interpolation);

// Dropout

// Sets each element to 0 with probability rate (0 <= rate < 1), and divides the others by 1 - rate
// (Srivastava et al. 2014). Gives x itself without a tape or if rate is 0. Draws numbers as
// choir_random_normal.
choir_tensor *choir_dropout(choir_tensor *x, double rate, uint64_t seed);

// Attention

// Heads, masks and dropout of attention.
typedef struct {
	size_t size;
	int64_t heads; // 0: 1
	choir_toggle causal; // on: query i sees only keys 0 to i + s - t; default: off
	double scale; // 0: 1 / sqrt(width / heads)
	// Broadcasts to the scores, [n, heads, t, s]; NULL: none. With a bool mask, a query sees the
	// keys where it is true; if it sees none, all weights are equal. A mask of q's dtype is added
	// to the scores.
	choir_tensor *mask;
	double dropout; // rate of choir_dropout of the weights
	uint64_t seed; // of dropout
} choir_attention_options;
// softmax(scale q k^T) v for each example and head (arXiv:1706.03762). A head is width / heads
// columns; heads divides width. q and the result are [n, t, width], k and v [n, s, width]. If
// causal is on, t is at most s. Choir computes scores of 64 queries at a time, and again in the
// backward pass: memory grows with s, or with t s for a mask or dropout.
choir_tensor *choir_attention(
		choir_tensor *q, choir_tensor *k, choir_tensor *v, const choir_attention_options *o);
// The same for qkv [n, t, 3 width], with rows of q, k and v in turn; gives [n, t, width].
choir_tensor *choir_self_attention(choir_tensor *qkv, const choir_attention_options *o);

// Recurrence over sequences x [n, t, in]. The result has the states of all time steps, [n, t, h].

// The first and the last states.
typedef struct {
	size_t size;
	choir_tensor *state, *cell; // first states, [n, h]; NULL: zeros. cell: LSTM only
	// If not NULL, *last_cell becomes the last cell state, [n, h].
	choir_tensor **last_cell;
	// Of sequences of different lengths (below), for *last_cell; NULL: all are t. The states of
	// padding are those of its inputs.
	choir_tensor *lengths;
} choir_recurrent_options;
// The LSTM (Hochreiter, Schmidhuber 1997) with a forget gate (Gers et al. 2000), gates in Keras'
// order:
//     z = x kernel + h_before recurrent + bias, in four parts of h columns
//     i = sigmoid(z0), f = sigmoid(z1), o = sigmoid(z3)
//     c = f c_before + i tanh(z2), h = o tanh(c)
// kernel is [in, 4 h], recurrent [h, 4 h], bias [4 h].
choir_tensor *choir_lstm(choir_tensor *x, choir_tensor *kernel, choir_tensor *recurrent,
		choir_tensor *bias, const choir_recurrent_options *o);
// The GRU (Cho et al. 2014) with Keras' reset_after, as in cuDNN:
//     a = x kernel + bias, q = h_before recurrent + recurrent_bias, in three parts of h columns
//     z = sigmoid(a0 + q0), r = sigmoid(a1 + q1), m = tanh(a2 + r q2)
//     h = z h_before + (1 - z) m
// kernel is [in, 3 h], recurrent [h, 3 h], both biases [3 h]. state is the first state, [n, h];
// NULL: zeros.
choir_tensor *choir_gru(choir_tensor *x, choir_tensor *kernel, choir_tensor *recurrent,
		choir_tensor *bias, choir_tensor *recurrent_bias, choir_tensor *state);

// Sequences of different lengths. Sequence i of x [n, t, ..] has lengths[i] time steps (u8, i32 or
// i64 [n], from 0 to t), then padding, any numbers. CHOIR_INVALID: another length; some devices
// report this later.
//
// For layers, use choir_layer_apply_sequences. By hand, the last state is choir_last_timestep(y,
// lengths), and a bidirectional layer's backward direction is between two choir_reverse_sequence.

// Gives bool [n, t]: true for time steps, false for padding.
choir_tensor *choir_sequence_mask(choir_tensor *lengths, int64_t t);
// Gives x with zeros as padding.
choir_tensor *choir_zero_padding(choir_tensor *x, choir_tensor *lengths);
// Reverses the time steps of each sequence. Padding stays where it is.
choir_tensor *choir_reverse_sequence(choir_tensor *x, choir_tensor *lengths);
// The last time step of each sequence: [n, t, ..] gives [n, ..], zeros for a length of 0; t > 0.
choir_tensor *choir_last_timestep(choir_tensor *x, choir_tensor *lengths);

// Normalization. x and the result are [.., c]; scale and offset are [c], with c at least 1.

// (x - mean) / sqrt(variance + epsilon) scale + offset, with the mean and the population variance
// of each row along the last axis (arXiv:1607.06450).
choir_tensor *choir_layer_norm(
		choir_tensor *x, choir_tensor *scale, choir_tensor *offset, double epsilon);
// x / sqrt(mean(x^2) + epsilon) scale along the last axis (arXiv:1910.07467).
choir_tensor *choir_rms_norm(choir_tensor *x, choir_tensor *scale, double epsilon);

// choir_layer_norm's formula for each group of c / groups channels, over all axes but the first
// (arXiv:1803.08494). x is [n, .., c]; groups divides c.
choir_tensor *choir_group_norm(choir_tensor *x, choir_tensor *scale, choir_tensor *offset,
		int64_t groups, double epsilon);

// Gives the sum of t, which is f64, over all participants (replicas), in t's frame. All
// participants make these calls in one order.
typedef choir_tensor *choir_all_reduce_fn(choir_tensor *t, void *user);
typedef struct {
	size_t size;
	double epsilon; // 0: 1e-3; CHOIR_ZERO: 0
	// If set, mean, variance and x's gradient are over all participants' rows, the gradients of
	// scale and offset over this one's. Called once in the forward pass and, for the gradient of
	// x, once in the backward pass. user must be valid as long as the tape.
	choir_all_reduce_fn *sum;
	void *user;
	// If not NULL, *mean and *variance become the mean and variance, [c], without a gradient.
	choir_tensor **mean, **variance;
} choir_batch_norm_options;
// choir_layer_norm's formula for each channel, over all rows (arXiv:1502.03167). Mean and variance
// are f64. Without rows they are 0.
choir_tensor *choir_batch_norm(choir_tensor *x, choir_tensor *scale, choir_tensor *offset,
		const choir_batch_norm_options *o);

// Losses: one number for each example, with arguments in Keras' order. Gradients flow to logits,
// predictions, and targets of the same dtype. choir_replica_average_loss averages over a global
// batch.

// -log(softmax(logits)[label]), without overflow. labels [n] of u8, i32 or i64 and logits [n,
// classes] give [n]. labels [n, positions] and logits [n, positions, classes] give [n, positions].
// Labels may have a last axis of 1 more, as in Keras.
// CHOIR_INVALID: a label is not a class; some devices report this later.
choir_tensor *choir_sparse_softmax_cross_entropy(choir_tensor *labels, choir_tensor *logits);
// The same with smoothed labels: each class has probability smoothing / classes, the label's 1 -
// smoothing more (arXiv:1512.00567). smoothing is 0 to 1.
choir_tensor *choir_sparse_softmax_cross_entropy_smoothed(
		choir_tensor *labels, choir_tensor *logits, double smoothing);

// Other losses are means over all axes but the first: [n, ...] gives [n]. Operands have equal
// shapes; one may lack a last axis of 1, as in Keras, or be a scalar.

// (prediction - target)^2.
choir_tensor *choir_mean_squared_error(choir_tensor *targets, choir_tensor *predictions);
// -target log(sigmoid(logit)) - (1 - target) log(1 - sigmoid(logit)), without overflow. Targets
// are probabilities.
choir_tensor *choir_sigmoid_cross_entropy(choir_tensor *targets, choir_tensor *logits);
// With d = prediction - target: d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2) (Huber
// 1964). delta is above 0.
choir_tensor *choir_huber(choir_tensor *targets, choir_tensor *predictions, double delta);
// max(1 - target prediction, 0). Targets are -1 and 1.
choir_tensor *choir_hinge(choir_tensor *targets, choir_tensor *predictions);
// The sum of target log(target / prediction) along the last axis, averaged over the axes between
// the first and the last (Kullback, Leibler 1951). Probabilities below 1e-7 count as 1e-7, as in
// Keras. Operands have at least two axes.
choir_tensor *choir_kl_divergence(choir_tensor *targets, choir_tensor *predictions);

CHOIR_C_END
