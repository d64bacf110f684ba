// The table of a kernel: one operation, on one kind of device, for one dtype. This page lists all
// operations that Choir asks kernels for, with their inputs, attributes and formulas. Before a
// kernel is asked, shapes and dtypes were checked and out's shape was set; inputs have the
// kernel's dtype where it is not said otherwise, and so has out. Tensors are packed and row-major,
// on the kind's device, and none is empty: results without elements are left alone, and those of
// empty inputs are filled with zeros without a kernel.
//
// Which kernel: of those for the operation, the kind and the dtype the one with the highest score,
// the first registered of equals; the program's own come before the built-in ones. For the CPU
// there is a plain kernel for everything here in f32 and f64, which is the oracle of the tests:
// another one should agree with it to rounding, and exactly where this page gives bits (random
// numbers). For the same call a kernel must always give the same bits, whatever thread, stream or
// device of the kind it runs on (docs/decisions/0004).
#pragma once

#include "../nn.h"
#include "device.h"

CHOIR_C_BEGIN

// Elementwise, two inputs that broadcast from the right to out, no attributes: "add", "subtract",
// "multiply", "divide", "maximum" (op.h). In "add", "subtract" and "divide" out may be the memory
// of the first input, in "add" also of the second, if that has out's shape. Of f16 and bf16 there
// is "add" alone, made in f32 and rounded to even.
//
// "maximum_gradient": a, b and dy, which has out's shape; a and b broadcast to it.
typedef struct {
	int side; // 0: dy unless a < b, else 0; 1: dy where a < b, else 0
} choir_maximum_gradient_attributes;

// One input of out's shape, no attributes: "square", "sqrt", "exp", "log", "relu", "tanh",
// "sigmoid" (op.h), "gelu", "gelu_tanh", "silu", "softplus" (nn.h). Their gradients have two
// inputs of out's shape: "square_gradient" x and dy, 2 x dy; "sqrt_gradient" y and dy, dy / 2y;
// "relu_gradient" y and dy, dy where y > 0, else 0; "tanh_gradient" y and dy, dy (1 - y^2);
// "sigmoid_gradient" y and dy, dy y (1 - y); "gelu_gradient", "gelu_tanh_gradient",
// "silu_gradient" and "softplus_gradient" x and dy. The others' are made of operations.
//
// "huber": x^2 / 2 where |x| is at most bound, else bound (|x| - bound / 2). "huber_gradient": x
// and dy; dy times x, bounded by -bound and bound.
typedef struct {
	double bound;
} choir_huber_attributes;

//
// "scale": x times by, rounded to the dtype first.
typedef struct {
	double by;
} choir_scale_attributes;

// "fill", no input: every element is value, converted as by "cast". The dtype is out's, any.
typedef struct {
	double value;
} choir_fill_attributes;

// "sum": over the axes whose bit is set (bit i: axis i of the input), which out has not.
typedef struct {
	uint32_t axes;
} choir_sum_attributes;

// "argmax": along axis, which out has not; out is i64, the lowest index of equals.
typedef struct {
	int axis;
} choir_argmax_attributes;

// "broadcast", no attributes: the input's elements repeated from the right to out's shape; any
// dtype. "cast", no attributes: to out's dtype, by the rules of choir_cast; the kernel's dtype is
// the input's.

// Elements that go elsewhere; of any dtype, their gradients f32 and f64. "slice": as many elements
// of axis as out has there, from first on. "slice_gradient": dy, zeros around it. "concat": the
// inputs behind each other along axis.
typedef struct {
	int axis;
	int64_t first; // of "slice"
} choir_slice_attributes;

// "transpose": axis i of out is axis axes[i] of the input.
typedef struct {
	int axes[CHOIR_MAX_RANK];
} choir_transpose_attributes;

// No attributes: "gather": x [rows, ..], indices of u8, i32 or i64; out [indices, ..]. An index of
// no row is CHOIR_INVALID, naming it, or, on a device that cannot fail, a row of zeros.
// "gather_gradient": dy, indices; out like x: dy's rows added in the order of the indices.

// "matmul": a [.., m, k] (transposed: [.., k, m]) times b [.., k, n] (transposed: [.., n, k]). The
// leading axes are equal, or b has rank 2 and is one matrix for all of a's.
typedef struct {
	choir_transposed transposed;
} choir_matmul_attributes;

// What layers apply to a product before it is stored.
typedef enum {
	CHOIR_ACTIVATE_LINEAR = 0,
	CHOIR_ACTIVATE_RELU,
	CHOIR_ACTIVATE_TANH,
	CHOIR_ACTIVATE_SIGMOID
} choir_activate;

// "dense": x [.., k], w [k, n], bias [n]; out [.., n] = activate(x w + bias).
typedef struct {
	choir_activate activate;
} choir_dense_attributes;

