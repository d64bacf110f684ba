// Operations: expressions on tensors, which a tape records if one is on (tape.h). Each checks its
// operands, makes its result in their frame, and queues the work on the frame's device. An
// operation that has failed returns NULL and the frame keeps why; NULL operands give NULL; so
// formulas nest and are checked once, at the end. There is no implicit cast: dtypes must agree,
// but for plain numbers (choir_number), which take their partner's.
//
// Beside what tensor.h says of all tensors, every operation can fail with CHOIR_INVALID, for
// shapes or dtypes that do not fit and for operands of different frames, and with
// CHOIR_UNSUPPORTED where there is no kernel for the dtype on the device, listing the dtypes for
// which there is one. Gradients flow through floating point alone, and through every operation
// here of which it is not said otherwise. Results depend on the operands and the instruction set
// of the machine, never on the number of threads.
//
// Kernels come from oneDNN, if the library was built with it, or are Choir's own. The environment
// variable CHOIR_KERNELS chooses, when the first operation of the program runs: "all" (also if it
// is not set) or "plain", those in plain C alone; another value is CHOIR_INVALID in every
// operation.
// Threads: that of the operands' frame.
#pragma once

#include "tensor.h"

CHOIR_C_BEGIN

// For tables of operations.
typedef choir_tensor *choir_binary_op(choir_tensor *a, choir_tensor *b);
typedef choir_tensor *choir_unary_op(choir_tensor *x);

// Making tensors, and giving one a count

// Makes a tensor in which every element is value. f32, f16 and bf16 round it. CHOIR_INVALID also
// for an integer dtype or bool that cannot hold value: it must be whole and in range (bool: 0 or
// 1).
choir_tensor *choir_fill(choir_frame *f, choir_dtype dtype, choir_shape shape, double value);

// Makes independent normal numbers of mean 0 and deviation 1 in f32 or f64 (others:
// CHOIR_UNSUPPORTED): Box and Muller 1958, from Philox4x32-10 (Salmon, Moraes, Dror, Shaw:
// Parallel random numbers: as easy as 1, 2, 3, SC 2011). They depend on seed, the strategy's
// seed, the step (the number of runs so far in which gradients were applied), the replica, and
// the number of earlier draws, including dropout's, in this call of the replica (in a frame of
// choir_frame_new, since it was made). They do not depend on devices or threads
// (docs/decisions/0013).
choir_tensor *choir_random_normal(
		choir_frame *f, choir_dtype dtype, choir_shape shape, uint64_t seed);

// A view of t, without a copy, that carries a count: for example of how many examples t is the
// sum. MEAN over replicas divides the sum by the sum of the counts if all replicas' tensors
// carry one, and by the number of replicas if none does; a mixture is CHOIR_INVALID
// (docs/decisions/0014). Results of operations carry none. Gradients flow through.
// CHOIR_INVALID: count is negative.
choir_tensor *choir_counted(choir_tensor *t, int64_t count);

// Elementwise, two operands. Shapes are laid against each other from the right; a dimension of 1,
// or one that is missing on the left, is repeated: [16, 784] and [784] give [16, 784]. f32, f64,
// i32, i64, u8; integers wrap. choir_add also takes f16 and bf16, whose sums are made in f32 and
// rounded to even.

