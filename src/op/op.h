// Operations: what each is called, how its shape follows from its inputs, how its gradient is
// made, and how a kernel is found for it. An operation knows no replicas.
#pragma once

#include "choir/extend/kernel.h"
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

// Makes the gradients of node's inputs from dy (of out's shape) by calling operations:
// gradient[i] is set where want[i] is, to a new tensor or to dy itself; NULL there means zero.
// Whatever else it makes dies when it returns. May fail by the frame.
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
	// How many of the last inputs were made for this call alone, and die with what it made: no
	// gradient flows to them.
	size_t private_inputs;
	// Used instead of a kernel where set: custom operations, views, what strategy brings.
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

// The one way an operation runs: NULL inputs give NULL; checks frames, staleness, shape; finds
// the kernel; runs it on the frame's stream; records it if a tape is on and a gradient can flow.
// A plain number among the inputs is made a tensor of the others' dtype first.
choir_tensor *chi_op_call(const chi_op *op, choir_frame *frame, size_t n, choir_tensor *const in[],
		const void *attributes);

// Whether all are there, usable and of frame f: what an operation asks of its operands, for those
// that run kernels before. False: recorded in f, with name in front.
bool chi_op_operands(const char *name, choir_frame *f, size_t n, choir_tensor *const in[]);

// A kernel's result on tensors that fit, not recorded: for gradients.
choir_tensor *chi_op_kernel(choir_frame *frame, const char *operation, size_t n,
		choir_tensor *const in[], const void *attributes, choir_dtype dtype,
		const choir_shape *shape);

// The key of a frame's next random numbers, for a kernel. False: none can be drawn there, which f
// records.
bool chi_op_draw(choir_frame *f, const char *what, uint64_t seed, choir_random_attributes *next);

// The same kernel lookup for callers that have buffers, not tensors (optimizers, reductions). in
// and out are on stream's device.
choir_status chi_kernel_run(chi_stream *stream, const char *operation, size_t n,
		const choir_buffer in[], choir_buffer *out, const void *attributes);

// A resolved kernel, for loops that cannot afford the lookup. NULL after a failure that lists the
// dtypes for which there is one.
const choir_kernel_table *chi_kernel_find(
		choir_device *d, const choir_kernel_call *call, const char *operation, choir_dtype dtype);

// Whether a kernel that was found is one of those that come with Choir.
bool chi_kernel_is_builtin(const choir_kernel_table *kernel);

// Fused operations that layers use; like the public ones.
choir_tensor *chi_dense(
		choir_tensor *x, choir_tensor *w, choir_tensor *bias, choir_activate activate);

// choir_gather of a table that has no values of its own: take brings its rows to out, which is as
// choir_gather's result. Gradients are those of choir_gather.
typedef choir_status chi_gather_rows_fn(
		const choir_tensor *table, const choir_tensor *indices, choir_tensor *out);
choir_tensor *chi_gather_by(chi_gather_rows_fn *take, choir_tensor *table, choir_tensor *indices);

// The sum of two gradients of one tensor, of which one is slices or both are: slices of both rows,
// one behind another, or else the larger tensor.
choir_tensor *chi_slices_add(choir_tensor *a, choir_tensor *b);

// Part of a flat tensor, as a view of that shape, from *first on, which moves behind it: of what a
// kernel gave behind each other. NULL gives NULL.
choir_tensor *chi_part(choir_tensor *flat, int64_t *first, choir_shape shape);

// Parts that gradients are made of. sum_to adds up what a broadcast from shape repeated (x itself
// where nothing was); broadcast_to repeats.
choir_tensor *chi_sum_to(choir_tensor *x, const choir_shape *shape);
choir_tensor *chi_broadcast_to(choir_tensor *x, const choir_shape *shape);

// The library that calculates beside Choir's own kernels, as text that is the same for the same
// code: "oneDNN 2.7.2 (1a9f2b)", or "none". Its bits change with its version.
enum { CHI_KERNEL_LIBRARY = 64 };
const char *chi_kernel_library(char text[CHI_KERNEL_LIBRARY]);
