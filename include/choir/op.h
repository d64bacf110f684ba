// Operations: expressions on tensors (status.h), so calls can be nested. An operation makes its
// result in its operands' frame, and queues the work on the frame's device. The frame's tape
// records it (tape.h). All operands need one dtype; a plain number (choir_number) takes the dtype
// of the other operand.
//
// Errors are those of tensor.h, and CHOIR_UNSUPPORTED: the device has no kernel for the dtype.
// Gradients flow through floating-point tensors. Results depend on the operands and the machine's
// instruction set, not on the number of threads.
//
// The first operation reads the environment variable CHOIR_KERNELS: "all" (default), or "plain"
// for Choir's kernels in plain C (else CHOIR_INVALID).
// Threads: the thread of the operands' frame.
#pragma once

#include "tensor.h"

CHOIR_C_BEGIN

// Types for a program's tables of operations.
typedef choir_tensor *choir_binary_op(choir_tensor *a, choir_tensor *b);
typedef choir_tensor *choir_unary_op(choir_tensor *x);

// Making tensors

// Makes a tensor of elements value, rounded to a floating-point dtype. An integer dtype or bool
// must hold value exactly.
choir_tensor *choir_fill(choir_frame *f, choir_dtype dtype, choir_shape shape, double value);

// Draws independent normal numbers of mean 0 and deviation 1, in f32 or f64, by Philox4x32-10
// (extend/kernel_table.h, docs/decisions/0013). They depend on seed, the strategy's seed, the step
// (runs that applied gradients), the replica, and earlier draws in the replica's call or the frame
// of choir_frame_new.
choir_tensor *choir_random_normal(
		choir_frame *f, choir_dtype dtype, choir_shape shape, uint64_t seed);

// Gives a view of t with a count, for example of the examples whose sum t holds. MEAN over
// replicas then divides by the sum of the counts. All replicas' tensors have a count, or none.
// Results of operations have none.
choir_tensor *choir_with_count(choir_tensor *t, int64_t count);

// Elementwise, two operands
//
// Operands broadcast as in NumPy: [16, 784] and [784] give [16, 784]. Dtypes: f32, f64, i32, i64,
// u8; integers wrap around.

