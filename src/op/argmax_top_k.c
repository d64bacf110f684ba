// Positions of extremes, and the largest elements.
#include "op/op.h"

static choir_status infer_position(chi_result *r)
{
	const choir_argmax_attributes *a = r->attributes;

	r->dtype = CHOIR_I64;
	r->shape.rank = 0;
	for (int i = 0; i < r->in[0]->shape.rank; i++)
		if (i != a->axis)
			r->shape.dim[r->shape.rank++] = r->in[0]->shape.dim[i];
	return CHOIR_OK;
}

static const chi_op position_ops[] = {
	{ .name = "argmax",
			.attribute_bytes = sizeof(choir_argmax_attributes),
			.infer = infer_position },
	{ .name = "argmin",
			.attribute_bytes = sizeof(choir_argmax_attributes),
			.infer = infer_position },
};

static choir_tensor *position(const chi_op *op, choir_tensor *x, int axis)
{
	char text[CHI_SHAPE_TEXT];

	if (!x)
		return chi_frame_null_argument(NULL, op->name);
	const choir_argmax_attributes attributes = { chi_axis_of(op->name, x, axis) };
	if (attributes.axis == CHOIR_NONE)
		return NULL;
	if (x->shape.dim[attributes.axis] == 0)
		return chi_frame_fail_null(x->frame, CHOIR_INVALID, "%s: axis %d of %s is empty", op->name,
				axis, chi_shape_print(&x->shape, text));
	return chi_op_call(op, NULL, 1, &x, &attributes);
}

choir_tensor *choir_argmax(choir_tensor *x, int axis)
{
	return position(&position_ops[0], x, axis);
}

choir_tensor *choir_argmin(choir_tensor *x, int axis)
{
	return position(&position_ops[1], x, axis);
}

static choir_status infer_top_k(chi_result *r)
{
	const choir_top_k_attributes *a = r->attributes;

	r->dtype = CHOIR_I64;
	r->shape.dim[r->shape.rank - 1] = a->k;
	return CHOIR_OK;
}

static const chi_op top_k_op = {
	.name = "top_k",
	.attribute_bytes = sizeof(choir_top_k_attributes),
	.infer = infer_top_k,
};

static choir_tensor *elements_at(choir_tensor *x, choir_tensor *indices)
{
	const int64_t n = x->shape.dim[x->shape.rank - 1];
	const int64_t all = choir_shape_elements(&x->shape), rows = n ? all / n : 0;
	choir_shape column = indices->shape;
	column.dim[column.rank - 1] = 1;
	choir_tensor *first =
			choir_multiply(chi_count_up(x->frame, rows), choir_number(x->frame, (double) n));
	choir_tensor *at = first ? choir_add(indices, choir_reshape(first, column)) : NULL;
	return at ? choir_gather(choir_reshape(x, CHOIR_SHAPE(all)), at) : NULL;
}

choir_status choir_top_k(choir_tensor *x, int64_t k, choir_tensor **values, choir_tensor **indices)
{
	char text[CHI_SHAPE_TEXT];
	choir_tensor *found = NULL, *made = NULL;

	if (values)
		*values = NULL;
	if (indices)
		*indices = NULL;
	if (!x)
		return chi_frame_status(NULL);
	const choir_shape *s = &x->shape;
	if (s->rank < 1 || k < 1 || k > s->dim[s->rank - 1])
		return chi_frame_fail(x->frame, CHOIR_INVALID,
				"top_k: the %lld largest of each row of %s; 1 up to the length of its last axis "
				"are possible",
				(long long) k, chi_shape_print(s, text));
	const choir_top_k_attributes a = { k };
	found = chi_op_call(&top_k_op, NULL, 1, &x, &a);
	if (found && values)
		made = elements_at(x, found);
	if (!found || (values && !made))
		return chi_frame_status(x->frame);
	if (values)
		*values = made;
	if (indices)
		*indices = found;
	return CHOIR_OK;
}
