// Operations of neural networks beyond op.h, whose rules hold here too: sums of weighted rows,
// convolutions, attention, recurrence, norms and losses. All are of f32 or f64, and all operands
// of one call of the same dtype.
// Threads: that of the operands' frame.
#pragma once

#include "op.h"

CHOIR_C_BEGIN

// Activations, elementwise, and softmax.

// The Gaussian error linear unit, x P(x), where P is the standard normal distribution,
// (1 + erf(x / sqrt(2))) / 2 (Hendrycks and Gimpel 2016, arXiv:1606.08415). In f32 P is off by at
// most 2e-7. tf.nn.gelu and PyTorch's F.gelu are this form unless told otherwise.
choir_tensor *choir_gelu(choir_tensor *x);
// The approximation of choir_gelu by tanh, which GPT-2 has:
// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
choir_tensor *choir_gelu_tanh(choir_tensor *x);
// x sigmoid(x), also called swish (Elfwing, Uchibe, Doya 2017, arXiv:1702.03118).
choir_tensor *choir_silu(choir_tensor *x);
choir_tensor *choir_softplus(choir_tensor *x); // log(1 + exp(x)), without overflow
// The logarithm of choir_softmax, x - log(sum(exp(x))) along the last axis, without overflow.
// CHOIR_INVALID: a scalar.
choir_tensor *choir_log_softmax(choir_tensor *x);

// Several rows of a table for one example.

typedef enum {
	CHOIR_COMBINER_MEAN = 0, // divided by the sum of the weights
	CHOIR_COMBINER_SUM,
	CHOIR_COMBINER_SQRTN // divided by the root of the sum of the squared weights
} choir_combiner;
// Adds up each example's n rows, each times its weight: rows [.., n, width] and weights [.., n]
// give [.., width]. The combiner divides the sum; where it would divide by 0 the result is 0.
// Gradients flow to rows and weights. With rows of choir_gather or choir_variable_gather this is
// tf.nn.embedding_lookup_sparse: an example with fewer than n ids is filled up with any id of the
// table, with the weight 0. The gradient by the row of that id is 0 and counts as a gradient of
// this row. CHOIR_INVALID: an unknown combiner.
choir_tensor *choir_combine_rows(
		choir_tensor *rows, choir_tensor *weights, choir_combiner combiner);

// Convolutions of images [n, h, w, c] with filters [kh, kw, c / groups, out], or, where both have
// rank 3, of sequences [n, w, c] with filters [k, c / groups, out].

typedef struct {
	size_t size;
	int stride; // 0: 1
	int padding; // zeros on each side; CHOIR_NONE: SAME, as in op.h
	int dilation; // how far apart the filter's elements lie on x; 0: 1, side by side
	int64_t groups; // 0: 1
	// More zeros, of rows and columns, or [0] of a sequence; not with SAME.
	int before[2], after[2];
} choir_convolution_options;
// y[i, r, s, o] = sum over p, q, c of x[i, r stride + p dilation - top, s stride + q dilation -
// left, c] filter[p, q, c, o], with zeros outside x (a cross-correlation). In groups, channel o
// sees only those c of x that are in its group: the g-th of the equal parts of x's channels goes
// to the g-th part of the result's. With before k - 1 times dilation a sequence is causal. NULL
// options: all defaults. CHOIR_INVALID: what does not fit, or gives no result.
choir_tensor *choir_convolution(
		choir_tensor *x, choir_tensor *filter, const choir_convolution_options *o);

// Attention.

typedef struct {
	size_t size;
	int64_t heads; // 0: 1
	choir_toggle causal; // off; on: query i of t sees keys 0 to i + s - t, of s
	double scale; // 0: 1 / sqrt(width / heads)
} choir_attention_options;
// softmax(scale q k^T) v for each example and each head, which is width / heads columns of q, k, v
// and the result (Vaswani et al. 2017, arXiv:1706.03762). q is [n, t, width], k and v are
// [n, s, width], the result has q's shape. Scores are there for 64 queries of one head at a time
// and are made again on the way back, so memory grows with s and not with t s (Dao et al. 2022,
// arXiv:2205.14135, keep still less). NULL options: all defaults. CHOIR_INVALID: heads that do not
// divide width, or are negative; a scale that is not finite; causal and t larger than s.
choir_tensor *choir_attention(
		choir_tensor *q, choir_tensor *k, choir_tensor *v, const choir_attention_options *o);
// The same of qkv [n, t, 3 width], which has q, k and v behind each other in each row, as one
// product makes them: no copy is made. Gives [n, t, width].
choir_tensor *choir_self_attention(choir_tensor *qkv, const choir_attention_options *o);

// Recurrence over sequences [n, t, in], from the first place to the last; gives the states
// [n, t, h].

