// Operations: what each is called, how its shape follows from its inputs, how its gradient is
// made, and how a kernel is found for it. An operation knows no replicas.
#pragma once

#include "choir/extend/kernel_table.h"
#include "choir/tape.h"
#include "tensor/tensor.h"

enum { CHI_MAX_INPUTS = 8 };

typedef struct chi_op chi_op;

// A recorded operation, in the arena of its frame.
typedef struct chi_node {
	const chi_op *op;
	struct chi_node *previous; // on the tape
	choir_tensor *out;
	size_t n;
	choir_tensor **in;
	const void *attributes; // a copy in the arena
	size_t mark; // of the frame's arena before this node
	bool reached; // while the tape goes back: y depends on out
	bool wanted; // and out on a source
} chi_node;

// Makes the gradients of node's inputs from dy, of out's shape, by calling operations. It sets
// gradient[i] where want[i] is set, to a new tensor or to dy; NULL means zero. The other tensors
// that it makes die when it returns. May fail by the frame.
typedef choir_status chi_backward_fn(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[]);

struct chi_op {
	const char *name; // of the kernels
	const char *label; // in messages; NULL: name
	size_t attribute_bytes;
	// Checks the inputs (message without the operation's name) and gives out's dtype and shape.
	// NULL: those of in[0].
	choir_status (*infer)(size_t n, choir_tensor *const in[], const void *attributes,
			choir_dtype *dtype, choir_shape *shape);
	chi_backward_fn *backward; // NULL: no gradient flows through
	// The last inputs that were made for this call alone: they die with it and have no gradient.
	size_t private_inputs;
	// Instead of a kernel: custom operations, views, operations of strategy.
	choir_status (*forward)(const chi_node *node);
};

// An operation on each element, whose gradient is a kernel of its operand or its result, and dy.
typedef struct {
	chi_op op; // first
	const char *gradient; // the kernel
	bool of_result;
} chi_unary_op;
choir_status chi_unary_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[]);

// Runs an operation: makes plain numbers tensors of the others' dtype, checks frames, staleness
// and shape, runs the kernel on the frame's stream, and records it if a tape is on and a gradient
// can flow. NULL inputs give NULL.
choir_tensor *chi_op_call(const chi_op *op, choir_frame *frame, size_t n, choir_tensor *const in[],
		const void *attributes);

// The checks of chi_op_call, for operations that run kernels before. False: recorded in f, with
// name in front.
bool chi_op_operands(const char *name, choir_frame *f, size_t n, choir_tensor *const in[]);

// A kernel's result on tensors that fit, not recorded: for gradients.
choir_tensor *chi_op_kernel(choir_frame *frame, const char *operation, size_t n,
		choir_tensor *const in[], const void *attributes, choir_dtype dtype,
		const choir_shape *shape);

// The key of a frame's next random numbers. False: none can be drawn there, which f records.
bool chi_op_draw(choir_frame *f, const char *what, uint64_t seed, choir_random_attributes *next);

// Runs a kernel on buffers of stream's device, for optimizers and reductions.
choir_status chi_kernel_run(chi_stream *stream, const char *operation, size_t n,
		const choir_buffer in[], choir_buffer *out, const void *attributes);

// A kernel, for loops that cannot afford the lookup. NULL: a failure that lists the dtypes with
// one.
const choir_kernel_table *chi_kernel_find(
		choir_device *d, const choir_kernel_call *call, const char *operation, choir_dtype dtype);

// Whether the kernel comes with Choir.
bool chi_kernel_is_builtin(const choir_kernel_table *kernel);

// Fused operations that layers use; like the public ones.
choir_tensor *chi_dense(
		choir_tensor *x, choir_tensor *w, choir_tensor *bias, choir_activate activate);

// choir_gather of a table that has no values of its own: take brings its rows to out.
typedef choir_status chi_gather_rows_fn(
		const choir_tensor *table, const choir_tensor *indices, choir_tensor *out);
choir_tensor *chi_gather_by(chi_gather_rows_fn *take, choir_tensor *table, choir_tensor *indices);

// The sum of two gradients of one tensor, one of which or both are slices: the rows of both if
// both are, else a dense tensor.
choir_tensor *chi_slices_add(choir_tensor *a, choir_tensor *b);

// A view of that shape on a flat tensor's elements from *first on, which advances: for kernels
// with several results. NULL gives NULL.
choir_tensor *chi_part(choir_tensor *flat, int64_t *first, choir_shape shape);

// sum_to adds up what a broadcast from shape repeated (x itself where nothing was); broadcast_to
// repeats.
choir_tensor *chi_sum_to(choir_tensor *x, const choir_shape *shape);
choir_tensor *chi_broadcast_to(choir_tensor *x, const choir_shape *shape);

// The library in use beside Choir's own kernels, "oneDNN 2.7.2 (1a9f2b)" or "none". Bits change
// with its version.
enum { CHI_KERNEL_LIBRARY = 64 };
const char *chi_kernel_library(char text[CHI_KERNEL_LIBRARY]);
