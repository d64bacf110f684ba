// Views in another shape, and transposition.
#include "op/tape/tape.h"

static choir_status reshape_backward(const chi_node *node, const chi_backward *g)
{
	g->gradient[0] = choir_reshape(g->dy, node->in[0]->shape);
	return CHOIR_OK;
}

const chi_op chi_reshape_op = {
	.name = "reshape",
	.backward = reshape_backward,
};

// A dimension of CHOIR_NONE. False: two, or none fits.
static bool complete(choir_shape *shape, const choir_shape *of)
{
	int open = -1;

	if (shape->rank < 0 || shape->rank > CHOIR_MAX_RANK)
		return false;
	for (int i = 0; i < shape->rank; i++) {
		if (shape->dim[i] != CHOIR_UNKNOWN)
			continue;
		if (open >= 0)
			return false;
		open = i;
	}
	if (open < 0)
		return true;
	shape->dim[open] = 1;
	const int64_t rest = choir_shape_elements(shape), all = choir_shape_elements(of);
	if (rest <= 0 || all % rest != 0) {
		shape->dim[open] = CHOIR_UNKNOWN;
		return false;
	}
	shape->dim[open] = all / rest;
	return true;
}

choir_tensor *choir_reshape(choir_tensor *x, choir_shape shape)
{
	char from[CHI_SHAPE_TEXT], to[CHI_SHAPE_TEXT];

	if (!x)
		return chi_frame_null_argument(NULL, "reshape");
	if (!complete(&shape, &x->shape))
		return chi_frame_fail_null(x->frame, CHOIR_INVALID, "reshape: %s does not fit %s",
				chi_shape_print(&x->shape, from), chi_shape_print(&shape, to));
	return chi_op_record(&chi_reshape_op, 1, &x, NULL, chi_tensor_reshape(x, &shape));
}

choir_tensor *chi_match_last_axis(choir_tensor *x, const choir_shape *shape)
{
	const bool longer = x->shape.rank > shape->rank;
	const choir_shape *more = longer ? &x->shape : shape;
	choir_shape less = longer ? *shape : x->shape;

	if (less.rank == 0 || more->rank != less.rank + 1 || more->dim[less.rank] != 1)
		return x;
	less.dim[less.rank++] = 1;
	return chi_shape_equal(&less, more) ? choir_reshape(x, *shape) : x;
}

static choir_status infer_transpose(chi_result *r)
{
	const choir_transpose_attributes *a = r->attributes;

	r->shape.rank = r->in[0]->shape.rank;
	for (int i = 0; i < r->shape.rank; i++)
		r->shape.dim[i] = r->in[0]->shape.dim[a->axes[i]];
	return CHOIR_OK;
}

static choir_status transpose_backward(const chi_node *node, const chi_backward *g)
{
	const choir_transpose_attributes *a = node->attributes;
	int back[CHOIR_MAX_RANK];

	for (int i = 0; i < g->dy->shape.rank; i++)
		back[a->axes[i]] = i;
	g->gradient[0] = choir_transpose(g->dy, back);
	return CHOIR_OK;
}

static const chi_op transpose_op = {
	.name = "transpose",
	.attribute_bytes = sizeof(choir_transpose_attributes),
	.infer = infer_transpose,
	.backward = transpose_backward,
};

static bool keeps_order(const choir_shape *shape, const int axes[])
{
	int before = -1;

	for (int i = 0; i < shape->rank; i++) {
		if (shape->dim[axes[i]] == 1)
			continue;
		if (axes[i] < before)
			return false;
		before = axes[i];
	}
	return true;
}

choir_tensor *choir_transpose(choir_tensor *x, const int axes[])
{
	choir_transpose_attributes a = { { 0 } };
	uint32_t seen = 0;

	if (!x)
		return chi_frame_null_argument(NULL, "transpose");
	const int rank = x->shape.rank;
	for (int i = 0; i < rank; i++) {
		a.axes[i] = axes ? chi_axis_of("transpose", x, axes[i]) : rank - 1 - i;
		if (a.axes[i] == CHOIR_NONE)
			return NULL;
		if (seen >> a.axes[i] & 1)
			return chi_frame_fail_null(
					x->frame, CHOIR_INVALID, "transpose: axis %d occurs twice", axes[i]);
		seen |= (uint32_t) 1 << a.axes[i];
	}
	if (!keeps_order(&x->shape, a.axes))
		return chi_op_call(&transpose_op, NULL, 1, &x, &a);
	chi_result y = { 1, &x, &a, x->dtype, x->shape };
	(void) infer_transpose(&y);
	return chi_op_record(&transpose_op, 1, &x, &a, chi_tensor_reshape(x, &y.shape));
}

choir_tensor *chi_part(choir_tensor *flat, int64_t *first, choir_shape shape)
{
	const int64_t count = choir_shape_elements(&shape);
	choir_tensor *rows = flat ? chi_tensor_rows(flat->frame, flat, *first, count) : NULL;

	*first += count;
	return rows ? chi_tensor_reshape(rows, &shape) : NULL;
}
