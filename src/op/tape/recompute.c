// A segment becomes one node, whose inputs are all outside tensors that it uses. The backward pass
// recomputes it with the same random numbers.
#include "op/tape/tape.h"

#include "base/lock.h"
#include "choir/precision.h"

#include <string.h>

typedef struct {
	choir_formula_fn *fn;
	void *user;
	size_t n;
	choir_tensor *const *inputs;
	chi_random_key random;
	choir_precision precision;
} segment;

static choir_status segment_backward(const chi_node *node, const chi_backward *g)
{
	(void) node;
	g->gradient[0] = g->dy;
	return choir_fail(CHOIR_INTERNAL, "a segment has no gradient of its own");
}

static const chi_op segment_op = {
	.name = "recompute",
	.attribute_bytes = sizeof(segment),
	.backward = segment_backward,
};

bool chi_segment_is(const chi_node *node)
{
	return node->op == &segment_op;
}

choir_tensor *chi_segment_again(const chi_node *node, chi_node **last)
{
	const segment *s = node->attributes;
	choir_frame *f = node->out->frame;
	choir_tape *tape = f->tape;
	chi_node *const kept = tape->last;
	const chi_random_key random = f->random;
	const bool again = tape->again, recorded = !tape->used;
	char text[2][CHI_SHAPE_TEXT];

	if (!recorded)
		tape->last = NULL;
	tape->used = false;
	tape->again = true;
	f->random = s->random;
	const choir_precision precision = choir_frame_set_precision(f, s->precision);
	chi_mutex_check_none_held();
	choir_tensor *y = s->fn(s->inputs, s->user);
	*last = tape->last;
	f->random = random;
	choir_frame_set_precision(f, precision);
	tape->again = again;
	tape->used = !recorded;
	if (!recorded)
		tape->last = kept;
	if (!y)
		return chi_frame_null_argument(f, "recompute: the function");
	if (!y->node || y->dtype != node->out->dtype || !chi_shape_equal(&y->shape, &node->out->shape))
		return chi_frame_fail_null(f, CHOIR_INVALID,
				"recompute: the function gave %s %s, but %s %s the first time",
				choir_dtype_name(y->dtype), chi_shape_print(&y->shape, text[0]),
				choir_dtype_name(node->out->dtype), chi_shape_print(&node->out->shape, text[1]));
	return y;
}

// Older, or a variable's read, which stays.
static bool is_outside(const choir_tensor *t, size_t mark)
{
	return t->mark < mark || (t->source && !t->node);
}

// A flag marks them: in a nested segment some have a gradient account.
static size_t list_outside(
		const choir_tape *tape, const chi_node *before, size_t mark, choir_tensor *out[])
{
	const chi_node *last = tape->last;
	size_t n = 0;

	for (const chi_node *node = last; node != before; node = node->previous)
		for (size_t k = 0; k < node->n; k++) {
			choir_tensor *t = node->in[k];
			if (t->listed || !is_outside(t, mark) || !chi_dtype_is_float(t->dtype))
				continue;
			t->listed = true;
			if (out)
				out[n] = t;
			n++;
		}
	for (const chi_node *node = last; node != before; node = node->previous)
		for (size_t k = 0; k < node->n; k++)
			node->in[k]->listed = false;
	return n;
}

static void forget(choir_tape *tape, const chi_node *before, const choir_tensor *y)
{
	for (; tape->last != before; tape->last = tape->last->previous) {
		const chi_node *node = tape->last;
		for (size_t k = node->n - node->op->private_inputs; k < node->n; k++)
			chi_tensor_drop(node->in[k]);
		node->out->node = NULL;
		if (node->out != y)
			chi_tensor_drop(node->out);
	}
}

static choir_tensor *replace(
		choir_tape *tape, chi_node *before, const segment *given, size_t mark, choir_tensor *y)
{
	chi_arena *arena = &tape->frame->arena;
	const size_t n = list_outside(tape, before, mark, NULL);
	const size_t node_mark = chi_arena_mark(arena);
	chi_node *node = chi_arena_alloc(arena, sizeof *node);
	segment *s = chi_arena_alloc(arena, sizeof *s);
	choir_tensor **in = chi_arena_alloc(arena, n * sizeof *in);
	choir_tensor **inputs = chi_arena_alloc(arena, given->n * sizeof *inputs);

	if (!node || !s || !in || !inputs)
		return chi_frame_record_null(tape->frame);
	list_outside(tape, before, mark, in);
	if (given->n > 0)
		memcpy(inputs, given->inputs, given->n * sizeof *inputs);
	*s = *given;
	s->inputs = inputs;
	forget(tape, before, y);
	*node = (chi_node){ .op = &segment_op,
		.previous = before,
		.out = y,
		.n = n,
		.in = in,
		.attributes = s,
		.mark = node_mark };
	tape->last = node;
	y->node = node;
	return y;
}

choir_tensor *choir_recompute(
		size_t n, choir_tensor *const inputs[], choir_formula_fn *fn, void *user)
{
	choir_frame *f = n > 0 ? choir_tensor_frame(inputs[0]) : NULL;

	if (!f || !fn)
		return chi_frame_null_argument(f, "recompute: an input and a function are needed; one");
	choir_tape *tape = f->tape;
	chi_mutex_check_none_held();
	if (!tape || tape->used)
		return fn(inputs, user);
	chi_node *const before = tape->last;
	const size_t mark = choir_frame_mark(f);
	const segment s = { fn, user, n, inputs, f->random, choir_frame_precision(f) };
	tape->segments++;
	choir_tensor *y = fn(inputs, user);
	tape->segments--;
	if (!y || y->frame != f)
		return y ? chi_frame_fail_null(f, CHOIR_INVALID,
						   "recompute: the function returned a tensor of another frame")
				 : chi_frame_null_argument(f, "recompute: the function");
	// Else nothing inside made y.
	return y->node && y->mark >= mark ? replace(tape, before, &s, mark, y) : y;
}
