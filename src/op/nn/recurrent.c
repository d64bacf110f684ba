// One product computes the input's part of all gates. The kernel keeps a row per time step for the
// backward pass. The states are a slice of these rows, if needed with the cells.
#include "base/options.h"
#include "op/precision/precision.h"

typedef struct {
	const char *name;
	const char *kernel, *gradient;
	int64_t parts, row; // gates, and values of a stored row, in units of the state
	int64_t at; // of the state in a row
	bool biased;
} recurrence;

static const recurrence lstm = { "lstm", "lstm", "lstm_gradient", 4, 6, 5, false };
static const recurrence gru = { "gru", "gru", "gru_gradient", 3, 5, 4, true };

// Inputs: gates, w, h0, c0 or a bias, rows.
typedef struct {
	const recurrence *kind;
	bool cells; // the result has rows of a cell and a state
} attributes;

enum { GATES, WEIGHTS, STATE, MORE, ROWS, INPUTS };

static int64_t state_of(choir_tensor *const in[])
{
	return in[WEIGHTS]->shape.dim[0];
}

static choir_status infer_recurrence(chi_result *r)
{
	const attributes *a = r->attributes;
	r->shape.dim[2] = (1 + a->cells) * state_of(r->in);
	return CHOIR_OK;
}

static choir_status forward(const chi_node *node)
{
	const attributes *a = node->attributes;
	const choir_tensor *rows = node->in[ROWS];
	const choir_buffer in = { rows->data, rows->dtype, rows->shape };
	const choir_slice_attributes slice = { 2, (a->kind->at - a->cells) * state_of(node->in) };
	choir_buffer out = { node->out->data, node->out->dtype, node->out->shape };

	return chi_kernel_run(node->out->frame->stream, "slice", 1, &in, &out, &slice);
}

static choir_tensor *weights_gradient(const chi_node *node, choir_tensor *dz)
{
	const attributes *a = node->attributes;
	const choir_recurrent_attributes where = { a->kind->at * state_of(node->in) };
	choir_tensor *const in[] = { node->in[ROWS], node->in[STATE], dz };

	return chi_op_kernel(node->out->frame, "recurrent_gradient", 3, in, &where,
			chi_precision_gradient(node->in[WEIGHTS]), &node->in[WEIGHTS]->shape);
}

static choir_status recurrence_backward(const chi_node *node, const chi_backward *g)
{
	const attributes *a = node->attributes;
	const bool biased = a->kind->biased;
	const choir_shape gates = node->in[GATES]->shape, state = node->in[STATE]->shape;
	choir_tensor *const in[] = { node->in[ROWS], node->in[WEIGHTS],
		node->in[biased ? STATE : MORE], g->dy };
	const int64_t all = (1 + biased) * choir_shape_elements(&gates) +
			(2 - biased) * choir_shape_elements(&state);
	choir_tensor *flat = chi_op_kernel(
			g->dy->frame, a->kind->gradient, 4, in, NULL, g->dy->dtype, &CHOIR_SHAPE(all));
	int64_t first = 0;

	g->gradient[GATES] = chi_part(flat, &first, gates);
	choir_tensor *dz = biased ? chi_part(flat, &first, gates) : g->gradient[GATES];
	g->gradient[STATE] = chi_part(flat, &first, state);
	if (!biased)
		g->gradient[MORE] = chi_part(flat, &first, state);
	else if (g->want[MORE])
		g->gradient[MORE] = chi_sum_to(dz, &node->in[MORE]->shape);
	if (g->want[WEIGHTS])
		g->gradient[WEIGHTS] = weights_gradient(node, dz);
	return CHOIR_OK;
}

// Of rows [n, t, columns].
static choir_tensor *at_step(choir_tensor *rows, int64_t t)
{
	choir_tensor *step = choir_slice(rows, 1, t, 1);
	return step ? choir_reshape(step, CHOIR_SHAPE(rows->shape.dim[0], rows->shape.dim[2])) : NULL;
}

// i, f, g, o = the parts of z; c = f c + i g, h = o tanh(c)
static choir_tensor *lstm_step(
		const chi_node *node, choir_tensor *gates, choir_tensor *h, choir_tensor **c)
{
	choir_tensor *z[4];
	choir_tensor *sum =
			choir_add(gates, choir_matmul(h, node->in[WEIGHTS], CHOIR_TRANSPOSED_NONE));

	if (!sum || choir_split(sum, 1, 4, z) != CHOIR_OK)
		return NULL;
	*c = choir_add(choir_multiply(choir_sigmoid(z[1]), *c),
			choir_multiply(choir_sigmoid(z[0]), choir_tanh(z[2])));
	return choir_multiply(choir_sigmoid(z[3]), choir_tanh(*c));
}

