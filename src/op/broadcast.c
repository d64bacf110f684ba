// Shapes are aligned at the right; axes of length 1 and missing ones are repeated.
#include "op/op.h"

choir_status chi_broadcast_shapes(const choir_shape *a, const choir_shape *b, choir_shape *shape)
{
	char text[2][CHI_SHAPE_TEXT];

	*shape = a->rank >= b->rank ? *a : *b;
	for (int i = 1; i <= a->rank && i <= b->rank; i++) {
		const int64_t da = a->dim[a->rank - i], db = b->dim[b->rank - i];
		if (da != db && da != 1 && db != 1)
			return choir_fail(CHOIR_INVALID, "the shapes %s and %s do not broadcast",
					chi_shape_print(a, text[0]), chi_shape_print(b, text[1]));
		shape->dim[shape->rank - i] = da == 1 ? db : da;
	}
	return CHOIR_OK;
}

static choir_status infer_broadcast(chi_result *r)
{
	r->shape = *(const choir_shape *) r->attributes;
	return CHOIR_OK;
}

static choir_status broadcast_backward(const chi_node *node, const chi_backward *g)
{
	g->gradient[0] = chi_sum_to(g->dy, &node->in[0]->shape);
	return CHOIR_OK;
}

static const chi_op broadcast_op = {
	.name = "broadcast",
	.attribute_bytes = sizeof(choir_shape),
	.infer = infer_broadcast,
	.backward = broadcast_backward,
};

choir_tensor *chi_broadcast_to(choir_tensor *x, const choir_shape *shape)
{
	if (!x || chi_shape_equal(&x->shape, shape))
		return x;
	return chi_op_call(&broadcast_op, NULL, 1, &x, shape);
}

choir_tensor *choir_broadcast_to(choir_tensor *x, choir_shape shape)
{
	char text[2][CHI_SHAPE_TEXT];
	choir_shape both;

	if (!x)
		return chi_frame_null_argument(NULL, "broadcast_to");
	if (choir_shape_elements(&shape) == CHOIR_NONE ||
			chi_broadcast_shapes(&x->shape, &shape, &both) != CHOIR_OK ||
			!chi_shape_equal(&both, &shape))
		return chi_frame_fail_null(x->frame, CHOIR_INVALID,
				"broadcast_to: %s does not broadcast to %s", chi_shape_print(&x->shape, text[0]),
				chi_shape_print(&shape, text[1]));
	return chi_broadcast_to(x, &shape);
}