// "conv2d": x [n, h, w, c], filter [kh, kw, c / groups, out] and, if there is a third input, bias
// [out]; out [n, oh, ow, out] = activate(x * filter + bias), * as in choir_convolution.
// "conv2d_gradient_input": filter, dy; out is dx. "conv2d_gradient_filter": x, dy; out is the
// filter's gradient. In both dy is the gradient before the activation.
typedef struct {
	int stride;
	int top, left, bottom, right; // zeros around x
	choir_activate activate; // of "conv2d"
	int dilation; // 1: none
	int64_t groups; // 1: none
} choir_conv2d_attributes;

// "max_pool2d", "average_pool2d": x [n, h, w, c]; windows of window x window elements, of which
// those outside x do not count. "max_pool2d_gradient": x, y, dy; out is dx, and a window's dy goes
// to the first of its elements (by row, then column) that equals y. "average_pool2d_gradient": dy;
// out is dx. Windows may overlap: dx is the sum.
typedef struct {
	int window, stride;
	int top, left, bottom, right; // of the windows' grid around x
} choir_pool2d_attributes;

// No attributes, along the last axis: "softmax", "softmax_gradient": y, dy; y (dy - sum(y dy)).
// "log_softmax", "log_softmax_gradient": y, dy; dy - exp(y) sum(dy).
//
// "softmax_cross_entropy": logits [.., classes], labels [..] of u8, i32 or i64; out [..]. A label
// that is no class is CHOIR_INVALID, naming it, or, on a device that cannot fail, NAN.
// "softmax_cross_entropy_gradient": logits, labels, dlosses [..]; out like logits:
// softmax(logits), less what the label weighs, times dloss. The right class weighs 1 - smoothing,
// and each class smoothing / classes more.
typedef struct {
	double smoothing;
} choir_cross_entropy_attributes;

// "attention": q, k and v [n, places, width], or one tensor [n, places, 3 width] that has them
// behind each other in each row; out [n, places, width]: for each head, of width / heads columns,
// softmax(scale q k^T) v, by rows. causal: query i of t sees keys 0 to i + s - t, of s.
// "attention_gradient": the same and dy; out like the one tensor, or, for three, flat: their
// gradients behind each other.
typedef struct {
	int64_t heads;
	bool causal;
	double scale;
} choir_attention_attributes;

// Recurrent layers over places 0 to t - 1, of a state of h elements, all without attributes but
// the last. "lstm": gates [n, t, 4 h], w [h, 4 h], h0 and c0 [n, h]; out [n, t, 6 h]: with
// z = gates + h_before w, in parts: i = sigmoid(z0), f = sigmoid(z1), g = tanh(z2),
// o = sigmoid(z3), c = f c_before + i g, h = o tanh(c), behind each other. "lstm_gradient": that
// out, w, c0, dh [n, t, h]; out flat: the gradients of gates [n, t, 4 h], h0, c0.
// "gru": gates [n, t, 3 h], w [h, 3 h], bias [3 h], h0; out [n, t, 5 h]: with q = h_before w +
// bias in parts: z = sigmoid(gates0 + q0), r = sigmoid(gates1 + q1), m = tanh(gates2 + r q2), q2,
// h = z h_before + (1 - z) m. "gru_gradient": that out, w, h0, dh; out flat: the gradients of
// gates, of q [n, t, 3 h], of h0. "recurrent_gradient": states [n, t, ..] in which h begins at
// offset, h0, dz [n, t, k]; out [h, k]: the sum over examples and places of h_before^T dz.
typedef struct {
	int64_t offset;
} choir_recurrent_attributes;

// Norms of x [.., c], in rows of c elements.
//
// By rows: "row_moments": x; out [.., 2]: the mean, or 0 unless centered, and factor = 1 /
// sqrt(variance around that + epsilon). "row_norm": x, scale [c], offset [c] if there are four
// inputs, moments; z scale + offset, where z = (x - mean) factor. "row_norm_gradient": x, scale,
// moments, dy; with g = dy scale: factor (g - mean(g) - z mean(g z)), without mean(g) unless
// centered. "row_norm_sums" (no attributes): x, moments, dy; out [2 c]: the sums over all rows of
// dy z and of dy.
//
// By channels, with sums and moments in f64: "channel_sums" (no attributes): x; out [2 c + 1]: the
// sums of x and of x^2 over rows, and the number of rows. "channel_moments" (no attributes, f64
// alone): such sums; out like it: means, variances, rows; zeros of no rows. "channel_norm": x,
// scale, offset, moments; z scale + offset. "channel_norm_sums": x, moments, dy; out [2 c]: the
// sums of dy z and of dy. "channel_norm_gradient": x, scale, moments, dy, such sums, which may be
// of more rows; scale factor (dy - (sum of dy + z sum of dy z) / rows).
typedef struct {
	double epsilon;
	bool centered;
} choir_norm_attributes;

