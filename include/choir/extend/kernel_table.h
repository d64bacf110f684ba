// The kernel table. A kernel computes one operation, for one kind of device and one dtype. Before
// a call, Choir checks shapes and dtypes, and sets out's shape. Inputs and out have the kernel's
// dtype unless a comment says otherwise. Tensors are packed and row-major, on a device of the
// kind, and not empty. Each entry below has an operation's name, its inputs in order, and out; the
// struct after it has the attributes. An operation without a definition is that of op.h or nn.h.
//
// Choir takes the kernel with the highest score; of equal scores, the first registered. Built-in
// kernels are last.
//
// A kernel gives the same bits for the same call, on every thread, stream and device of the kind.
// Its results are those of the CPU's plain kernel (f32 and f64) up to rounding; random numbers are
// equal to the bit.
//
// Mixed precision (precision.h) needs kernels for f16 or bf16; without one, an operation runs in
// f32. in[0] has the kernel's dtype; other floating-point inputs and out have this dtype or are
// f32. Biases, scales, offsets and moments of norms, the losses of "softmax_cross_entropy", the
// result of "sum", and gradients of weights are f32. The kernel computes in f32, and rounds each
// result once, ties to even. The CPU has such kernels for all operations but updates and scatters.
#pragma once

#include "../nn.h"
#include "device_table.h"

CHOIR_C_BEGIN

// Elementwise operations

// "add", "subtract", "multiply", "divide", "maximum", "minimum", "pow", "atan2": two inputs that
// broadcast to out's shape. If shapes are equal, out may be the first input in "add", "subtract"
// and "divide", and the second in "add".
//
// "equal", "not_equal", "less", "less_equal": inputs as for "add", or of bool; out is bool.
// "logical_and", "logical_or": inputs and out are bool; inputs broadcast. "where": a and b of any
// dtype and a bool condition, which broadcast.
//
// "maximum_gradient": a, b, and dy of out's shape, to which a and b broadcast.
typedef struct {
	int side; // 0: dy where not a < b, else 0; 1: dy where a < b, else 0
} choir_maximum_gradient_attributes;

// "square", "abs", "negate", "sign", "sqrt", "rsqrt", "exp", "expm1", "log", "log1p", "floor",
// "ceil", "round", "sin", "cos", "tan", "erf", "relu", "tanh", "sigmoid", "gelu", "gelu_tanh",
// "silu", "softplus": one input of out's shape.
//
// Gradients: two inputs of out's shape.
// - "square_gradient": x, dy: 2 x dy. "sqrt_gradient": y, dy: dy / 2y.
// - "relu_gradient": y, dy: dy where y > 0, else 0. "tanh_gradient": y, dy: dy (1 - y^2).
//   "sigmoid_gradient": y, dy: dy y (1 - y).
// - "gelu_gradient", "gelu_tanh_gradient", "silu_gradient", "softplus_gradient": x, dy.
//
// "huber": choir_huber of x = prediction - target. "huber_gradient": x, dy: dy times (x clipped to
// [-delta, delta]).
typedef struct {
	double delta;
} choir_huber_attributes;

// "scale": x times .by, which is first rounded to the dtype.
typedef struct {
	double by;
} choir_scale_attributes;

// "fill": no input, out of any dtype; all elements are value, converted as in "cast".
typedef struct {
	double value;
} choir_fill_attributes;

// Reductions, shapes and dtypes

// "sum": over the axes whose bits are set (bit i: axis i), which out lacks.
typedef struct {
	uint32_t axes;
} choir_sum_attributes;

// "max", "min": over the axes of choir_sum_attributes; NAN if an element is NAN.
//
// "argmax", "argmin": along axis, which out lacks; out is i64.
typedef struct {
	int axis;
} choir_argmax_attributes;

// "cumsum": along axis.
typedef struct {
	int axis;
	bool exclusive, reverse;
} choir_cumsum_attributes;

// "top_k": out is the i64 indices of choir_top_k.
typedef struct {
	int64_t k;
} choir_top_k_attributes;

// "broadcast", any dtype: choir_broadcast_to out's shape. "cast": converts to out's dtype; the
// kernel's dtype is the input's.

// "slice", any dtype: elements along axis from first on. "slice_gradient", f32 and f64: out has dy
// at these elements, else zeros. "concat", any dtype: the inputs one after another along axis.
typedef struct {
	int axis;
	int64_t first; // of "slice"
} choir_slice_attributes;

// "flip", any dtype: along axis.
typedef struct {
	int axis;
} choir_flip_attributes;

