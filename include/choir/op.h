// Operations: expressions on tensors. An operation checks its operands, makes its result in
// their frame, and queues the work on the frame's device. The frame's tape, if there is one,
// records the operation (tape.h). An operation that fails, or has a NULL operand, returns NULL,
// and the frame keeps the reason. So calls can be nested, and one check at the end is enough.
// Operands need the same dtype. A plain number (choir_number) takes the dtype of the other
// operand.
//
// Errors are those of tensor.h, and: CHOIR_INVALID: shapes or dtypes that do not fit.
// CHOIR_UNSUPPORTED: the device has no kernel for the dtype.
// Gradients flow through floating-point tensors only, and through every operation unless its
// comment says otherwise.
// Results depend on the operands and on the machine's instruction set, never on the number of
// threads.
//
// Kernels are Choir's own, and oneDNN's if the library was built with oneDNN. The environment
// variable CHOIR_KERNELS is "all" (the default), or "plain" for the kernels in plain C. It is
// read at the program's first operation. With another value every operation fails with
// CHOIR_INVALID.
// Threads: a call is made on the thread of its operands' frame.
#pragma once

#include "tensor.h"

CHOIR_C_BEGIN

// The types of operations of two tensors and of one, for tables of a program.
typedef choir_tensor *choir_binary_op(choir_tensor *a, choir_tensor *b);
typedef choir_tensor *choir_unary_op(choir_tensor *x);

// Making tensors, and setting a count

// Makes a tensor in which every element is value. In f32, f16 and bf16 it is rounded.
// CHOIR_INVALID also: an integer dtype or bool cannot hold value, which must be whole and in
// range (bool: 0 or 1).
choir_tensor *choir_fill(choir_frame *f, choir_dtype dtype, choir_shape shape, double value);

// Makes independent normal numbers of mean 0 and deviation 1 in f32 or f64, by Philox4x32-10
// (extend/kernel_table.h). They depend on seed, the strategy's seed, the step, the replica, and
// the number of earlier draws. The step is the number of runs so far in which gradients were
// applied. Draws, including those of dropout, are counted from the start of the replica's call,
// or from choir_frame_new. The numbers do not depend on devices or threads
// (docs/decisions/0013).
choir_tensor *choir_random_normal(
		choir_frame *f, choir_dtype dtype, choir_shape shape, uint64_t seed);

// A view of t with a count: for example the number of examples whose sum t is. If the tensors of
// all replicas have counts, MEAN over replicas divides the sum by the sum of the counts. If no
// tensor has a count, MEAN divides by the number of replicas. A mixture is CHOIR_INVALID
// (docs/decisions/0014). Results of operations have no count. Gradients flow through the view.
// CHOIR_INVALID: count is negative.
choir_tensor *choir_with_count(choir_tensor *t, int64_t count);

// Elementwise, two operands
//
// Shapes are aligned at the right. A dimension of 1 and a missing dimension on the left are
// repeated: [16, 784] and [784] give [16, 784]. Dtypes: f32, f64, i32, i64, u8; integers wrap
// around.

