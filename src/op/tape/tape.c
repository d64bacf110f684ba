// Nodes of operations with a gradient, newest first, and reads of variables. A rewind of the arena
// removes later ones.
#include "op/tape/tape.h"

#include <string.h>

enum { FIRST_READS = 16 };

static void rewind_tape(choir_tape *tape, size_t mark)
{
	for (; tape->last && tape->last->mark >= mark; tape->last = tape->last->previous)
		tape->last->out->node = NULL;
	if (tape->mark >= mark) {
		tape->frame->tape = NULL;
		tape->frame->tape_rewind = NULL;
		return;
	}
	while (tape->n_reads && tape->reads[tape->n_reads - 1]->mark >= mark)
		tape->n_reads--;
	while (tape->block && tape->block->mark >= mark)
		tape->block = tape->block->older;
	tape->reads = tape->block ? tape->block->read : NULL;
}

choir_tape *choir_tape_begin(choir_frame *f)
{
	if (!f)
		return (choir_tape *) (void *) chi_frame_null_argument(NULL, "tape: frame");
	if (f->tape) {
		chi_frame_fail(f, CHOIR_STATE,
				"tape: this frame has a tape already; empty the frame before the next one");
		return NULL;
	}
	const size_t mark = choir_frame_mark(f);
	choir_tape *tape = chi_arena_alloc(&f->arena, sizeof(*tape));
	if (!tape)
		return chi_frame_record_null(f);
	tape->frame = f;
	tape->mark = mark;
	f->tape = tape;
	f->tape_rewind = rewind_tape;
	return tape;
}

choir_status chi_tape_add_read(choir_tape *tape, choir_tensor *t)
{
	chi_reads *block = tape->block;

	if (!block || tape->n_reads == block->capacity) {
		chi_arena *arena = &tape->frame->arena;
		const size_t mark = chi_arena_mark(arena),
					 capacity = block ? 2 * block->capacity : FIRST_READS;
		chi_reads *larger =
				chi_arena_alloc(arena, sizeof(*larger) + capacity * sizeof(choir_tensor *));
		if (!larger)
			return chi_frame_record_error(tape->frame);
		larger->older = block;
		larger->mark = mark;
		larger->capacity = capacity;
		if (block)
			memcpy(larger->read, block->read, tape->n_reads * sizeof(choir_tensor *));
		tape->block = larger;
		tape->reads = larger->read;
	}
	tape->reads[tape->n_reads++] = t;
	return CHOIR_OK;
}

bool chi_backward_is_recorded(const choir_frame *f)
{
	return f->tape && !f->tape->used;
}

// Gradients flow only through floats.
static bool can_flow(const chi_op *op, size_t n, choir_tensor *const in[], const choir_tensor *out)
{
	bool flows = false;

	for (size_t i = 0; i < n; i++)
		flows = flows || chi_dtype_is_float(in[i]->dtype);
	return flows && op->backward && chi_dtype_is_float(out->dtype);
}

choir_tensor *chi_op_record(const chi_op *op, size_t n, choir_tensor *const in[],
		const void *attributes, choir_tensor *out)
{
	if (!out)
		return NULL;
	choir_frame *f = out->frame;
	choir_tape *tape = f->tape;
	if (!tape || tape->used || !can_flow(op, n, in, out))
		return out;
	if (n > CHI_MAX_INPUTS)
		return chi_frame_fail_null(f, CHOIR_INVALID, "%s: %zu operands; at most %d are possible",
				op->name, n, CHI_MAX_INPUTS);
	const size_t mark = chi_arena_mark(&f->arena);
	chi_node *node = chi_arena_alloc(&f->arena, sizeof(*node));
	choir_tensor **inputs = chi_arena_alloc(&f->arena, n * sizeof(*inputs));
	void *copy = chi_arena_alloc(&f->arena, op->attribute_bytes);
	if (!node || !inputs || !copy) {
		chi_tensor_drop(out);
		return chi_frame_record_null(f);
	}
	memcpy(inputs, in, n * sizeof(*inputs));
	if (attributes)
		memcpy(copy, attributes, op->attribute_bytes);
	*node = (chi_node){ .op = op,
		.previous = tape->last,
		.out = out,
		.n = n,
		.in = inputs,
		.attributes = attributes ? copy : NULL,
		.mark = mark,
		.tf32 = f->tf32 };
	tape->last = node;
	out->node = node;
	return out;
}

choir_tensor *choir_stop_gradient(choir_tensor *x)
{
	return x ? chi_tensor_alias(x->frame, x) : chi_frame_null_argument(NULL, "stop_gradient");
}