// "transpose", any dtype: axis i of out is axis axes[i] of the input.
typedef struct {
	int axes[CHOIR_MAX_RANK];
} choir_transpose_attributes;

// "gather": x [rows, ..], indices of u8, i32 or i64; out [indices, ..]. An index of no row is
// CHOIR_INVALID, or gives zeros if a kernel cannot report it. "gather_gradient": dy, indices; out
// has the shape of x. For i = 0, 1, ..., row i of dy is added to row indices[i] of out.

// Products, convolutions and pools

// "matmul": a and b of choir_matmul.
typedef struct {
	choir_transposed transposed;
} choir_matmul_attributes;

// "dense" and "conv2d" have CHOIR_LINEAR, CHOIR_RELU, CHOIR_TANH or CHOIR_SIGMOID.

// "dense": x [.., k], w [k, n], bias [n]; out [.., n] = activation(x w + bias).
typedef struct {
	choir_activation activation;
} choir_dense_attributes;

// "conv2d": x [n, h, w, c], filter [kh, kw, c / groups, out] and perhaps bias [out]; out [n, oh,
// ow, out] = activation(x * filter + bias), where * is choir_conv2d's. "conv2d_gradient_input":
// filter, dy; out is dx. "conv2d_gradient_filter": x, dy; out is the filter's gradient. In both,
// dy is the gradient before the activation.
typedef struct {
	int stride;
	int top, left, bottom, right; // zeros around x
	choir_activation activation; // of "conv2d"
	int dilation; // 1: none
	int64_t groups; // 1: none
} choir_conv2d_attributes;

// "max_pool2d", "average_pool2d": x [n, h, w, c], in windows of window x window elements. Elements
// outside of x do not count. "max_pool2d_gradient": x, y, dy; out is dx, the sum over windows. A
// window's dy goes to its first element, row by row, that equals y; NAN equals NAN.
// "average_pool2d_gradient": dy; out is dx. "max_pool2d_take": x, y, and u of x's shape; out has
// y's shape, and the u of the element that gets dy.
typedef struct {
	int window, stride;
	int top, left, bottom, right; // how far the grid of windows extends beyond x
} choir_pool2d_attributes;

// Softmax, attention and recurrence

// Along the last axis, without attributes: "softmax"; "softmax_gradient": y, dy: y (dy - sum(y
// dy)). "log_softmax"; "log_softmax_gradient": y, dy: dy - exp(y) sum(dy).
//
// "softmax_cross_entropy": logits [.., classes], labels [..] of u8, i32 or i64; out [..]. A label
// that is no class is CHOIR_INVALID, or gives NAN if a kernel cannot report it.
// "softmax_cross_entropy_gradient": logits, labels, dlosses [..]; out, shaped like logits:
// (softmax(logits) - weight) dloss. A class's weight is smoothing / classes; that of the label is
// larger by 1 - smoothing.
typedef struct {
	double smoothing;
} choir_cross_entropy_attributes;

// "attention": q [n, t, width], k and v [n, s, width]; or one tensor [n, t, 3 width], with rows of
// q, k and v in turn. out [n, t, width] is choir_attention's. "attention_gradient": the inputs of
// "attention", and dy; out has the one tensor's shape, or is flat: the three gradients in turn.
typedef struct {
	int64_t heads;
	bool causal;
	double scale;
} choir_attention_attributes;

// Recurrence over t time steps with h elements of state. Only "recurrent_gradient" has attributes.
//
// "lstm": gates [n, t, 4 h], w [h, 4 h], h0 and c0 [n, h]. With z = gates + h_before w and g =
// tanh(z2), as in choir_lstm, out [n, t, 6 h] is i, f, g, o, c, h. "lstm_gradient": "lstm"'s out,
// w, c0, and dh [n, t, h], or dc and dh in the rows of [n, t, 2 h]; out is flat: the gradients of
// gates, h0 and c0.
//
// "gru": gates [n, t, 3 h] (a in choir_gru), w [h, 3 h], bias [3 h], h0. With q = h_before w +
// bias, out [n, t, 5 h] is z, r, m, q2, h. "gru_gradient": "gru"'s out, w, h0, dh; out is flat:
// the gradients of gates, q [n, t, 3 h] and h0.
//
// "recurrent_gradient": states [n, t, ..], in whose rows h begins at offset; h0; dz [n, t, k]. out
// [h, k] is the sum over examples and time steps of h_before^T dz.
typedef struct {
	int64_t offset;
} choir_recurrent_attributes;