// a + b, a - b and the product of a and b.
choir_tensor *choir_add(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_subtract(choir_tensor *a, choir_tensor *b); // a - b
choir_tensor *choir_multiply(choir_tensor *a, choir_tensor *b);
// a / b. Integer quotients are rounded towards zero, and integer division by 0 gives 0.
choir_tensor *choir_divide(choir_tensor *a, choir_tensor *b);
// The larger element; NAN if a or b is NAN. The gradient goes to b where a < b, else to a.
choir_tensor *choir_maximum(choir_tensor *a, choir_tensor *b);
// The smaller element; NAN if a or b is NAN. The gradient goes to b where b < a, else to a.
choir_tensor *choir_minimum(choir_tensor *a, choir_tensor *b);
// a to the power of b, by the C library's pow; f32 and f64. The gradient of a is 0 where b is 0;
// that of b is 0 where a is not positive.
choir_tensor *choir_pow(choir_tensor *a, choir_tensor *b);
// The angle of the point (b, a), -pi to pi; f32 and f64.
choir_tensor *choir_atan2(choir_tensor *a, choir_tensor *b);

// Comparisons and logic
//
// Operands broadcast as above. The results are bool, and no gradient flows through them.

// f32, f64, i32, i64, u8 and bool. A comparison with NAN is false, except that NAN is not equal.
choir_tensor *choir_equal(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_not_equal(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_less(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_less_equal(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_greater(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_greater_equal(choir_tensor *a, choir_tensor *b);
// All dtypes. An operand of another dtype than bool is cast: 0 is false, all else true.
choir_tensor *choir_logical_and(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_logical_or(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_logical_not(choir_tensor *x);
// Neither infinite nor NAN; true for integers.
choir_tensor *choir_is_finite(choir_tensor *x);
// a where condition (bool) is true, else b; all three broadcast. a and b have one dtype, any. The
// gradient of each is 0 where the other was taken.
choir_tensor *choir_where(choir_tensor *condition, choir_tensor *a, choir_tensor *b);

// Elementwise, one operand
//
// The result has the operand's shape. Dtypes: f32 and f64.

choir_tensor *choir_square(choir_tensor *x); // also i32, i64 and u8, which wrap around
// Also i32, i64 and u8, which wrap around: the smallest i32 is its own absolute value. The
// gradient of choir_abs at 0 is 0, and that of choir_sign is 0.
choir_tensor *choir_abs(choir_tensor *x);
choir_tensor *choir_negate(choir_tensor *x);
choir_tensor *choir_sign(choir_tensor *x); // -1, 0 or 1; NAN stays NAN
choir_tensor *choir_sqrt(choir_tensor *x); // NAN below 0; the gradient at 0 is infinite
choir_tensor *choir_rsqrt(choir_tensor *x); // 1 / sqrt(x)
choir_tensor *choir_exp(choir_tensor *x);
choir_tensor *choir_expm1(choir_tensor *x); // exp(x) - 1, exact near 0
choir_tensor *choir_log(choir_tensor *x); // natural; NAN below 0
choir_tensor *choir_log1p(choir_tensor *x); // log(1 + x), exact near 0
choir_tensor *choir_sin(choir_tensor *x); // of radians, as choir_cos and choir_tan
choir_tensor *choir_cos(choir_tensor *x);
choir_tensor *choir_tan(choir_tensor *x);
choir_tensor *choir_erf(choir_tensor *x); // 2 / sqrt(pi) times the integral of exp(-t^2), 0 to x
// The next whole number below, above, or nearest, halves to the even one. The gradients are 0.
choir_tensor *choir_floor(choir_tensor *x);
choir_tensor *choir_ceil(choir_tensor *x);
choir_tensor *choir_round(choir_tensor *x);
// x, but at least low and at most high; also i32, i64 and u8. The gradient is 0 outside of the
// bounds. CHOIR_INVALID: low is above high, or a bound is not a value of the dtype.
choir_tensor *choir_clip(choir_tensor *x, double low, double high);
// x multiplied by a number.
choir_tensor *choir_scale(choir_tensor *x, double by);
// The dense tensor of indexed slices (tensor.h): rows with the same index are added in their
// order, and rows without an index are zeros. Any other t is returned as it is. f32, f64, i32,
// i64, u8; no gradient.
choir_tensor *choir_to_dense(choir_tensor *t);
// A view of x through which no gradient flows. All dtypes.
choir_tensor *choir_stop_gradient(choir_tensor *x);

// Reductions
//
// The reduced axes are removed from the shape: [2, 3, 4] over CHOIR_AXIS(1) gives [2, 4], over
// CHOIR_ALL_AXES a scalar, over CHOIR_NO_AXIS x itself. CHOIR_INVALID: an axis that x does not
// have.

// The sum, in x's dtype, f32 for f16 and bf16; integers wrap around. Long sums are collected
// in f64 and rounded at the end. The sum of no elements is 0.
choir_tensor *choir_sum(choir_tensor *x, choir_axes axes);
// The sum divided by the number of summed elements. Means of i32 and i64 are f64, and means of
// u8 and bool are f32; they have no gradient. The mean of no elements is NAN.
choir_tensor *choir_mean(choir_tensor *x, choir_axes axes);
// The largest and the smallest element: f32, f64, i32, i64, u8; NAN if one is NAN. The gradient is
// divided equally among equal elements. CHOIR_INVALID: a reduced axis is empty.
choir_tensor *choir_max(choir_tensor *x, choir_axes axes);
choir_tensor *choir_min(choir_tensor *x, choir_axes axes);
// All elements multiplied: f32, f64, i32, i64, u8; integers wrap around. Halves are multiplied
// with each other, again and again. Without elements it is 1.
choir_tensor *choir_prod(choir_tensor *x, choir_axes axes);
// The index of the largest or smallest element along an axis (below 0: counted from the last), as
// i64. Of equal elements, the first counts. A NAN is passed over unless all are. f32, f64, i32,
// i64, u8; no gradient. CHOIR_INVALID: the axis is empty.
choir_tensor *choir_argmax(choir_tensor *x, int axis);
choir_tensor *choir_argmin(choir_tensor *x, int axis);

// The k largest elements of each row along the last axis, largest first, and their indices along
// it, as i64: both [.., k]. values or indices may be NULL. Of equal elements, the first comes
// first; NAN counts as the smallest. f32, f64, i32, i64, u8. Gradients flow through the values.
// CHOIR_INVALID: k is not 1 to the length of the axis. After a failure both are NULL.
CHOIR_MUST_CHECK choir_status choir_top_k(
		choir_tensor *x, int64_t k, choir_tensor **values, choir_tensor **indices);

// Which elements a cumulative sum has.
typedef struct {
	size_t size; // of this struct: CHOIR_OPTIONS sets it
	choir_toggle exclusive; // on: without the element itself, so the first sum is 0 (off)
	choir_toggle reverse; // on: from the last element to the first (off)
} choir_cumsum_options;

// Cumulative sums along an axis, in x's dtype and shape: f32, f64, i32, i64, u8; integers wrap
// around. Sums of f32 are collected in f64. o may be NULL.
choir_tensor *choir_cumsum(choir_tensor *x, int axis, const choir_cumsum_options *o);

// Shapes and dtypes
//
// All dtypes. An axis below 0 is counted from the last.

// A view of x in another shape with the same number of elements. One dimension may be
// CHOIR_UNKNOWN: it follows from the others.
choir_tensor *choir_reshape(choir_tensor *x, choir_shape shape);
// Converts x to another dtype. If x has this dtype already, returns x. To floating point it
// rounds to nearest, ties to even. To integers it rounds towards zero and saturates to the range
// of the dtype; NAN becomes 0. To bool, 0 gives 0 and all else 1. An i64 beyond 2^53 is rounded
// to f64 first. A plain number becomes a tensor.
choir_tensor *choir_cast(choir_tensor *x, choir_dtype dtype);

// Elements first to first + count - 1 of an axis. The result is a view if all axes before axis
// have one element. CHOIR_INVALID: x does not have these elements.
choir_tensor *choir_slice(choir_tensor *x, int axis, int64_t first, int64_t count);
// Splits an axis into n equal slices: parts[i] gets the i-th slice. The frame keeps a failure,
// and some parts are then NULL. CHOIR_INVALID: n does not divide the axis.
CHOIR_MUST_CHECK choir_status choir_split(
		choir_tensor *x, int axis, size_t n, choir_tensor *parts[]);
// Repeats x to fill a shape, by the rules for operands: dimensions are aligned at the right.
// CHOIR_INVALID: a dimension of x is neither 1 nor that of shape.
choir_tensor *choir_broadcast_to(choir_tensor *x, choir_shape shape);
// Repeats x repeats[i] times along each axis i: [2, 3] with { 2, 1 } gives [4, 3].
choir_tensor *choir_tile(choir_tensor *x, const int64_t repeats[]);
// The elements along an axis in reverse order.
choir_tensor *choir_flip(choir_tensor *x, int axis);

// What is put around a tensor.
typedef enum {
	CHOIR_PAD_CONSTANT = 0,
	CHOIR_PAD_REFLECT // 3 2 [1 2 3] 2 1
} choir_pad_mode;

// How a tensor is padded.
typedef struct {
	size_t size; // of this struct: CHOIR_OPTIONS sets it
	choir_pad_mode mode;
	double value; // of CHOIR_PAD_CONSTANT
} choir_pad_options;

// Adds before[i] elements before and after[i] after axis i. o may be NULL: zeros. CHOIR_INVALID: a
// negative number; a value that the dtype cannot hold; for CHOIR_PAD_REFLECT, as many elements as
// the axis has.
choir_tensor *choir_pad(choir_tensor *x, const int64_t before[], const int64_t after[],
		const choir_pad_options *o);

// Joins n tensors of one shape, at least one, along a new axis: axis -1 is the last of the result.
choir_tensor *choir_stack(size_t n, choir_tensor *const tensors[], int axis);
// Concatenates n tensors, at least one, along an axis. Their other dimensions are equal.
choir_tensor *choir_concat(size_t n, choir_tensor *const tensors[], int axis);
// Permutes the axes of x: axis i of the result is axis axes[i] of x, and each axis occurs once.
// If axes is NULL, the order is reversed. The result is a view if only axes of one element move.
choir_tensor *choir_transpose(choir_tensor *x, const int axes[]);
// Selects rows of x, along its first axis: indices [..] of u8, i32 or i64 give [.., row].
// Gradients of f32 and f64 flow to x. If a row occurs twice, its gradients are added in the
// order of the indices. If x is a read of a variable with 4096 rows or more, its gradient is
// indexed slices (tensor.h). CHOIR_INVALID: an index is not a row of x. An asynchronous device
// reports it later (tensor.h).
choir_tensor *choir_gather(choir_tensor *x, choir_tensor *indices);

// Rows with a 1 at each index (u8, i32 or i64) and zeros elsewhere: [..] gives [.., depth] of
// dtype. An index outside of 0 to depth - 1 gives zeros. No gradient.
choir_tensor *choir_one_hot(choir_tensor *indices, int64_t depth, choir_dtype dtype);

// Products. f32 and f64.

// Which operand of a product has its last two axes swapped.
typedef enum {
	CHOIR_TRANSPOSED_NONE = 0,
	CHOIR_TRANSPOSED_A,
	CHOIR_TRANSPOSED_B
} choir_transposed;
// a [.., m, k] times b [.., k, n] gives [.., m, n]. A transposed a is [.., k, m]; a transposed b
// is [.., n, k]. The leading axes are equal, or b has rank 2 and is used for all of them.
choir_tensor *choir_matmul(choir_tensor *a, choir_tensor *b, choir_transposed which);
// Einstein summation as in NumPy: "bij,bjk->bik" multiplies matrices of a batch. One letter names
// an axis. A letter that is not in the result is summed; one that occurs twice in an operand takes
// the diagonal. Without "->", the result has the letters that occur once, in alphabetical order.
// CHOIR_INVALID: an equation that does not fit. "..." is not supported.
choir_tensor *choir_einsum(const char *equation, choir_tensor *a, choir_tensor *b);
// x [.., c] plus bias [c]. Also i32, i64 and u8.
choir_tensor *choir_bias_add(choir_tensor *x, choir_tensor *bias);

// Custom operations

// A tensor as functions of custom operations and kernels see it: packed, row-major elements.
typedef struct {
	void *data;
	choir_dtype dtype;
	choir_shape shape;
} choir_buffer;

// An operation that the program implements on host memory. If the device has its own memory,
// Choir copies the data to the host and back. The functions run on the frame's thread: shape and
// forward in choir_custom_op_apply, backward in the backward pass. They may call no function of
// Choir but choir_fail. If one of them fails, the operation fails with its status, but CHOIR_END
// becomes CHOIR_INVALID. The n inputs in[] are read-only.
typedef struct {
	size_t size; // of this struct: CHOIR_OPTIONS sets it
	const char *name; // in messages; copied; NULL: "custom"
	// Sets out->dtype and out->shape, which begin as those of in[0]. There is no data yet: all
	// data pointers are NULL. If shape is NULL, out keeps the dtype and shape of in[0].
	choir_status (*shape)(size_t n, const choir_buffer in[], choir_buffer *out, void *user);
	// Fills all of out->data, which is not initialised. Required.
	choir_status (*forward)(size_t n, const choir_buffer in[], choir_buffer *out, void *user);
	// Writes the gradient with respect to in[i] to gradient[i].data, in the dtype and shape of
	// in[i]. The data begin as zeros. NULL data: this gradient is not wanted. out_gradient is
	// the gradient with respect to out. in and out are those of forward. If an input is a read
	// of a variable that has changed since, the backward pass fails with CHOIR_STATE. If
	// backward is NULL, no gradient flows through the operation.
	choir_status (*backward)(size_t n, const choir_buffer in[], const choir_buffer *out,
			const choir_buffer *out_gradient, choir_buffer gradient[], void *user);
} choir_custom_op;

// Applies op to 1 to 8 inputs of one frame. *op is copied. user is borrowed until the frame is
// cleared. CHOIR_INVALID: n is not 1 to 8; no forward; op->size is not set; op->shape gives an
// invalid dtype or shape. Other failures are those of op's functions.
choir_tensor *choir_custom_op_apply(
		const choir_custom_op *op, void *user, size_t n, choir_tensor *const inputs[]);

CHOIR_C_END