// z, r = sigmoids; m = tanh(gates2 + r q2), h = z h + (1 - z) m = m + z (h - m)
static choir_tensor *gru_step(const chi_node *node, choir_tensor *gates, choir_tensor *h)
{
	choir_tensor *g[3], *q[3];
	choir_tensor *sum =
			choir_add(choir_matmul(h, node->in[WEIGHTS], CHOIR_TRANSPOSED_NONE), node->in[MORE]);

	if (!sum || choir_split(sum, 1, 3, q) != CHOIR_OK || !gates ||
			choir_split(gates, 1, 3, g) != CHOIR_OK)
		return NULL;
	choir_tensor *z = choir_sigmoid(choir_add(g[0], q[0]));
	choir_tensor *r = choir_sigmoid(choir_add(g[1], q[1]));
	choir_tensor *m = choir_tanh(choir_add(g[2], choir_multiply(r, q[2])));
	return choir_add(m, choir_multiply(z, choir_subtract(h, m)));
}

static choir_tensor *recurrence_formula(const chi_node *node)
{
	const attributes *a = node->attributes;
	choir_frame *f = node->out->frame;
	choir_tensor *h = node->in[STATE], *c = node->in[MORE];
	const int64_t steps = node->out->shape.dim[1];
	choir_tensor **states = chi_arena_alloc(&f->arena, (size_t) steps * sizeof *states);

	if (!states)
		return chi_frame_record_null(f);
	for (int64_t t = 0; t < steps; t++) {
		choir_tensor *gates = at_step(node->in[GATES], t);
		h = a->kind->biased ? gru_step(node, gates, h) : lstm_step(node, gates, h, &c);
		states[t] = a->cells ? choir_concat(2, (choir_tensor *const[]){ c, h }, 1) : h;
		if (!states[t])
			return NULL;
	}
	return choir_cast(choir_stack((size_t) steps, states, 1), node->out->dtype);
}

#define RECURRENCE(operation) \
	{ \
		.name = operation, .attribute_bytes = sizeof(attributes), .infer = infer_recurrence, \
		.backward = recurrence_backward, .formula = recurrence_formula, .forward = forward, \
		.private_inputs = 1 \
	}
static const chi_op lstm_op = RECURRENCE("lstm"), gru_op = RECURRENCE("gru");

// Mixed precision mixes f32 and 16 bits.
static bool is(const choir_tensor *t, const choir_tensor *x, choir_shape shape)
{
	const bool mixed = x->frame->narrow != CHOIR_F32 && chi_dtype_wide(t->dtype) == CHOIR_F32 &&
			chi_dtype_wide(x->dtype) == CHOIR_F32;
	return (t->dtype == x->dtype || mixed) && chi_shape_equal(&t->shape, &shape);
}

static choir_status check(const recurrence *r, const choir_tensor *x, const choir_tensor *kernel,
		const choir_tensor *recurrent, const choir_tensor *bias)
{
	const choir_shape *s = &x->shape, *w = &recurrent->shape;
	const int64_t h = w->rank == 2 ? w->dim[0] : 0, gates = r->parts * h;
	char text[4][CHI_SHAPE_TEXT];

	if (s->rank == 3 && h > 0 && is(recurrent, x, CHOIR_SHAPE(h, gates)) &&
			is(kernel, x, CHOIR_SHAPE(s->dim[2], gates)) && is(bias, x, CHOIR_SHAPE(gates)))
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID,
			"%s: input %s, kernel %s, recurrent %s and bias %s do not fit; [n, "
			"timesteps, in], [in, %d h], [h, %d h] and [%d h] of one dtype are needed",
			r->name, chi_shape_print(s, text[0]), chi_shape_print(&kernel->shape, text[1]),
			chi_shape_print(w, text[2]), chi_shape_print(&bias->shape, text[3]), (int) r->parts,
			(int) r->parts, (int) r->parts);
}

static choir_tensor *initial(
		const recurrence *r, const choir_tensor *x, choir_tensor *given, int64_t h)
{
	const choir_shape needed = CHOIR_SHAPE(x->shape.dim[0], h);
	char text[2][CHI_SHAPE_TEXT];

	if (!given)
		return choir_fill(x->frame, x->dtype, needed, 0);
	if (is(given, x, needed))
		return given;
	return chi_frame_fail_null(x->frame, CHOIR_INVALID, "%s: the state is %s %s; %s %s is needed",
			r->name, choir_dtype_name(given->dtype), chi_shape_print(&given->shape, text[0]),
			choir_dtype_name(x->dtype), chi_shape_print(&needed, text[1]));
}