// Normalization of x [.., c], which has rows of c elements
//
// By rows:
// - "row_moments": x; out [.., 2]: the mean (0 if not centered), and factor = 1 / sqrt(v +
//   epsilon), where v is the mean of (x - mean)^2.
// - "row_norm": x, scale [c], perhaps offset [c], moments; out is z scale + offset, where z = (x -
//   mean) factor.
// - "row_norm_gradient": x, scale, moments, dy. With g = dy scale, out is factor (g - mean(g) - z
//   mean(g z)), but without mean(g) if not centered.
// - "row_norm_sums", no attributes: x, moments, dy; out [2 c]: the sums over rows of dy z and of
//   dy.
//
// By channels, with sums and moments in f64:
// - "channel_sums", no attributes: x; out [2 c + 1]: the sums over rows of x and of x^2, and the
//   number of rows.
// - "channel_moments", no attributes, f64 only: "channel_sums"'s out; out, of the same shape:
//   means, variances, number of rows. Without rows, out is zeros.
// - "channel_norm": x, scale, offset, moments: z scale + offset.
// - "channel_norm_sums": x, moments, dy; out [2 c]: the sums of dy z and of dy.
// - "channel_norm_gradient": x, scale, moments, dy, and "channel_norm_sums"'s out, which may
//   include rows of other replicas: scale factor (dy - (sum of dy + z sum of dy z) / rows).
typedef struct {
	double epsilon;
	bool centered;
} choir_norm_attributes;

// Random numbers

// "dropout": x times 1 / (1 - rate), or 0; with dy for x, it is the gradient. "random_normal": no
// input. Elements have fixed positions in a Philox4x32-10 sequence. Block j is made from
//     counter  { low word of j, high word of j, place, replica_id }
//     key      { low word, high word } of mix(mix(seed) + step)
//     mix(x)   x ^= x >> 30; x *= 0xBF58476D1CE4E5B9;
//              x ^= x >> 27; x *= 0x94D049BB133111EB; x ^= x >> 31
// where mix is the finisher of SplitMix64 (Steele, Lea, Flood 2014).
//
// "dropout": element i takes word i % 4 of block i / 4, and is kept if the word's upper 24 bits,
// divided by 2^24, are at least rate. "random_normal": elements 2j and 2j + 1 are made in f64 from
// the words w of block j (Box and Muller 1958):
//     sqrt(-2 log(1 - U(w[0], w[1]))) times cos and sin of 2 pi U(w[2], w[3])
// where U(a, b) is the upper 53 bits of 2^32 a + b, divided by 2^53.
typedef struct {
	uint64_t seed, step;
	uint32_t replica_id, place;
	double rate; // of dropout
} choir_random_attributes;

// Updates

// The formulas of optimizer.h for a chunk of a variable. The last input is the gradient g; the
// kernel writes all others; out is in[0]. G = gradient_scale g, and w' = w - rate decay w.
// - "sgd_update" (w, g), "momentum_update" (w, v, g), "rmsprop_update" (w, v, m, g) and
//   "adagrad_update" (w, v, g): with rate for a, G for g, and w' for the old w.
// - "adam_update" (w, m, v, g): m and v with G for g; w = w' - rate correction m / (sqrt(v) +
//   epsilon).
// - "nadam_update" (w, m, v, g): m and v as in "adam_update"; w = w' - rate (m_factor m + g_factor
//   G) / (sqrt(v_factor v) + epsilon).
// - "lion_update" (w, m, g): w = w' - rate sign(m + (1 - beta1) (G - m)); then m = m + (1 - beta2)
//   (G - m).
// - "lamb_update" (w, m, v, g), of a whole variable: m and v as in "adam_update"; u = m_factor m /
//   (sqrt(v_factor v) + epsilon) + decay w; w = w - rate |w| / |u| u, with 1 for the quotient if a
//   norm is 0. Norms are f64: element i belongs to partial sum i mod 8; partial sums are added in
//   order.
typedef struct {
	double rate, momentum;
	double beta1, beta2, epsilon;
	double decay;
	double correction; // sqrt(1 - beta2^t) / (1 - beta1^t) in step t = 1, 2, ...
	double gradient_scale;
	bool nesterov;
	double rho;
	double m_factor, g_factor, v_factor, initial_accumulator;
	// NULL, or "update_gate"'s out in device memory. If gate[1] is not 0, the kernel writes
	// nothing; else gate[0] multiplies gradient_scale, in f64.
	const double *gate;
} choir_update_attributes;

