// Complete gradients are delivered during the backward pass, to be summed and freed.
#pragma once

#include "op/op.h"

// In the arena. A full block is copied to a larger one: a rewind finds the older one complete.
typedef struct chi_reads {
	struct chi_reads *older;
	size_t mark, capacity;
	choir_tensor *read[];
} chi_reads;

struct choir_tape {
	choir_frame *frame;
	size_t mark; // before the tape
	chi_node *last;
	bool used;
	bool again; // recomputing a segment
	int segments;
	size_t n_reads;
	choir_tensor **reads;
	chi_reads *block;
};

// t is an alias of a source.
choir_status chi_tape_add_read(choir_tape *tape, choir_tensor *t);

// NULL: no memory, and out is dropped.
choir_tensor *chi_op_record(const chi_op *op, size_t n, choir_tensor *const in[],
		const void *attributes, choir_tensor *out);

// in[] then is all that it uses from outside.
bool chi_segment_is(const chi_node *node);
// *last: its newest operation. A recorded pass keeps the operations. NULL: the frame has failed.
choir_tensor *chi_segment_again(const chi_node *node, chi_node **last);

bool chi_backward_is_recorded(const choir_frame *f);

// Once per source, when its gradient is final: maybe slices; zeros come first, if y does not
// depend on it. Unless an alias keeps it, the gradient is then dropped. A failure ends the pass.
// After an operation, the pass drops its result if y depends on it, except y and sources; its use
// is CHOIR_STATE. Aliases of its memory (chi_tensor_alias, returned and argument tensors), other
// results and unrecorded tensors stay valid.
typedef choir_status chi_ready_fn(void *user, size_t index, choir_tensor *gradient);
choir_status chi_tape_backward(choir_tape *tape, choir_tensor *y, size_t n,
		choir_tensor *const sources[], chi_ready_fn *ready, void *user);
