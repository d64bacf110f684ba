// Casts, whose gradients are casts back.
#include "op/tape/tape.h"

typedef struct {
	choir_dtype dtype;
} cast_attributes;

static choir_status infer_cast(chi_result *r)
{
	const cast_attributes *cast = r->attributes;

	r->dtype = cast->dtype;
	return CHOIR_OK;
}

static choir_status cast_backward(const chi_node *node, const chi_backward *g)
{
	g->gradient[0] = choir_cast(g->dy, node->in[0]->dtype);
	return CHOIR_OK;
}

const chi_op chi_cast_op = {
	.name = "cast",
	.attribute_bytes = sizeof(cast_attributes),
	.infer = infer_cast,
	.backward = cast_backward,
};

choir_tensor *choir_cast(choir_tensor *x, choir_dtype dtype)
{
	const cast_attributes attributes = { dtype };
	if (x && x->dtype == dtype && !x->is_number)
		return x;
	return chi_op_call(&chi_cast_op, NULL, 1, &x, &attributes);
}

choir_tensor *chi_cast_record(choir_tensor *x, choir_tensor *out)
{
	const cast_attributes attributes = { out->dtype };
	return chi_op_record(&chi_cast_op, 1, &x, &attributes, out);
}