typedef struct {
	size_t size;
	choir_tensor *state, *cell; // [n, h] before the first place; NULL: zeros. cell of lstm alone
	// [n, h], through which no gradient flows; NULL after a failure. NULL: not wanted.
	choir_tensor **last_cell;
} choir_recurrent_options;
// The LSTM of Hochreiter and Schmidhuber 1997 with a forget gate (Gers et al. 2000), its parts in
// Keras' order: with z = x kernel + h_before recurrent + bias in four parts of h columns,
// i = sigmoid(z0), f = sigmoid(z1), o = sigmoid(z3), c = f c_before + i tanh(z2), h = o tanh(c).
// kernel is [in, 4 h], recurrent [h, 4 h], bias [4 h]. NULL options: all defaults.
choir_tensor *choir_lstm(choir_tensor *x, choir_tensor *kernel, choir_tensor *recurrent,
		choir_tensor *bias, const choir_recurrent_options *o);
// The GRU of Cho et al. 2014 in the form of Keras' reset_after and of cuDNN: with a = x kernel +
// bias and q = h_before recurrent + recurrent_bias in three parts of h columns, z = sigmoid(a0 +
// q0), r = sigmoid(a1 + q1), m = tanh(a2 + r q2), h = z h_before + (1 - z) m. kernel is [in, 3 h],
// recurrent [h, 3 h], both biases [3 h]. state: [n, h] before the first place; NULL: zeros.
choir_tensor *choir_gru(choir_tensor *x, choir_tensor *kernel, choir_tensor *recurrent,
		choir_tensor *bias, choir_tensor *recurrent_bias, choir_tensor *state);

// Norms of the last axis. x is [.., c]; scale and offset are [c], c at least 1; the result has x's
// shape. epsilon is 0 or more.

// (x - mean) / sqrt(variance + epsilon) scale + offset, with the mean and the variance (divided by
// c) of each row of c elements (Ba, Kiros, Hinton 2016, arXiv:1607.06450).
choir_tensor *choir_layer_norm(
		choir_tensor *x, choir_tensor *scale, choir_tensor *offset, double epsilon);
// x / sqrt(mean(x^2) + epsilon) scale (Zhang and Sennrich 2019, arXiv:1910.07467).
choir_tensor *choir_rms_norm(choir_tensor *x, choir_tensor *scale, double epsilon);

// Adds to t what others have in its place: sums of other replicas, say. Gives a tensor of t's
// frame, dtype (f64) and shape, and is called by all others as often and in the same order.
typedef choir_tensor *choir_sum_fn(choir_tensor *t, void *user);
typedef struct {
	size_t size;
	double epsilon; // 0: 1e-3; CHOIR_NONE: 0
	// Called once on the way there and, if a gradient by x is wanted, once on the way back, so
	// that mean and variance are of all rows of all who call, and so are gradients by x; those by
	// scale and offset are of the own rows. NULL: the own rows alone. user lives as long as the
	// tape.
	choir_sum_fn *sum;
	void *user;
	// [c], for moving statistics; no gradient; NULL after a failure. NULL: not wanted.
	choir_tensor **mean, **variance;
} choir_batch_norm_options;
// (x - mean) / sqrt(variance + epsilon) scale + offset, with the mean and the variance (divided by
// the number of rows) of each channel over all rows of c elements (Ioffe and Szegedy 2015,
// arXiv:1502.03167). Both are collected in f64. Of no rows they are 0. NULL options: all defaults.
choir_tensor *choir_batch_norm(choir_tensor *x, choir_tensor *scale, choir_tensor *offset,
		const choir_batch_norm_options *o);

// Losses, one for each example, as those of op.h.

// choir_softmax_cross_entropy with labels of which the right class has 1 - smoothing, and every
// class a part of the rest, smoothing / classes (Szegedy et al. 2015, arXiv:1512.00567).
// CHOIR_INVALID: smoothing is not 0 to 1.
choir_tensor *choir_smoothed_cross_entropy(
		choir_tensor *logits, choir_tensor *labels, double smoothing);
// -target log(sigmoid(logit)) - (1 - target) log(1 - sigmoid(logit)) as softplus(logit) - logit
// target, broadcast as choir_subtract does, and the mean of it over all axes but the first.
// Targets are probabilities of the logits' dtype. CHOIR_INVALID: scalars.
choir_tensor *choir_sigmoid_cross_entropy(choir_tensor *logits, choir_tensor *targets);
// With d = x - target, broadcast as choir_subtract does: d^2 / 2 where |d| is at most bound, else
// bound (|d| - bound / 2), and the mean of it over all axes but the first (Huber 1964).
// CHOIR_INVALID: scalars, a bound that is not more than 0.
choir_tensor *choir_huber(choir_tensor *x, choir_tensor *target, double bound);

CHOIR_C_END