// a + b, a - b, and a times b.
choir_tensor *choir_add(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_subtract(choir_tensor *a, choir_tensor *b);
choir_tensor *choir_multiply(choir_tensor *a, choir_tensor *b);
// Integer quotients are rounded towards zero; integer division by 0 gives 0.
choir_tensor *choir_divide(choir_tensor *a, choir_tensor *b);
// The larger element; NAN if a or b is NAN. The gradient goes to b where a < b, else to a.
choir_tensor *choir_maximum(choir_tensor *a, choir_tensor *b);
// The smaller element; NAN if a or b is NAN. The gradient goes to b where b < a, else to a.
choir_tensor *choir_minimum(choir_tensor *a, choir_tensor *b);
// a to the power b, as C's pow; f32 and f64. The gradient of a is 0 where b is 0; that of b is 0
// where a is not positive.
choir_tensor *choir_pow(choir_tensor *a, choir_tensor *b);
// The angle of the point (b, a), from -pi to pi; f32 and f64.
choir_tensor *choir_atan2(choir_tensor *a, choir_tensor *b);

// Comparisons and logic
//
// Operands broadcast. Results are bool, without a gradient.

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
// True for numbers that are neither infinite nor NAN.
choir_tensor *choir_is_finite(choir_tensor *x);
// Takes the element of a where condition (bool) is true, else of b. All three broadcast. a and b
// have one dtype of any kind. An operand's gradient is 0 where the other was taken.
choir_tensor *choir_where(choir_tensor *condition, choir_tensor *a, choir_tensor *b);

// Elementwise, one operand
//
// The result has the operand's shape. Dtypes: f32 and f64.

choir_tensor *choir_square(choir_tensor *x); // also i32, i64 and u8, which wrap around
// Also i32, i64 and u8, which wrap around. The gradient at 0 is 0.
choir_tensor *choir_abs(choir_tensor *x);
choir_tensor *choir_negate(choir_tensor *x); // also i32, i64 and u8, which wrap around
choir_tensor *choir_sign(choir_tensor *x); // -1, 0, 1 or NAN; also i32, i64 and u8
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
// Round down, up, or to the nearest whole number (halves to even). Gradients are 0.
choir_tensor *choir_floor(choir_tensor *x);
choir_tensor *choir_ceil(choir_tensor *x);
choir_tensor *choir_round(choir_tensor *x);
// Limits elements to low .. high, which are values of the dtype. Also i32, i64 and u8. The
// gradient is 0 outside.
choir_tensor *choir_clip(choir_tensor *x, double low, double high);
// Multiplies x by a number.
choir_tensor *choir_scale(choir_tensor *x, double by);
// Gives the dense tensor of indexed slices (tensor.h), or a dense t itself. Rows of one index are
// added in order; rows without an index are zeros. f32, f64, i32, i64, u8; no gradient.
choir_tensor *choir_to_dense(choir_tensor *t);
// A view without a gradient. All dtypes.
choir_tensor *choir_stop_gradient(choir_tensor *x);

// Reductions
//
// The result lacks the reduced axes: [2, 3, 4] over CHOIR_AXIS(1) gives [2, 4], over
// CHOIR_AXES(0, 2) [3]. CHOIR_ALL_AXES gives a scalar, and CHOIR_NO_AXIS gives x itself. Dtypes:
// f32, f64, i32, i64, u8; integers wrap around.

// The sum, in f32 for f16 and bf16. Long sums are added in f64. The sum of no elements is 0.
choir_tensor *choir_sum(choir_tensor *x, choir_axes axes);
// The mean; also of bool. Means of i32 and i64 are f64, those of u8 and bool f32, without a
// gradient. The mean of no elements is NAN.
choir_tensor *choir_mean(choir_tensor *x, choir_axes axes);
// The largest or smallest element; NAN if an element is NAN. Equal elements share the gradient. A
// reduced axis is not empty.
choir_tensor *choir_max(choir_tensor *x, choir_axes axes);
choir_tensor *choir_min(choir_tensor *x, choir_axes axes);
// The product, by recursive multiplication of halves. The product of no elements is 1.
choir_tensor *choir_prod(choir_tensor *x, choir_axes axes);
// The i64 index of the first largest or smallest element along an axis, which is not empty. NAN is
// ignored unless all elements are NAN. No gradient.
choir_tensor *choir_argmax(choir_tensor *x, int axis);
choir_tensor *choir_argmin(choir_tensor *x, int axis);

// Gives the k largest elements along the last axis, largest first, and their i64 indices, both
// [.., k]. values or indices may be NULL. Equal elements keep their order; NAN is the smallest.
// Gradients flow through *values.
CHOIR_MUST_CHECK choir_status choir_top_k(
		choir_tensor *x, int64_t k, choir_tensor **values, choir_tensor **indices);

// Which elements are summed.
typedef struct {
	size_t size;
	choir_toggle exclusive; // on: a sum lacks its own element, so the first is 0; default: off
	choir_toggle reverse; // on: from the last element to the first; default: off
} choir_cumsum_options;

// Cumulative sums, of x's shape. Sums of f32 are added in f64.
choir_tensor *choir_cumsum(choir_tensor *x, int axis, const choir_cumsum_options *o);

// Shapes and dtypes
//
// All dtypes.

// A view in another shape. One dimension may be CHOIR_UNKNOWN; Choir computes it.
choir_tensor *choir_reshape(choir_tensor *x, choir_shape shape);
// Converts x to this dtype, or gives x itself if it has it. Floating-point results are rounded to
// nearest, ties to even. Integer results are rounded towards zero and saturate; NAN becomes 0. In
// bool, all numbers but 0 become 1. An i64 beyond 2^53 is first rounded to f64. A plain number
// becomes a tensor.
choir_tensor *choir_cast(choir_tensor *x, choir_dtype dtype);

// Takes the elements [first, first + count) of an axis: a view if all axes before have size 1.
choir_tensor *choir_slice(choir_tensor *x, int axis, int64_t first, int64_t count);
// Splits an axis, whose size n divides, into n equal slices. After a failure some parts are NULL.
CHOIR_MUST_CHECK choir_status choir_split(
		choir_tensor *x, int axis, size_t n, choir_tensor *parts[]);
// Repeats x to fill a shape, aligned at the right.
choir_tensor *choir_broadcast_to(choir_tensor *x, choir_shape shape);
// Repeats x repeats[i] times along each axis i: [2, 3] with { 2, 1 } gives [4, 3].
choir_tensor *choir_tile(choir_tensor *x, const int64_t repeats[]);
// Reverses the elements along an axis.
choir_tensor *choir_flip(choir_tensor *x, int axis);

// What choir_pad adds around a tensor.
typedef enum {
	CHOIR_PAD_CONSTANT = 0,
	CHOIR_PAD_REFLECT // 3 2 [1 2 3] 2 1
} choir_pad_mode;
typedef struct {
	size_t size;
	choir_pad_mode mode;
	double value; // of CHOIR_PAD_CONSTANT
} choir_pad_options;

// Adds before[i] elements in front of axis i and after[i] behind it; o NULL: zeros. With
// CHOIR_PAD_REFLECT, both are less than axis i's size.
choir_tensor *choir_pad(choir_tensor *x, const int64_t before[], const int64_t after[],
		const choir_pad_options *o);

// Joins n tensors, at least one, of one shape along a new axis; -1 is the result's last axis.
choir_tensor *choir_stack(size_t n, choir_tensor *const tensors[], int axis);
// Joins n tensors, at least one, along an axis. Their other dimensions are equal.
choir_tensor *choir_concat(size_t n, choir_tensor *const tensors[], int axis);
// Axis i of the result is axis axes[i] of x. axes NULL reverses the order. The result is a view if
// only axes of size 1 move.
choir_tensor *choir_transpose(choir_tensor *x, const int axes[]);
// Selects rows of x: indices [..] of u8, i32 or i64 give [.., row]. x's gradient is added in the
// order of the indices, and is indexed slices (tensor.h) if x is a read of a variable with at
// least 4096 rows. CHOIR_INVALID: x has no such row; some devices report this later.
choir_tensor *choir_gather(choir_tensor *x, choir_tensor *indices);

// Makes a row for each index (u8, i32 or i64), with 1 at the index, else 0: [..] gives [.., depth]
// of dtype. An index not below depth gives zeros. No gradient.
choir_tensor *choir_one_hot(choir_tensor *indices, int64_t depth, choir_dtype dtype);

// Products. f32 and f64.

// The operand that is passed with its last two axes swapped.
typedef enum {
	CHOIR_TRANSPOSED_NONE = 0,
	CHOIR_TRANSPOSED_A,
	CHOIR_TRANSPOSED_B
} choir_transposed;
// a [.., m, k] times b [.., k, n] gives [.., m, n]. A transposed a is [.., k, m]; a transposed b
// is [.., n, k]. Leading axes broadcast.
choir_tensor *choir_matmul(choir_tensor *a, choir_tensor *b, choir_transposed which);
// NumPy's einsum, without "...": "bij,bjk->bik" multiplies matrices of a batch.
choir_tensor *choir_einsum(const char *equation, choir_tensor *a, choir_tensor *b);
// x [.., c] plus bias [c]. Also i32, i64 and u8.
choir_tensor *choir_bias_add(choir_tensor *x, choir_tensor *bias);

// Custom operations

// A packed, row-major tensor in functions of custom operations and kernels.
typedef struct {
	void *data;
	choir_dtype dtype;
	choir_shape shape;
} choir_buffer;

// An operation of the program on host memory, to and from which Choir copies other tensors. The
// functions run on the frame's thread, and may call only choir_fail of Choir. CHOIR_END becomes
// CHOIR_INVALID. Inputs in[] are read-only.
typedef struct {
	size_t size;
	const char *name; // in messages; copied; NULL: "custom"
	// Sets out->dtype and out->shape. NULL: both are those of in[0]. Data pointers are NULL.
	choir_status (*shape)(size_t n, const choir_buffer in[], choir_buffer *out, void *user);
	// Writes all of out->data, which is uninitialized. Required.
	choir_status (*forward)(size_t n, const choir_buffer in[], choir_buffer *out, void *user);
	// Writes the gradient of in[i] to gradient[i].data, unless it is NULL; the data begin as
	// zeros. out_gradient is out's gradient; in and out are forward's. backward NULL: no gradient
	// flows.
	choir_status (*backward)(size_t n, const choir_buffer in[], const choir_buffer *out,
			const choir_buffer *out_gradient, choir_buffer gradient[], void *user);
} choir_custom_op;

// Applies op, which is copied, to inputs of one frame. n is 1 to 8. This call runs shape and
// forward; the backward pass runs backward. user must be valid until the frame is cleared. Fails
// as op's functions.
choir_tensor *choir_custom_op_apply(
		const choir_custom_op *op, void *user, size_t n, choir_tensor *const inputs[]);

CHOIR_C_END
