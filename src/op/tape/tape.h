// A gradient is delivered when it is complete, so that it can be summed and freed during the
// backward pass.
#pragma once

#include "op/op.h"

// In the frame's arena. A full block is copied to one of twice the capacity, so that a rewind
// finds the older one complete.
typedef struct chi_reads {
	struct chi_reads *older;
	size_t mark, capacity; // of the arena before it
	choir_tensor *read[];
} chi_reads;

struct choir_tape {
	choir_frame *frame;
	size_t mark; // of the arena before the tape
	chi_node *last;
	bool used; // recording has ended
	bool again; // a segment is being recomputed
	int segments; // being recorded
	size_t n_reads;
	choir_tensor **reads; // in the order of reading
	chi_reads *block;
};

// t is an alias of a source.
choir_status chi_tape_add_read(choir_tape *tape, choir_tensor *t);

// Records out as the result of op on in, for views and collectives. NULL: no memory, and out is
// dropped.
choir_tensor *chi_op_record(const chi_op *op, size_t n, choir_tensor *const in[],
		const void *attributes, choir_tensor *out);

// Its in[] is all that it uses from outside.
bool chi_segment_is(const chi_node *node);
// Returns its result, and its newest operation in *last. In a recorded pass the operations stay
// on the tape. NULL: the frame has failed.
choir_tensor *chi_segment_again(const chi_node *node, chi_node **last);

bool chi_backward_is_recorded(const choir_frame *f);

// Called once per source, when its gradient is final. gradient may be slices (tensor.h). It is
// zeros, and comes first, if y does not depend on the source. It is dropped after the call,
// unless an alias keeps it. A failure ends the pass.
//
// After an operation, the pass drops its result if y was computed from it, except y and sources;
// using such a handle is CHOIR_STATE. Aliases of its memory (chi_tensor_alias, returned and
// argument tensors) stay valid, and so do results that y does not depend on, and tensors that no
// recorded operation made.
typedef choir_status chi_ready_fn(void *user, size_t index, choir_tensor *gradient);
choir_status chi_tape_backward(choir_tape *tape, choir_tensor *y, size_t n,
		choir_tensor *const sources[], chi_ready_fn *ready, void *user);
// Drops nothing; ready gets recorded tensors, and keeps them.
choir_status chi_tape_backward_recorded(choir_tape *tape, choir_tensor *y, size_t n,
		choir_tensor *const sources[], chi_ready_fn *ready, void *user);
