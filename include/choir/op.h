// Operations: expressions on tensors. An operation checks its operands, makes its result in their
// frame, and queues the work on the frame's device. The frame's tape, if there is one, records it
// (tape.h). On a failure or a NULL operand it returns NULL, and the frame keeps the reason, so
// calls can be nested. Operands need the same dtype; a plain number (choir_number) takes that of
// the other operand.
//
// Errors are those of tensor.h, and CHOIR_INVALID: shapes or dtypes that do not fit;
// CHOIR_UNSUPPORTED: the device has no kernel for the dtype.
// Gradients flow through floating-point tensors, and through every operation unless its comment
// says otherwise.
// Results depend on the operands and the machine's instruction set, never on the number of
// threads.
//
// Kernels are Choir's own, and oneDNN's in a build with oneDNN. The first operation reads the
// environment variable CHOIR_KERNELS: "all" (default), or "plain" for plain C. With another value
// every operation fails with CHOIR_INVALID.
// Threads: the thread of the operands' frame.
#pragma once

#include "tensor.h"

CHOIR_C_BEGIN

// The types of operations of two tensors and of one, for tables of a program.
typedef choir_tensor *choir_binary_op(choir_tensor *a, choir_tensor *b);
typedef choir_tensor *choir_unary_op(choir_tensor *x);

// Making tensors, and setting a count

// Makes a tensor of equal elements, rounded in f32, f16 and bf16. CHOIR_INVALID also: an integer
// or bool cannot hold value.
choir_tensor *choir_fill(choir_frame *f, choir_dtype dtype, choir_shape shape, double value);

// Makes independent normal numbers of mean 0 and deviation 1 in f32 or f64, by Philox4x32-10
// (extend/kernel_table.h). They depend on seed, the strategy's seed, the step (the number of runs
// that applied gradients), the replica, and the number of earlier draws, but not on devices or
// threads (docs/decisions/0013). Draws, also those of dropout, are counted from the start of the
// replica's call, or from choir_frame_new.
choir_tensor *choir_random_normal(
		choir_frame *f, choir_dtype dtype, choir_shape shape, uint64_t seed);

