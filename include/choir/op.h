// Operations: expressions on tensors. An operation makes its result in its operands' frame, queues
// the work on the frame's device, and is recorded by the frame's tape (tape.h). After a failure,
// or for a NULL operand, it returns NULL. The frame keeps the failure, so calls can be nested.
// Operands need the same dtype; a plain number (choir_number) takes the dtype of the other
// operand.
//
// Errors are those of tensor.h, and CHOIR_UNSUPPORTED: the device has no kernel for the dtype.
// Gradients flow through floating-point tensors. Results depend on the operands and the machine's
// instruction set, never on the number of threads.
//
// The first operation reads the environment variable CHOIR_KERNELS: "all" (default), or "plain"
// for Choir's kernels in plain C. With another value every operation fails with CHOIR_INVALID.
// Threads: the thread of the operands' frame.
#pragma once

#include "tensor.h"

CHOIR_C_BEGIN

// Types for a program's own tables of operations.
typedef choir_tensor *choir_binary_op(choir_tensor *a, choir_tensor *b);
typedef choir_tensor *choir_unary_op(choir_tensor *x);

// Making tensors

// Makes a tensor whose elements all equal value. A floating-point dtype rounds value; an integer
// dtype or bool must hold it exactly.
choir_tensor *choir_fill(choir_frame *f, choir_dtype dtype, choir_shape shape, double value);

// Makes independent normal numbers of mean 0 and deviation 1 in f32 or f64, by Philox4x32-10
// (extend/kernel_table.h). They depend on seed, the strategy's seed, the step (the number of runs
// that applied gradients), the replica, and the number of draws (also by dropout) since the
// replica's call began, or since choir_frame_new (docs/decisions/0013).
choir_tensor *choir_random_normal(
		choir_frame *f, choir_dtype dtype, choir_shape shape, uint64_t seed);

// Gives a view of t with a count, for example the number of examples whose sum t holds. Then MEAN
// over replicas divides by the sum of the counts. All replicas' tensors or none have a count.
// Results of operations have none.
choir_tensor *choir_with_count(choir_tensor *t, int64_t count);

// Elementwise, two operands
//
// Shapes are aligned at the right. Dimensions of 1 and missing dimensions on the left are
// repeated: [16, 784] and [784] give [16, 784]. Dtypes: f32, f64, i32, i64, u8; integers wrap
// around.

