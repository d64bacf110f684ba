// Rows by index. The gradient of a large table is slices.
#include "base/thresholds.h"
#include "op/precision/precision.h"
#include "op/tape/tape.h"

static choir_status infer_gather(chi_result *r)
{
	const choir_shape *x = &r->in[0]->shape, *indices = &r->in[1]->shape;
	const choir_dtype index = r->in[1]->dtype;
	char text[2][CHI_SHAPE_TEXT];

	if (index != CHOIR_U8 && index != CHOIR_I32 && index != CHOIR_I64)
		return choir_fail(CHOIR_INVALID, "the indices are %s; u8, i32 or i64 is needed",
				choir_dtype_name(index));
	if (x->rank < 1 || indices->rank + x->rank - 1 > CHOIR_MAX_RANK ||
			(x->dim[0] == 0 && choir_shape_elements(indices) > 0))
		return choir_fail(CHOIR_INVALID,
				"indices %s do not fit a table %s; a table with "
				"rows, and few enough dimensions, is needed",
				chi_shape_print(indices, text[0]), chi_shape_print(x, text[1]));
	r->shape = *indices;
	for (int i = 1; i < x->rank; i++)
		r->shape.dim[r->shape.rank++] = x->dim[i];
	return CHOIR_OK;
}

static choir_tensor *slices_of(const chi_node *node, choir_tensor *dy)
{
	choir_tensor *indices = node->in[1];
	choir_shape shape = node->in[0]->shape;
	const int64_t n = choir_shape_elements(&indices->shape), rows = shape.dim[0];

	if (indices->dtype == CHOIR_U8)
		indices = chi_op_kernel(dy->frame, "cast", 1, &indices, NULL, CHOIR_I32, &indices->shape);
	shape.dim[0] = n;
	choir_tensor *values = chi_tensor_reshape(dy, &shape);
	choir_tensor *flat = chi_tensor_reshape(indices, &CHOIR_SHAPE(n));
	return values && flat ? chi_slices_new(values, flat, rows) : NULL;
}

// Only x decides, so all replicas agree.
static bool is_large_table(const choir_tensor *x)
{
	return !x->node && x->source && x->shape.dim[0] >= CHI_LARGE_TABLE_ROWS;
}

static choir_status infer_gather_gradient(chi_result *r)
{
	r->shape = *(const choir_shape *) r->attributes;
	return CHOIR_OK;
}

static choir_status gather_gradient_backward(const chi_node *node, const chi_backward *g)
{
	if (g->want[0])
		g->gradient[0] = choir_gather(g->dy, node->in[1]);
	return CHOIR_OK;
}

static const chi_op gather_gradient_op = {
	.name = "gather_gradient",
	.attribute_bytes = sizeof(choir_shape),
	.infer = infer_gather_gradient,
	.backward = gather_gradient_backward,
};

static choir_status gather_backward(const chi_node *node, const chi_backward *g)
{
	choir_tensor *const in[] = { g->dy, node->in[1] };

	if (is_large_table(node->in[0]) && !chi_backward_is_recorded(g->dy->frame))
		g->gradient[0] = slices_of(node, g->dy);
	else
		g->gradient[0] =
				chi_op_call(&gather_gradient_op, g->dy->frame, 2, in, &node->in[0]->shape);
	return CHOIR_OK;
}

static const chi_op gather_op = {
	.name = "gather",
	.infer = infer_gather,
	.backward = gather_backward,
};

// Only the gathered rows are rounded.
static choir_tensor *rows_of(choir_tensor *table, choir_tensor *rows)
{
	return table && table->source ? chi_precision_narrow(rows) : rows;
}

choir_tensor *choir_gather(choir_tensor *x, choir_tensor *indices)
{
	choir_tensor *const in[] = { x, indices };
	return rows_of(x, chi_op_call(&gather_op, NULL, 2, in, NULL));
}

static choir_status take_rows(const chi_node *node)
{
	chi_gather_rows_fn *const *take = node->attributes;
	return (*take)(node->in[0], node->in[1], node->out);
}

static const chi_op gather_by_op = {
	.name = "gather",
	.attribute_bytes = sizeof(chi_gather_rows_fn *),
	.infer = infer_gather,
	.backward = gather_backward,
	.forward = take_rows,
};

choir_tensor *chi_gather_by(chi_gather_rows_fn *take, choir_tensor *table, choir_tensor *indices)
{
	choir_tensor *const in[] = { table, indices };
	return rows_of(table, chi_op_call(&gather_by_op, NULL, 2, in, &take));
}