choir_tensor *choir_add(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_subtract(choir_tensor *a, choir_tensor *b); // a - b
choir_tensor *choir_multiply(choir_tensor *a, choir_tensor *b);
// a / b. Integers are cut towards zero, and divided by 0 give 0.
choir_tensor *choir_divide(choir_tensor *a, choir_tensor *b);
// The larger one; NAN if one is. The gradient goes to b where a < b, else to a.
choir_tensor *choir_maximum(choir_tensor *a, choir_tensor *b);

// Elementwise, one operand, whose shape the result has. f32 and f64.

choir_tensor *choir_square(choir_tensor *x); // also i32, i64 and u8, which wrap
choir_tensor *choir_sqrt(choir_tensor *x); // NAN below 0; the gradient at 0 is infinite
choir_tensor *choir_exp(choir_tensor *x);
choir_tensor *choir_log(choir_tensor *x); // natural; NAN below 0
choir_tensor *choir_relu(choir_tensor *x); // x, or 0 below 0; the gradient at 0 is 0
choir_tensor *choir_tanh(choir_tensor *x);
choir_tensor *choir_sigmoid(choir_tensor *x); // 1 / (1 + exp(-x))
// exp(x) divided by its sum along the last axis, of numbers from which their maximum was
// subtracted, so that nothing overflows. CHOIR_INVALID: a scalar.
choir_tensor *choir_softmax(choir_tensor *x);
// x times a number of the program's.
choir_tensor *choir_scale(choir_tensor *x, double by);
// The larger tensor of slices (tensor.h), with rows that stand twice added up in their order, and
// zeros; what is no slices is t itself. f32, f64, i32, i64, u8. No gradient flows through.
choir_tensor *choir_to_dense(choir_tensor *t);
// x itself, as a view, through which no gradient flows. All dtypes.
choir_tensor *choir_stop_gradient(choir_tensor *x);

// Reductions. The axes that are reduced go from the shape: [2, 3, 4] over CHOIR_AXIS(1) gives
// [2, 4], over CHOIR_ALL_AXES a scalar, over CHOIR_NO_AXIS x itself. CHOIR_INVALID: an axis that x
// has not.

// f32, f64, i32, i64, u8, in which the sum stays; integers wrap. Long sums are collected in f64
// and rounded at the end. The sum of nothing is 0.
choir_tensor *choir_sum(choir_tensor *x, choir_axes axes);
// The sum divided by how many elements it is of. Means of i32 and i64 are f64, of u8 and bool f32;
// no gradient flows through those. The mean of nothing is NAN.
choir_tensor *choir_mean(choir_tensor *x, choir_axes axes);
// Where along axis (negative: from the back) the largest element is, as i64; the lowest index of
// equals. A NAN is never the largest, unless there is nothing else. f32, f64, i32, i64, u8; no
// gradient. CHOIR_INVALID: the axis is empty.
choir_tensor *choir_argmax(choir_tensor *x, int axis);

// Shapes and dtypes. All dtypes.

// A view of x, without a copy, with as many elements in another shape, of which one dimension may
// be CHOIR_NONE: it becomes what fits.
choir_tensor *choir_reshape(choir_tensor *x, choir_shape shape);
// x in another dtype; x itself if it has it. To floating point: to nearest, ties to even. To
// integers: cut towards zero, and to the nearest end of the range where it does not fit; NAN
// becomes 0. To bool: whether it is not 0. An i64 beyond 2^53 goes by way of the nearest f64. A
// plain number becomes a tensor.
choir_tensor *choir_cast(choir_tensor *x, choir_dtype dtype);

// count elements of an axis (negative: from the back) from the first-th on; of the first axis that
// is not of one element it is a view, without a copy. CHOIR_INVALID: they are not there.
choir_tensor *choir_slice(choir_tensor *x, int axis, int64_t first, int64_t count);
// parts[i], of n, becomes the i-th of n equal slices of an axis. After a failure, which is the
// frame's, some are NULL. CHOIR_INVALID: the axis does not divide.
CHOIR_MUST_CHECK choir_status choir_split(
		choir_tensor *x, int axis, size_t n, choir_tensor *parts[]);
// n tensors, one or more, behind each other along an axis; their other dimensions are equal.
choir_tensor *choir_concat(size_t n, choir_tensor *const tensors[], int axis);
// x with its axes in another order: axis i of the result is axis axes[i] of x, each of which comes
// once. NULL: the other way round. A view where only axes of one element move.
choir_tensor *choir_transpose(choir_tensor *x, const int axes[]);
// Rows of x, along its first axis, by their numbers: indices of shape [..], u8, i32 or i64, give
// [.., row]. Gradients (of f32 and f64) flow to x, where those of a row that is taken twice are
// added in the order of the indices; by a read of a variable of 4096 rows or more it is slices
// (tensor.h) of these. CHOIR_INVALID: an index of no row, naming it, here or, if the
// device works asynchronously, from the next call that waits.
choir_tensor *choir_gather(choir_tensor *x, choir_tensor *indices);

// Products. f32 and f64.

// Which operand of a product has its last two axes swapped.
typedef enum {
	CHOIR_TRANSPOSED_NONE = 0,
	CHOIR_TRANSPOSED_A,
	CHOIR_TRANSPOSED_B
} choir_transposed;
// a [.., m, k] times b [.., k, n] gives [.., m, n]; transposed, a is [.., k, m], or b is
// [.., n, k]. The leading axes are equal, or b is one matrix for all of them, of rank 2.
choir_tensor *choir_matmul(choir_tensor *a, choir_tensor *b, choir_transposed which);
// x [.., c] plus bias [c]. Also i32, i64 and u8.
choir_tensor *choir_bias_add(choir_tensor *x, choir_tensor *bias);

// Images: [n, h, w, c], n images of h rows, w columns and c channels. f32 and f64. Windows of size
// (rows or columns) begin every stride pixels. padding 0 or more: so many zeros on each side, and
// (h + 2 padding - size) / stride + 1 windows, rounded down. padding -1: TensorFlow's SAME, that
// is h / stride windows, rounded up, and as many zeros as these need, half of them in front and
// the rest, which has the odd one, behind (tensorflow.org/api_docs/python/tf/nn, "Notes on
// padding"). CHOIR_INVALID: a stride below 1, a padding below -1, a window larger than the padded
// image, windows beside an image without rows or columns, and for the pools a padding of size or
// more.

// filter [kh, kw, c, out] gives [n, oh, ow, out]:
// y[i, r, s, o] = sum over p, q, c of x[i, r stride + p - top, s stride + q - left, c]
// filter[p, q, c, o], with zeros outside x.
choir_tensor *choir_conv2d(choir_tensor *x, choir_tensor *filter, int stride, int padding);
// The largest element of each size x size window, for each channel. What lies outside x does not
// count, so padding is less than size. The gradient goes to the first of equals, by rows.
choir_tensor *choir_max_pool2d(choir_tensor *x, int size, int stride, int padding);
// The mean of the elements of each window that lie inside x; padding is less than size as well.
choir_tensor *choir_average_pool2d(choir_tensor *x, int size, int stride, int padding);

// Training

// Elements are kept with probability 1 - rate and divided by it, else 0 (Srivastava et al. 2014,
// as inverted dropout); x itself where the frame is not training or rate is 0. Which are kept is
// drawn as choir_random_normal draws, and the way back draws the same ones. rate is 0 or more and
// less than 1. f32 and f64.
choir_tensor *choir_dropout(choir_tensor *x, double rate, uint64_t seed);

// Losses, one for each example; choir_replica_mean makes the mean of a global batch of them.

// -log(softmax(logits)[label]) of logits [n, classes], f32 or f64, and labels [n], u8, i32 or i64,
// as log(sum of exp), so that no logit is too large: gives [n]. There may be more axes between, as
// in [n, places, classes] and [n, places], which gives [n, places]. Gradients flow to the logits.
// CHOIR_INVALID: a label that is no class, naming it and its example, here or, if the device works
// asynchronously, from the next call that waits.
choir_tensor *choir_softmax_cross_entropy(choir_tensor *logits, choir_tensor *labels);
// (x - target)^2, broadcast as choir_subtract does, and the mean of it over all axes but the
// first: [n, ...] gives [n]. CHOIR_INVALID: scalars.
choir_tensor *choir_squared_error(choir_tensor *x, choir_tensor *target);

// Operations of one's own

// A tensor as the functions of an operation and kernels see it: packed, row-major elements.
typedef struct {
	void *data;
	choir_dtype dtype;
	choir_shape shape;
} choir_buffer;

// An operation of the program's own on host memory, which goes on the tape like the others; where
// the device has memory of its own, Choir copies there and back. Its functions run on the thread
// of the frame, forward and shape inside choir_custom, backward on the tape's way back. They call
// nothing of Choir but choir_fail: what they return is the operation's failure, with the name in
// front; without a text it gets one, and CHOIR_END, which is none, is CHOIR_INVALID. in[], of
// which there are n, is only read.
typedef struct {
	size_t size; // of this struct: CHOIR_OPTIONS sets it
	const char *name; // in messages; copied; NULL: "custom"
	// Sets out->dtype and out->shape from those of in[]; there is no data yet, all pointers are
	// NULL. They begin as in[0]'s, and stay so where shape is NULL.
	choir_status (*shape)(size_t n, const choir_buffer in[], choir_buffer *out, void *user);
	// Fills all of out->data, which is not initialised. Must be there.
	choir_status (*forward)(size_t n, const choir_buffer in[], choir_buffer *out, void *user);
	// Writes, or adds to, gradient[i].data, which begins at zero, the gradient by in[i], in its
	// dtype and shape, of what out_gradient is the gradient by out; gradient[i].data NULL: not
	// wanted. in and out are as forward saw and left them: where a variable that was read has
	// changed since, the way back is CHOIR_STATE. NULL: no gradient flows through.
	choir_status (*backward)(size_t n, const choir_buffer in[], const choir_buffer *out,
			const choir_buffer *out_gradient, choir_buffer gradient[], void *user);
} choir_custom_op;

// The result of op on 1 to 8 inputs of one frame. *op is copied; user is borrowed until the frame
// is emptied. CHOIR_INVALID: another number of inputs, no forward, a size that is not set, or a
// dtype or shape from op->shape that cannot be; else what its functions return.
choir_tensor *choir_custom(
		const choir_custom_op *op, void *user, size_t n, choir_tensor *const inputs[]);

CHOIR_C_END