// a + b, a - b, and the product.
choir_tensor *choir_add(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_subtract(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_multiply(choir_tensor *a, choir_tensor *b);
// Integer quotients are rounded towards zero; integer division by 0 gives 0.
choir_tensor *choir_divide(choir_tensor *a, choir_tensor *b);
// NAN if a or b is NAN. The gradient goes to b where a < b, else to a.
choir_tensor *choir_maximum(choir_tensor *a, choir_tensor *b);
// NAN likewise. The gradient goes to b where b < a, else to a.
choir_tensor *choir_minimum(choir_tensor *a, choir_tensor *b);
// The C library's pow; f32 and f64. The gradient of a is 0 where b is 0. The gradient of b is 0
// where a is not positive.
choir_tensor *choir_pow(choir_tensor *a, choir_tensor *b);
// The angle of the point (b, a), -pi to pi; f32 and f64.
choir_tensor *choir_atan2(choir_tensor *a, choir_tensor *b);

// Comparisons and logic
//
// Operands broadcast as above. Results are bool, without a gradient.

// f32, f64, i32, i64, u8 and bool. A comparison with NAN is false, but choir_not_equal gives true.
choir_tensor *choir_equal(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_not_equal(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_less(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_less_equal(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_greater(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_greater_equal(choir_tensor *a, choir_tensor *b);
// Operands have any dtype; every number but 0 is true.
choir_tensor *choir_logical_and(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_logical_or(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_logical_not(choir_tensor *x);
// True for integers, and for numbers that are neither infinite nor NAN.
choir_tensor *choir_is_finite(choir_tensor *x);
// Takes elements of a where condition (bool) is true, else of b. All three broadcast. a and b have
// the same dtype, which may be any. The gradient is 0 where the other operand was taken.
choir_tensor *choir_where(choir_tensor *condition, choir_tensor *a, choir_tensor *b);

// Elementwise, one operand
//
// The result has the operand's shape. Dtypes: f32 and f64.

choir_tensor *choir_square(choir_tensor *x); // also i32, i64 and u8, which wrap around
// Also i32, i64 and u8, which wrap around. The gradient at 0 is 0.
choir_tensor *choir_abs(choir_tensor *x);
choir_tensor *choir_negate(choir_tensor *x); // also i32, i64 and u8, which wrap around
choir_tensor *choir_sign(choir_tensor *x); // -1, 0 or 1; NAN stays NAN; also i32, i64 and u8
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
// Round to a whole number: down, up, or to the nearest, with halves to even. Gradients are 0.
choir_tensor *choir_floor(choir_tensor *x);
choir_tensor *choir_ceil(choir_tensor *x);
choir_tensor *choir_round(choir_tensor *x);
// Limits elements to the range from low to high, which are values of the dtype. Also i32, i64 and
// u8. The gradient is 0 outside of the range.
choir_tensor *choir_clip(choir_tensor *x, double low, double high);
// Multiplies x by a number.
choir_tensor *choir_scale(choir_tensor *x, double by);
// The dense tensor of indexed slices (tensor.h): rows with the same index are added in order, rows
// without an index are zeros. Another t is returned as it is. f32, f64, i32, i64, u8; no gradient.
choir_tensor *choir_to_dense(choir_tensor *t);
// A view without a gradient. All dtypes.
choir_tensor *choir_stop_gradient(choir_tensor *x);

// Reductions
//
// The reduced axes are removed: [2, 3, 4] over CHOIR_AXIS(1) gives [2, 4], over CHOIR_ALL_AXES a
// scalar, over CHOIR_NO_AXIS x itself. Dtypes: f32, f64, i32, i64, u8; integers wrap around.

// The sum; its dtype is f32 for f16 and bf16. Long sums are added in f64. The sum of no elements
// is 0.
choir_tensor *choir_sum(choir_tensor *x, choir_axes axes);
// The mean; also of bool. Means of i32 and i64 are f64, of u8 and bool f32, without a gradient.
// The mean of no elements is NAN.
choir_tensor *choir_mean(choir_tensor *x, choir_axes axes);
// NAN if an element is NAN. Equal elements share the gradient. A reduced axis is not empty.
choir_tensor *choir_max(choir_tensor *x, choir_axes axes);
choir_tensor *choir_min(choir_tensor *x, choir_axes axes);
// The product, by recursive multiplication of halves. The product of no elements is 1.
choir_tensor *choir_prod(choir_tensor *x, choir_axes axes);
// The i64 index of the largest or smallest element along an axis. Of equal elements the first
// counts. NAN counts only if all elements are NAN. No gradient. The axis is not empty.
choir_tensor *choir_argmax(choir_tensor *x, int axis);
choir_tensor *choir_argmin(choir_tensor *x, int axis);

// The k largest elements along the last axis, largest first, and their i64 indices: both [.., k].
// values or indices may be NULL. Equal elements keep their order; NAN is the smallest. Gradients
// flow through *values.
CHOIR_MUST_CHECK choir_status choir_top_k(
		choir_tensor *x, int64_t k, choir_tensor **values, choir_tensor **indices);

// Which elements are summed.
typedef struct {
	size_t size;
	choir_toggle exclusive; // on: without the element itself, so the first sum is 0 (off)
	choir_toggle reverse; // on: from the last element to the first (off)
} choir_cumsum_options;

// Cumulative sums, of x's shape. Sums of f32 are added in f64.
choir_tensor *choir_cumsum(choir_tensor *x, int axis, const choir_cumsum_options *o);

// Shapes and dtypes
//
// All dtypes.

// A view in another shape. One dimension may be CHOIR_UNKNOWN: Choir computes it from the others.
choir_tensor *choir_reshape(choir_tensor *x, choir_shape shape);
// Converts x to this dtype; gives x itself if it has the dtype already. Floating-point results are
// rounded to nearest, ties to even. Integer results are rounded towards zero and saturate; NAN
// becomes 0. In bool, all numbers but 0 become 1. An i64 beyond 2^53 is first rounded to f64. A
// plain number becomes a tensor.
choir_tensor *choir_cast(choir_tensor *x, choir_dtype dtype);

// Elements first to first + count - 1 of an axis. The result is a view if the axes before this
// axis have one element.
choir_tensor *choir_slice(choir_tensor *x, int axis, int64_t first, int64_t count);
// Splits an axis into n equal slices. n divides the axis's size. After a failure some parts are
// NULL.
CHOIR_MUST_CHECK choir_status choir_split(
		choir_tensor *x, int axis, size_t n, choir_tensor *parts[]);
// Repeats x to fill a shape, aligned at the right.
choir_tensor *choir_broadcast_to(choir_tensor *x, choir_shape shape);
// Repeats x repeats[i] times along each axis i: [2, 3] with { 2, 1 } gives [4, 3].
choir_tensor *choir_tile(choir_tensor *x, const int64_t repeats[]);
// Elements along an axis in reverse order.
choir_tensor *choir_flip(choir_tensor *x, int axis);

// The elements that choir_pad puts around a tensor.
typedef enum {
	CHOIR_PAD_CONSTANT = 0,
	CHOIR_PAD_REFLECT // 3 2 [1 2 3] 2 1
} choir_pad_mode;
typedef struct {
	size_t size;
	choir_pad_mode mode;
	double value; // of CHOIR_PAD_CONSTANT
} choir_pad_options;

// Adds before[i] elements in front of axis i and after[i] elements behind it. o NULL: zeros. With
// CHOIR_PAD_REFLECT, before[i] and after[i] are less than the size of axis i.
choir_tensor *choir_pad(choir_tensor *x, const int64_t before[], const int64_t after[],
		const choir_pad_options *o);

// Joins at least one tensor along a new axis; -1 is the result's last axis. All have one shape.
choir_tensor *choir_stack(size_t n, choir_tensor *const tensors[], int axis);
// Joins at least one tensor along an axis. Other dimensions are equal.
choir_tensor *choir_concat(size_t n, choir_tensor *const tensors[], int axis);
// Axis i of the result is axis axes[i] of x. axes NULL reverses the order. The result is a view if
// only axes of one element move.
choir_tensor *choir_transpose(choir_tensor *x, const int axes[]);
// Selects rows of x: indices [..] of u8, i32 or i64 give [.., row]. The gradient of x is added in
// the order of the indices. It is indexed slices (tensor.h) if x is a read of a variable with at
// least 4096 rows. CHOIR_INVALID: an index is not a row of x; some devices report this later.
choir_tensor *choir_gather(choir_tensor *x, choir_tensor *indices);

// Makes a row for each index (u8, i32 or i64), with 1 at the index and zeros elsewhere: [..] gives
// [.., depth] of dtype. An index outside of the depth gives zeros. No gradient.
choir_tensor *choir_one_hot(choir_tensor *indices, int64_t depth, choir_dtype dtype);

// Products. f32 and f64.

// The operand whose last two axes are swapped.
typedef enum {
	CHOIR_TRANSPOSED_NONE = 0,
	CHOIR_TRANSPOSED_A,
	CHOIR_TRANSPOSED_B
} choir_transposed;
// a [.., m, k] times b [.., k, n] gives [.., m, n]. A transposed a is [.., k, m]; a transposed b
// is [.., n, k]. Leading axes broadcast, as in other operations. If b has rank 2, it multiplies
// all matrices of a.
choir_tensor *choir_matmul(choir_tensor *a, choir_tensor *b, choir_transposed which);
// Einstein summation as in NumPy: "bij,bjk->bik" multiplies matrices of a batch. Axes that the
// result lacks are summed. A letter that occurs twice in an operand takes the diagonal. Without
// "->", the result has the letters that occur once, in alphabetical order. "..." is not supported.
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

// An operation of the program on host memory. If a device has its own memory, Choir copies the
// tensors. The functions run on the frame's thread, and may call only choir_fail of Choir.
// CHOIR_END becomes CHOIR_INVALID. Inputs in[] are read-only.
typedef struct {
	size_t size;
	const char *name; // in messages; copied; NULL: "custom"
	// Sets out->dtype and out->shape, which begin as those of in[0]. May be NULL. Data pointers
	// are NULL.
	choir_status (*shape)(size_t n, const choir_buffer in[], choir_buffer *out, void *user);
	// Fills all of out->data, which is uninitialised. Required.
	choir_status (*forward)(size_t n, const choir_buffer in[], choir_buffer *out, void *user);
	// Writes the gradient with respect to in[i] to gradient[i].data, which begins as zeros. If
	// this pointer is NULL, the gradient is not needed. out_gradient is the gradient with respect
	// to out. in and out are those of forward. If backward is NULL, no gradient flows.
	choir_status (*backward)(size_t n, const choir_buffer in[], const choir_buffer *out,
			const choir_buffer *out_gradient, choir_buffer gradient[], void *user);
} choir_custom_op;

// Applies op, which is copied, to 1 to 8 inputs of one frame: shape and forward run here, backward
// in the backward pass. user must be valid until the frame is cleared. Returns failures of op's
// functions.
choir_tensor *choir_custom_op_apply(
		const choir_custom_op *op, void *user, size_t n, choir_tensor *const inputs[]);

CHOIR_C_END
