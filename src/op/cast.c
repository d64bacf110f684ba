// Casts, whose gradients are casts back.
#include "op/tape/tape.h"

static choir_status infer_cast(chi_result *r)
{
	r->dtype = *(const choir_dtype *) r->attributes;
	return CHOIR_OK;
}

static choir_status cast_backward(const chi_node *node, const chi_backward *g)
{
	g->gradient[0] = choir_cast(g->dy, node->in[0]->dtype);
	return CHOIR_OK;
}

const chi_op chi_cast_op = {
	.name = "cast",
	.attribute_bytes = sizeof(choir_dtype),
	.infer = infer_cast,
	.backward = cast_backward,
};

choir_tensor *choir_cast(choir_tensor *x, choir_dtype dtype)
{
	if (x && x->dtype == dtype && !x->is_number)
		return x;
	return chi_op_call(&chi_cast_op, NULL, 1, &x, &dtype);
}

choir_tensor *chi_cast_record(choir_tensor *x, choir_tensor *out)
{
	return chi_op_record(&chi_cast_op, 1, &x, &out->dtype, out);
}