static choir_tensor *gates_of(choir_tensor *x, choir_tensor *kernel, choir_tensor *bias)
{
	const choir_shape *s = &x->shape;
	choir_tensor *flat = choir_reshape(x, CHOIR_SHAPE(s->dim[0] * s->dim[1], s->dim[2]));
	choir_tensor *z = chi_dense(flat, kernel, bias, CHOIR_LINEAR);

	return z ? choir_reshape(z, CHOIR_SHAPE(s->dim[0], s->dim[1], z->shape.dim[1])) : NULL;
}

// Of cells [n, t, h].
static choir_tensor *last_cell_of(choir_tensor *cells, choir_tensor *first, choir_tensor *lengths)
{
	if (!cells || cells->shape.dim[1] == 0)
		return cells ? choir_cast(first, cells->dtype) : NULL;
	if (!lengths)
		return at_step(cells, cells->shape.dim[1] - 1);
	choir_tensor *some = choir_greater(lengths, choir_number(cells->frame, 0));
	return choir_where(some ? choir_reshape(some, CHOIR_SHAPE(first->shape.dim[0], 1)) : NULL,
			choir_last_timestep(cells, lengths), choir_cast(first, cells->dtype));
}

// The states of a result that has cells, too.
static choir_tensor *divide(
		choir_tensor *both, choir_tensor *first, const choir_recurrent_options *o)
{
	const int64_t h = first->shape.dim[1];
	choir_tensor *y = both ? choir_slice(both, 2, h, h) : NULL;

	*o->last_cell = y ? last_cell_of(choir_slice(both, 2, 0, h), first, o->lengths) : NULL;
	if (both && !both->node)
		chi_tensor_drop(both);
	return *o->last_cell ? y : NULL;
}

// more: c0, or the bias of the product with the state.
static choir_tensor *run(const recurrence *r, choir_tensor *gates, choir_tensor *w,
		choir_tensor *state, choir_tensor *more, const choir_recurrent_options *o)
{
	if (!gates || !state || !more)
		return NULL;
	const attributes a = { r, o && o->last_cell };
	const chi_op *op = r->biased ? &gru_op : &lstm_op;
	const int64_t h = w->shape.dim[0], n = gates->shape.dim[0], t = gates->shape.dim[1];
	choir_frame *f = gates->frame;
	choir_tensor *in[INPUTS] = { gates, w, state, more };
	if (!chi_op_operands(r->name, f, ROWS, in) ||
			(f->narrow != CHOIR_F32 && !chi_precision_fit(op, f, ROWS, in)))
		return NULL;
	choir_tensor *const gru_in[] = { in[GATES], in[WEIGHTS], in[MORE], in[STATE] };
	choir_tensor *rows = chi_op_kernel(f, r->kernel, ROWS, r->biased ? gru_in : in, NULL,
			in[GATES]->dtype, &CHOIR_SHAPE(n, t, r->row * h));
	in[ROWS] = rows;
	choir_tensor *y = chi_op_call(op, f, INPUTS, in, &a);

	if (!y || !y->node)
		chi_tensor_drop(rows);
	return a.cells ? divide(y, in[MORE], o) : y;
}

choir_tensor *choir_lstm(choir_tensor *x, choir_tensor *kernel, choir_tensor *recurrent,
		choir_tensor *bias, const choir_recurrent_options *o)
{
	choir_recurrent_options all;

	// every return must set their output
	if (chi_options_take("lstm: the options'", &all, sizeof all, o) != CHOIR_OK)
		return chi_frame_record_null(choir_tensor_frame(x));
	if (all.last_cell)
		*all.last_cell = NULL;
	if (!x || !kernel || !recurrent || !bias)
		return chi_frame_null_argument(choir_tensor_frame(x), "lstm");
	if (check(&lstm, x, kernel, recurrent, bias) != CHOIR_OK)
		return chi_frame_record_null(x->frame);
	const int64_t h = recurrent->shape.dim[0];
	return run(&lstm, gates_of(x, kernel, bias), recurrent, initial(&lstm, x, all.state, h),
			initial(&lstm, x, all.cell, h), &all);
}

choir_tensor *choir_gru(choir_tensor *x, choir_tensor *kernel, choir_tensor *recurrent,
		choir_tensor *bias, choir_tensor *recurrent_bias, choir_tensor *state)
{
	if (!x || !kernel || !recurrent || !bias || !recurrent_bias)
		return chi_frame_null_argument(choir_tensor_frame(x), "gru");
	if (check(&gru, x, kernel, recurrent, bias) != CHOIR_OK ||
			check(&gru, x, kernel, recurrent, recurrent_bias) != CHOIR_OK)
		return chi_frame_record_null(x->frame);
	return run(&gru, gates_of(x, kernel, bias), recurrent,
			initial(&gru, x, state, recurrent->shape.dim[0]), recurrent_bias, NULL);
}