// "dropout": x times 1 / (1 - rate), or 0; its gradient is itself with dy for x. "random_normal",
// no input. Every element has its own place in a Philox4x32-10 sequence, so its bits depend on the
// attributes alone. Block j of the sequence is made from
//     counter  { low word of j, high word of j, place, replica }
//     key      { low word, high word } of mix(mix(seed) + step)
//     mix(x)   x ^= x >> 30; x *= 0xBF58476D1CE4E5B9;
//              x ^= x >> 27; x *= 0x94D049BB133111EB; x ^= x >> 31
// where mix is the finisher of SplitMix64 (Steele, Lea, Flood 2014: Fast splittable pseudorandom
// number generators, OOPSLA). "dropout": element i takes word i % 4 of block i / 4, and is kept if
// the word's upper 24 bits, divided by 2^24, are at least rate. "random_normal": elements 2j and
// 2j + 1 are made from the words w of block j in f64 (Box and Muller 1958), as
//     sqrt(-2 log(1 - U(w[0], w[1]))) times cos and sin of 2 pi U(w[2], w[3])
// where U(a, b) is the upper 53 bits of 2^32 a + b, divided by 2^53.
typedef struct {
	uint64_t seed, step;
	uint32_t replica, place;
	double rate; // of dropout
} choir_random_attributes;

// The steps of optimizers, which write all their inputs but the last, the gradient g; out is
// in[0]. All inputs have one shape: a slice of a variable, in the order of its elements. With
// G = gradient_scale g and w' = w - rate decay w:
// "sgd_update" (w, g): w = w' - rate G.
// "momentum_update" (w, v, g): v = momentum v - rate G; w = w' + v, or, if nesterov,
// w' + momentum v - rate G.
// "adam_update" (w, m, v, g): m = m + (1 - beta1) (G - m); v = v + (1 - beta2) (G^2 - v);
// w = w' - rate correction m / (sqrt(v) + epsilon).
// "rmsprop_update" (w, v, m, g): v = rho v + (1 - rho) G^2;
// m = momentum m + rate G / sqrt(v + epsilon); w = w' - m.
// As in Keras 2.15; decay as in AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101).
typedef struct {
	double rate, momentum;
	double beta1, beta2, epsilon;
	double decay;
	double correction; // sqrt(1 - beta2^t) / (1 - beta1^t) in step t = 1, 2, ...
	double gradient_scale;
	bool nesterov;
	double rho;
} choir_update_attributes;

// "scatter_update", "scatter_add", "scatter_subtract", "scatter_multiply", "scatter_divide",
// "scatter_minimum", "scatter_maximum": a target [rows, ...], indices [n] of i32 or i64, each of
// them a row, and values [n, ...]; no attributes. Row indices[i] of the target, which is written,
// becomes values[i], or itself with values[i] by the operation, for i from 0 on, one after
// another: an index that stands twice counts twice. out is in[0]. A NAN is both least and largest.
//
// "chunk_squares": the sum of the squares of each chunk of the input; out is f64
// [ceil(elements / chunk)].
typedef struct {
	int64_t chunk; // elements; the last chunk may have fewer
} choir_chunk_squares_attributes;

// One call. All that it points to but the data may be gone when run returns; the data stays until
// the stream has been waited for.
typedef struct {
	size_t size; // of this struct
	void *stream; // of the device's table; NULL when score and scratch are asked ahead of a call
	size_t n; // inputs
	const choir_buffer *in;
	choir_buffer *out;
	const void *attributes; // the operation's struct, as listed; not to be used if it has none
	void *scratch; // on the device, 64-byte aligned, as many bytes as asked for; not initialised
	const void *user; // the table's
} choir_kernel_call;

typedef struct choir_kernel_table {
	size_t size; // of this struct
	uint32_t version; // CHOIR_TABLE_VERSION
	const char *operation; // "matmul"
	const char *kind; // of device: "cuda"
	const char *name; // in messages: "cublas"
	choir_dtype dtype; // of in[0]; without inputs, of out
	const void *user; // for the functions
	// How well the kernel suits the call, by its shapes and attributes alone. 0: cannot. NULL: 1,
	// as all plain kernels; oneDNN's say 10.
	int (*score)(const choir_kernel_call *call);
	size_t (*scratch)(const choir_kernel_call *call); // bytes of scratch memory. NULL: none
	// Does the work, or queues it on the stream where the device is asynchronous. What it returns
	// is the operation's failure: without a text it gets one, and CHOIR_END, which is none, is
	// CHOIR_INVALID.
	choir_status (*run)(const choir_kernel_call *call);
} choir_kernel_table;

// Makes a kernel known. The table is copied; the strings and user that it points to are not, and
// live as long as the program. Its functions are called from any thread, several at the same time,
// perhaps with a lock of Choir's held: they call nothing of Choir but choir_fail.
// CHOIR_INVALID: a size, version or dtype that cannot be, no operation, kind or run; CHOIR_STATE:
// an operation has run already; CHOIR_NO_MEMORY. Threads: one, before the first operation.
CHOIR_MUST_CHECK choir_status choir_register_kernel(const choir_kernel_table *table);

// The bytes of an operation's attributes, for a device that queues calls: it copies as many. 0: it
// has none, or Choir has no such operation. Threads: any.
size_t choir_kernel_attribute_bytes(const char *operation);

CHOIR_C_END
