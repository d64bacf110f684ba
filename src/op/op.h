// Operations: a name, a rule for the result's shape, and a gradient. They know nothing of
// replicas.
#pragma once

#include "choir/extend/kernel_table.h"
#include "choir/tape.h"
#include "op/kernel/kernel.h"
#include "tensor/tensor.h"

enum { CHI_MAX_INPUTS = 8 };

typedef struct chi_op chi_op;

// In its frame's arena.
typedef struct chi_node {
	const chi_op *op;
	struct chi_node *previous; // on the tape
	choir_tensor *out;
	size_t n;
	choir_tensor **in;
	const void *attributes; // in the arena
	size_t mark; // of the arena before this
	bool reached; // y depends on out
	bool wanted; // and out on a source
} chi_node;

// Computes gradients from dy, of out's shape, by operations. Sets gradient[i] where want[i] is
// set, to a new tensor or dy; NULL means zero. Other new tensors are dropped. A failure may be
// recorded in the frame only.
typedef choir_status chi_backward_fn(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[]);

struct chi_op {
	const char *name; // of kernels
	const char *label; // in messages; NULL: name
	size_t attribute_bytes;
	// Checks the inputs, without a name in messages, and sets out's dtype and shape. NULL: those
	// of in[0].
	choir_status (*infer)(size_t n, choir_tensor *const in[], const void *attributes,
			choir_dtype *dtype, choir_shape *shape);
	chi_backward_fn *backward; // NULL: has no gradient
	// A recorded backward pass (tape.h) needs one of these: the backward function makes gradients
	// by recorded operations; or formula makes the same result by such operations.
	bool recordable;
	choir_tensor *(*formula)(const chi_node *node);
	bool foreign; // the program's: keeps f32 in mixed precision
	// That die with the call and have no gradient.
	size_t private_inputs;
	choir_status (*forward)(const chi_node *node);
};

// Computes the gradient of y = f(x) by recorded operations.
typedef choir_tensor *chi_slope_fn(choir_tensor *x, choir_tensor *y, choir_tensor *dy);

// It has one operand. One of gradient and slope is needed; both for recorded passes.
typedef struct {
	chi_op op;
	const char *gradient; // a kernel of the operand or result, and dy
	bool of_result;
	chi_slope_fn *slope;
} chi_unary_op;
choir_status chi_unary_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[]);

// Plain numbers get the dtype of the other operands; frames, staleness and shapes are checked. It
// is recorded if a tape is active and a gradient can flow. NULL inputs give NULL.
choir_tensor *chi_op_call(const chi_op *op, choir_frame *frame, size_t n, choir_tensor *const in[],
		const void *attributes);

// Checks as chi_op_call, before the operation's own kernels. False: recorded in f.
bool chi_op_operands(const char *name, choir_frame *f, size_t n, choir_tensor *const in[]);

// On tensors that fit, without recording, for gradients.
choir_tensor *chi_op_kernel(choir_frame *frame, const char *operation, size_t n,
		choir_tensor *const in[], const void *attributes, choir_dtype dtype,
		const choir_shape *shape);

// Sets the key of the frame's next random numbers. False: the frame cannot draw; recorded in f.
bool chi_op_draw(choir_frame *f, const char *what, uint64_t seed, choir_random_attributes *next);

// On buffers, for optimizers and reductions.
choir_status chi_kernel_run(chi_stream *stream, const char *operation, size_t n,
		const choir_buffer in[], choir_buffer *out, const void *attributes);
// On a call that is not empty. CHOIR_UNSUPPORTED: there is no kernel of this name.
choir_status chi_kernel_run_named(
		chi_stream *stream, const char *operation, const char *name, choir_kernel_call *call);

// choir_cast's operation. The second function records out as x's cast.
extern const chi_op chi_cast_op;
choir_tensor *chi_cast_record(choir_tensor *x, choir_tensor *out);

// x w + bias with an activation.
choir_tensor *chi_dense(
		choir_tensor *x, choir_tensor *w, choir_tensor *bias, choir_activation activation);

// The table has no values of its own: take copies rows to out.
typedef choir_status chi_gather_rows_fn(
		const choir_tensor *table, const choir_tensor *indices, choir_tensor *out);
choir_tensor *chi_gather_by(chi_gather_rows_fn *take, choir_tensor *table, choir_tensor *indices);

// At least one is slices. Two give slices, else the result is dense.
choir_tensor *chi_slices_add(choir_tensor *a, choir_tensor *b);

// A view on flat from element *first on, which advances. NULL gives NULL.
choir_tensor *chi_part(choir_tensor *flat, int64_t *first, choir_shape shape);

// Infers for operands of one dtype, which broadcast.
choir_status chi_infer_binary(size_t n, choir_tensor *const in[], const void *attributes,
		choir_dtype *dtype, choir_shape *shape);
// CHOIR_INVALID: none; the text has no name.
choir_status chi_broadcast_shapes(const choir_shape *a, const choir_shape *b, choir_shape *shape);
// 0, 1, 2, ... in i64.
choir_tensor *chi_count_up(choir_frame *f, int64_t n);
// A negative axis counts from the last. CHOIR_NONE: recorded in x's frame.
int chi_axis_of(const char *name, choir_tensor *x, int axis);

// Sums what a broadcast from shape repeats; repeats.
choir_tensor *chi_sum_to(choir_tensor *x, const choir_shape *shape);
choir_tensor *chi_broadcast_to(choir_tensor *x, const choir_shape *shape);