// "update_gate", f64 only: squares [chunks], the results of "chunk_squares" of all gradients, and
// ends [variables] of i64: variable i's squares end before index ends[i]. out is [4]:
// - The factor of all gradients: 1 / scale, or (1 / scale) (clip / norm) if clip is not 0 and norm
//   > clip, where norm = sqrt(sum of all squares) / scale.
// - 1 if nothing must be written, else 0.
// - The sum of all squares, in ascending order: first for each variable, then over variables.
// - The first variable with a sum that is not finite (-1: none).
//
// If there is such a variable, or clip is not 0 and norm is not finite, nothing must be written
// and the factor is 0, unless .any is true.
typedef struct {
	double scale, clip;
	bool any;
} choir_update_gate_attributes;

// "scatter_update", "scatter_add", "scatter_subtract", "scatter_multiply", "scatter_divide",
// "scatter_minimum", "scatter_maximum": a target [rows, ...], which is out; indices [n] of i32 or
// i64, all in range; values [n, ...]. For i = 0, 1, ..., row indices[i] becomes values[i]
// (update), or the operation's result with values[i]. A minimum or maximum with NAN is NAN.
//
// "chunk_squares": the sum of the squares of each chunk; out is f64 [ceil(elements / chunk)].
typedef struct {
	int64_t chunk; // elements; the last chunk may have fewer
} choir_chunk_squares_attributes;

// A call, valid until run returns; the tensors' data until Choir has waited for the stream.
typedef struct choir_kernel_call {
	size_t size;
	void *stream; // of the device's table; may be NULL in score and scratch
	size_t n; // number of inputs
	const choir_buffer *in;
	choir_buffer *out;
	const void *attributes; // the operation's struct; undefined if it has none
	void *scratch; // uninitialized device memory, aligned to 64 bytes
	const void *user; // the table's user
	void *device; // self of the device's table
} choir_kernel_call;

// The format to which a kernel rounds operands of products.
typedef enum {
	CHOIR_ARITHMETIC_OF_DTYPE = 0,
	CHOIR_ARITHMETIC_F32,
	CHOIR_ARITHMETIC_TF32, // f32 with 11 significant bits
	CHOIR_ARITHMETIC_BF16,
	CHOIR_ARITHMETIC_F16,
	CHOIR_ARITHMETIC_FP8_E4M3,
	CHOIR_ARITHMETIC_FP8_E5M2
} choir_arithmetic;

// A kernel.
typedef struct choir_kernel_table {
	size_t size;
	uint32_t version; // CHOIR_TABLE_VERSION
	const char *operation; // "matmul"
	const char *kind; // of device: "gpu"
	const char *name; // in messages: "cublas"
	choir_dtype dtype; // of in[0]; without inputs, of out
	const void *user; // passed to the functions in the call
	// How well the kernel suits the call; 0: not at all. NULL: 1. Plain kernels have 1, oneDNN 10.
	int (*score)(const choir_kernel_call *call);
	size_t (*scratch)(const choir_kernel_call *call); // bytes; NULL: none
	// Does the work, or queues it on the stream. If it fails, the operation fails. CHOIR_END
	// becomes CHOIR_INVALID.
	choir_status (*run)(const choir_kernel_call *call);
	// If not 0, the kernel runs only if choir_kernel_run names it. TF32, with dtype f32: also in
	// frames whose precision is TF32, before all other kernels.
	choir_arithmetic arithmetic;
	// Does what run does, for count calls, in any order. They have one stream, dtype and number of
	// inputs, and need no scratch memory. No call writes what another uses. Optimizers use run_all
	// for many variables. NULL: Choir calls run for each.
	choir_status (*run_all)(const choir_kernel_call *calls, size_t count);
} choir_kernel_table;

// Registers a kernel. Copies the table, but not its strings and user, which must be valid until
// the program ends. Several threads call the functions at once, perhaps while Choir holds a lock.
// They may call only choir_fail of Choir. operation, kind and run are required. CHOIR_STATE: an
// operation has already run on a device of the kind. Threads: any.
CHOIR_MUST_CHECK choir_status choir_register_kernel(const choir_kernel_table *table);

// For tests (suite.h): runs a kernel on a device, and waits. name: the kernel's; NULL: Choir
// chooses. The caller sets n (at most 8), in, out and attributes, which are not checked. No tensor
// is empty. All data are in host memory; out may be an input. Choir copies them to a device with
// its own memory and back. CHOIR_UNSUPPORTED: no kernel of this operation, name and dtype takes
// the call. Also fails as the kernel and the device. Threads: any.
CHOIR_MUST_CHECK choir_status choir_kernel_run(
		choir_device *d, const char *operation, const char *name, const choir_kernel_call *call);

// Bytes of an operation's attributes; 0: none. A kernel that queues its work copies them.
// Threads: any.
size_t choir_kernel_attribute_bytes(const char *operation);

CHOIR_C_END
