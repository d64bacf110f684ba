// The tape from inside. A callback gets each gradient as soon as it is final, so that it can be
// added to the partial sums and its memory freed during the backward pass.
#pragma once

#include "op/op.h"

// The reads of variables while a tape records, in the frame's arena. A full block is followed by
// one of twice the capacity that begins with the same reads, so a rewind finds the older block
// whole.
typedef struct chi_reads {
	struct chi_reads *older;
	size_t mark, capacity; // mark: of the arena before this block
	choir_tensor *read[];
} chi_reads;

struct choir_tape {
	choir_frame *frame;
	size_t mark; // of the frame's arena before the tape
	chi_node *last;
	bool used; // gradient was asked for: nothing is recorded any more
	bool again; // a segment is being made a second time, by the way back
	int segments; // within which the way there is, and which may be made again
	size_t n_reads;
	choir_tensor **reads; // n_reads of them, in the order of reading
	chi_reads *block; // which holds them
};

// The room of variables says that t, an alias of a source, was read while the tape records.
choir_status chi_tape_add_read(choir_tape *tape, choir_tensor *t);

// Records out, made elsewhere, as the result of op on in (for views and collectives), if a tape
// is on and a gradient can flow. The result is out; NULL: no memory, and out is dropped.
choir_tensor *chi_op_record(const chi_op *op, size_t n, choir_tensor *const in[],
		const void *attributes, choir_tensor *out);

// A segment whose results are not kept: on the tape it is one node, of which in[] is all that was
// made before and is used inside. Whether a node is one.
bool chi_segment_is(const chi_node *node);
// Makes the segment again, recorded apart: its result, and in *last its newest operation. NULL:
// the frame has failed.
choir_tensor *chi_segment_again(const chi_node *node, chi_node **last);

// Called once for each source, as soon as its gradient is final: never NULL (zeros where y does
// not depend on it; those come first). The gradient is dropped after the call: who wants it
// longer keeps an alias. It may be slices (tensor.h). A failure ends the way back.
//
// What dies: every result recorded on the tape from which y was made, other than y and the
// sources, as soon as the way back is past the operation that made it. Its handle stays, and
// using it is CHOIR_STATE; aliases of its memory (chi_tensor_alias, what was returned or given)
// are not touched. Tensors that no recorded operation made (arguments, constants, borrowed
// memory) and results that y was not made from stay.
typedef choir_status chi_ready_fn(void *user, size_t index, choir_tensor *gradient);
choir_status chi_tape_backward(choir_tape *tape, choir_tensor *y, size_t n,
		choir_tensor *const sources[], chi_ready_fn *ready, void *user);