// A view of t with a count, for example of the examples whose sum t is. MEAN over replicas
// divides by the sum of the counts if all tensors have one, by the number of replicas if none
// has, and a mixture is CHOIR_INVALID (docs/decisions/0014). Results of operations have no count.
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
// Integer quotients are rounded towards zero; integer division by 0 gives 0.
choir_tensor *choir_divide(choir_tensor *a, choir_tensor *b);
// NAN if a or b is NAN. The gradient goes to b where a < b, else to a.
choir_tensor *choir_maximum(choir_tensor *a, choir_tensor *b);
// NAN if a or b is NAN. The gradient goes to b where b < a, else to a.
choir_tensor *choir_minimum(choir_tensor *a, choir_tensor *b);
// The C library's pow; f32 and f64. The gradient of a is 0 where b is 0; that of b is 0 where a
// is not positive.
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
// All dtypes. Operands are cast to bool: all but 0 is true.
choir_tensor *choir_logical_and(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_logical_or(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_logical_not(choir_tensor *x);
// Neither infinite nor NAN; true for integers.
choir_tensor *choir_is_finite(choir_tensor *x);
// a where condition (bool) is true, else b; all three broadcast. a and b have one dtype, any. The
// gradient is 0 where the other was taken.
choir_tensor *choir_where(choir_tensor *condition, choir_tensor *a, choir_tensor *b);

// Elementwise, one operand
//
// The result has the operand's shape. Dtypes: f32 and f64.

choir_tensor *choir_square(choir_tensor *x); // also i32, i64 and u8, which wrap around
// Also i32, i64 and u8, which wrap around: the smallest i32 is its own absolute value. The
// gradient at 0 is 0.
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
// The next whole number below, above, or nearest, halves to the even one. Gradients are 0.
choir_tensor *choir_floor(choir_tensor *x);
choir_tensor *choir_ceil(choir_tensor *x);
choir_tensor *choir_round(choir_tensor *x);
// x between low and high; also i32, i64 and u8. The gradient is 0 outside. CHOIR_INVALID: low is
// above high, or a bound is not a value of the dtype.
choir_tensor *choir_clip(choir_tensor *x, double low, double high);
// x times by.
choir_tensor *choir_scale(choir_tensor *x, double by);
// The dense tensor of indexed slices (tensor.h): rows of one index are added in order, other rows
// are zeros. Any other t is returned. f32, f64, i32, i64, u8; no gradient.
choir_tensor *choir_to_dense(choir_tensor *t);
// A view without a gradient. All dtypes.
choir_tensor *choir_stop_gradient(choir_tensor *x);

// Reductions
//
// The reduced axes are removed: [2, 3, 4] over CHOIR_AXIS(1) gives [2, 4], over CHOIR_ALL_AXES a
// scalar, over CHOIR_NO_AXIS x itself. CHOIR_INVALID: x lacks an axis.

// The sum, in x's dtype, f32 for f16 and bf16; integers wrap around. Long sums are collected in
// f64. No elements give 0.
choir_tensor *choir_sum(choir_tensor *x, choir_axes axes);
// Means of i32 and i64 are f64, of u8 and bool f32, without a gradient. No elements give NAN.
choir_tensor *choir_mean(choir_tensor *x, choir_axes axes);
// f32, f64, i32, i64, u8; NAN if one is NAN. Equal elements share the gradient. CHOIR_INVALID: a
// reduced axis is empty.
choir_tensor *choir_max(choir_tensor *x, choir_axes axes);
choir_tensor *choir_min(choir_tensor *x, choir_axes axes);
// The product: f32, f64, i32, i64, u8; integers wrap around. Halves are multiplied recursively.
// No elements give 1.
choir_tensor *choir_prod(choir_tensor *x, choir_axes axes);
// The index of the largest or smallest element along an axis (below 0: from the last), as i64;
// the first of equal ones. A NAN is passed over unless all are. f32, f64, i32, i64, u8; no
// gradient. CHOIR_INVALID: the axis is empty.
choir_tensor *choir_argmax(choir_tensor *x, int axis);
choir_tensor *choir_argmin(choir_tensor *x, int axis);

// The k largest elements along the last axis, largest first, and their i64 indices: both [.., k].
// Either output may be NULL. Of equal elements the first comes first; NAN is the smallest. f32,
// f64, i32, i64, u8. Gradients flow through the values. CHOIR_INVALID: k is not 1 to the length
// of the axis. After a failure both are NULL.
CHOIR_MUST_CHECK choir_status choir_top_k(
		choir_tensor *x, int64_t k, choir_tensor **values, choir_tensor **indices);

// The elements of a cumulative sum.
typedef struct {
	size_t size; // of this struct: CHOIR_OPTIONS sets it
	choir_toggle exclusive; // on: without the element itself, so the first sum is 0 (off)
	choir_toggle reverse; // on: from the last element to the first (off)
} choir_cumsum_options;

// Cumulative sums, in x's dtype and shape: f32, f64, i32, i64, u8; integers wrap around. Sums of
// f32 are collected in f64.
choir_tensor *choir_cumsum(choir_tensor *x, int axis, const choir_cumsum_options *o);

// Shapes and dtypes
//
// All dtypes. An axis below 0 is counted from the last.

// A view in another shape. One dimension may be CHOIR_UNKNOWN: it follows from the others.
choir_tensor *choir_reshape(choir_tensor *x, choir_shape shape);
// Converts x; x itself if it has this dtype. To floating point it rounds to nearest, ties to
// even. To integers it rounds towards zero and saturates; NAN becomes 0. To bool, all but 0
// becomes 1. An i64 beyond 2^53 is first rounded to f64. A plain number becomes a tensor.
choir_tensor *choir_cast(choir_tensor *x, choir_dtype dtype);

// Elements first to first + count - 1 of an axis: a view if all axes before it have one element.
// CHOIR_INVALID: x does not have these elements.
choir_tensor *choir_slice(choir_tensor *x, int axis, int64_t first, int64_t count);
// Splits an axis into n equal slices. After a failure, which the frame keeps, some parts are
// NULL. CHOIR_INVALID: n does not divide the axis.
CHOIR_MUST_CHECK choir_status choir_split(
		choir_tensor *x, int axis, size_t n, choir_tensor *parts[]);
// Repeats x to fill a shape, aligned at the right. CHOIR_INVALID: a dimension of x is neither 1
// nor that of shape.
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

// Adds before[i] elements before and after[i] after axis i. o NULL: zeros. CHOIR_INVALID: a
// negative number; a value that the dtype cannot hold; for CHOIR_PAD_REFLECT, as many elements as
// the axis has.
choir_tensor *choir_pad(choir_tensor *x, const int64_t before[], const int64_t after[],
		const choir_pad_options *o);

// Joins at least one tensor of one shape along a new axis; -1 is the result's last.
choir_tensor *choir_stack(size_t n, choir_tensor *const tensors[], int axis);
// Joins at least one tensor along an axis. Other dimensions are equal.
choir_tensor *choir_concat(size_t n, choir_tensor *const tensors[], int axis);
// Axis i of the result is axis axes[i] of x; each axis occurs once. NULL reverses the order. The
// result is a view if only axes of one element move.
choir_tensor *choir_transpose(choir_tensor *x, const int axes[]);
// Selects rows of x: indices [..] of u8, i32 or i64 give [.., row]. Gradients flow to x, added in
// the order of the indices. They are indexed slices (tensor.h) if x is a read of a variable with
// at least 4096 rows. CHOIR_INVALID: an index is not a row of x; an asynchronous device reports
// it later (tensor.h).
choir_tensor *choir_gather(choir_tensor *x, choir_tensor *indices);

// Rows with a 1 at each index (u8, i32 or i64) and zeros elsewhere: [..] gives [.., depth] of
// dtype. An index outside of the depth gives zeros. No gradient.
choir_tensor *choir_one_hot(choir_tensor *indices, int64_t depth, choir_dtype dtype);

// Products. f32 and f64.

// The operand whose last two axes are swapped.
typedef enum {
	CHOIR_TRANSPOSED_NONE = 0,
	CHOIR_TRANSPOSED_A,
	CHOIR_TRANSPOSED_B
} choir_transposed;
// a [.., m, k] times b [.., k, n] gives [.., m, n]. A transposed a is [.., k, m]; a transposed b
// is [.., n, k]. The leading axes are equal, or b has rank 2 and is used for all of them.
choir_tensor *choir_matmul(choir_tensor *a, choir_tensor *b, choir_transposed which);
// Einstein summation as in NumPy: "bij,bjk->bik" multiplies matrices of a batch. A letter names
// an axis. One that is not in the result is summed; one that occurs twice in an operand takes the
// diagonal. Without "->", the result has the letters that occur once, in alphabetical order.
// CHOIR_INVALID: an equation that does not fit, or has "...".
choir_tensor *choir_einsum(const char *equation, choir_tensor *a, choir_tensor *b);
// x [.., c] plus bias [c]. Also i32, i64 and u8.
choir_tensor *choir_bias_add(choir_tensor *x, choir_tensor *bias);

// Custom operations

// A tensor in functions of custom operations and kernels: packed, row-major.
typedef struct {
	void *data;
	choir_dtype dtype;
	choir_shape shape;
} choir_buffer;

// An operation of the program on host memory; Choir copies from and to a device's own memory. The
// functions run on the frame's thread: shape and forward in choir_custom_op_apply, backward in
// the backward pass. They may call no function of Choir but choir_fail. Their failure fails the
// operation; CHOIR_END becomes CHOIR_INVALID. The n inputs in[] are read-only.
typedef struct {
	size_t size; // of this struct: CHOIR_OPTIONS sets it
	const char *name; // in messages; copied; NULL: "custom"
	// Sets out->dtype and out->shape, which begin as those of in[0] and stay so if shape is NULL.
	// All data pointers are NULL.
	choir_status (*shape)(size_t n, const choir_buffer in[], choir_buffer *out, void *user);
	// Fills all of out->data, which is uninitialised. Required.
	choir_status (*forward)(size_t n, const choir_buffer in[], choir_buffer *out, void *user);
	// Writes the gradient with respect to in[i] to gradient[i].data, which begins as zeros; NULL:
	// not wanted. out_gradient is the gradient with respect to out. in and out are those of
	// forward; a read of a variable that has changed since fails the pass with CHOIR_STATE. If
	// backward is NULL, no gradient flows.
	choir_status (*backward)(size_t n, const choir_buffer in[], const choir_buffer *out,
			const choir_buffer *out_gradient, choir_buffer gradient[], void *user);
} choir_custom_op;

// Applies op, which is copied, to 1 to 8 inputs of one frame. user is borrowed until the frame is
// cleared. CHOIR_INVALID: another n; no forward; op->size is not set; op->shape gives an invalid
// dtype or shape. Other failures are those of op's functions.
choir_tensor *choir_custom_op_apply(
		const choir_custom_op *op, void *user, size_t n, choir_tensor *const inputs[]);

CHOIR_C_END
