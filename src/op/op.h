// A name, a rule for the result's shape, and a gradient. Operations know no replicas.
#pragma once

#include "choir/extend/kernel_table.h"
#include "choir/tape.h"
#include "op/kernel/kernel.h"
#include "tensor/tensor.h"

enum { CHI_MAX_INPUTS = 8 };

typedef struct chi_op chi_op;

// In the frame's arena.
typedef struct chi_node {
	const chi_op *op;
	struct chi_node *previous;
	choir_tensor *out;
	size_t n;
	choir_tensor **in;
	const void *attributes;
	size_t mark;
	bool reached; // y depends on out; wanted: and out on a source
	bool wanted;
	bool tf32; // the frame's, and its gradient's
} chi_node;

// Sets gradient[i] where want[i] is set, by operations, to a new tensor or dy; NULL is zero. Other
// new tensors are dropped.
typedef struct {
	choir_tensor *dy;
	const bool *want;
	choir_tensor **gradient;
} chi_backward;
typedef choir_status chi_backward_fn(const chi_node *node, const chi_backward *g);

// dtype and shape are those of in[0] until infer sets them.
typedef struct {
	size_t n;
	choir_tensor *const *in;
	const void *attributes;
	choir_dtype dtype;
	choir_shape shape;
} chi_result;

struct chi_op {
	const char *name; // of kernels
	const char *label; // in messages; NULL: name
	size_t attribute_bytes;
	// Checks the inputs; sets out's dtype and shape. Messages lack the name.
	choir_status (*infer)(chi_result *r);
	chi_backward_fn *backward; // NULL: no gradient
	// For a recorded backward pass (tape.h), if backward is not recorded: the result by recorded
	// operations.
	choir_tensor *(*formula)(const chi_node *node);
	bool foreign; // the program's: f32 in mixed precision, no recorded backward pass
	// The last inputs, which are dropped with the call.
	size_t private_inputs;
	choir_status (*forward)(const chi_node *node);
};

// The gradient of y = f(x), by recorded operations.
typedef choir_tensor *chi_slope_fn(choir_tensor *x, choir_tensor *y, choir_tensor *dy);

// One operand. One of gradient and slope is needed; both for recorded passes.
typedef struct {
	chi_op op;
	const char *gradient; // a kernel of operand or result, and dy
	bool of_result;
	chi_slope_fn *slope;
} chi_unary_op;
choir_status chi_unary_backward(const chi_node *node, const chi_backward *g);
// Defines choir_NAME and its operation. slope_value: of x, y and dy; by_result: gradient_kernel
// takes y instead of x.
#define CHI_UNARY_OP(kernel, infer_shape, gradient_kernel, by_result, slope_value) \
	static choir_tensor *kernel##_slope(choir_tensor *x, choir_tensor *y, choir_tensor *dy) \
	{ \
		(void) x; \
		(void) y; \
		return slope_value; \
	} \
	static const chi_unary_op kernel##_op = { \
		{ .name = #kernel, .infer = infer_shape, .backward = chi_unary_backward }, \
		gradient_kernel, by_result, kernel##_slope \
	}; \
	choir_tensor *choir_##kernel(choir_tensor *x) \
	{ \
		return chi_op_call(&kernel##_op.op, NULL, 1, &x, NULL); \
	}

// Plain numbers get the operands' dtype. Recorded if a gradient can flow to a tape. NULL inputs
// give NULL.
choir_tensor *chi_op_call(const chi_op *op, choir_frame *frame, size_t n, choir_tensor *const in[],
		const void *attributes);

// Records the thread's failure in f, with the name. Returns NULL.
choir_tensor *chi_op_failed(choir_frame *f, const char *name);

// Checks as chi_op_call. False: recorded in f.
bool chi_op_operands(const char *name, choir_frame *f, size_t n, choir_tensor *const in[]);

// On tensors that fit; not recorded.
choir_tensor *chi_op_kernel(choir_frame *frame, const char *operation, size_t n,
		choir_tensor *const in[], const void *attributes, choir_dtype dtype,
		const choir_shape *shape);

// The key of the frame's next random numbers. False: recorded in f.
bool chi_op_draw(choir_frame *f, const char *what, uint64_t seed, choir_random_attributes *next);

// The second records out as x's cast.
extern const chi_op chi_cast_op, chi_reshape_op;
choir_tensor *chi_cast_record(choir_tensor *x, choir_tensor *out);

// activation(x w + bias)
choir_tensor *chi_dense(
		choir_tensor *x, choir_tensor *w, choir_tensor *bias, choir_activation activation);

typedef choir_status chi_gather_rows_fn(
		const choir_tensor *table, const choir_tensor *indices, choir_tensor *out);
choir_tensor *chi_gather_by(chi_gather_rows_fn *take, choir_tensor *table, choir_tensor *indices);

// Two slices give slices, else dense.
choir_tensor *chi_slices_add(choir_tensor *a, choir_tensor *b);

// A view on flat from *first on, which advances. NULL gives NULL.
choir_tensor *chi_part(choir_tensor *flat, int64_t *first, choir_shape shape);

// For broadcast operands of one dtype.
choir_status chi_infer_binary(chi_result *r);
// CHOIR_INVALID, without a name.
choir_status chi_broadcast_shapes(const choir_shape *a, const choir_shape *b, choir_shape *shape);
// x in shape where the two differ only by a last axis of 1, else x.
choir_tensor *chi_match_last_axis(choir_tensor *x, const choir_shape *shape);
// 0, 1, 2, ... in i64.
choir_tensor *chi_count_up(choir_frame *f, int64_t n);
// CHOIR_NONE: recorded in x's frame.
int chi_axis_of(const char *name, choir_tensor *x, int axis);

// The gradient of a broadcast; of a repeat.
choir_tensor *chi_sum_to(choir_tensor *x, const choir_shape *shape);
choir_tensor *chi_broadcast_to(choir_tensor *x, const choir_shape *shape);
