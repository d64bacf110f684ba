// Views, casts and counts.
#include "op/tape/tape.h"

#include <inttypes.h>

static choir_status reshape_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	(void) want;
	gradient[0] = choir_reshape(dy, node->in[0]->shape);
	return CHOIR_OK;
}

static const chi_op reshape_op = {
	.name = "reshape",
	.backward = reshape_backward,
	.recordable = true,
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
	return chi_op_record(&reshape_op, 1, &x, NULL, chi_tensor_reshape(x, &shape));
}

choir_tensor *chi_part(choir_tensor *flat, int64_t *first, choir_shape shape)
{
	const int64_t count = choir_shape_elements(&shape);
	choir_tensor *rows = flat ? chi_tensor_rows(flat->frame, flat, *first, count) : NULL;

	*first += count;
	return rows ? chi_tensor_reshape(rows, &shape) : NULL;
}

choir_tensor *choir_with_count(choir_tensor *t, int64_t count)
{
	if (!t)
		return chi_frame_null_argument(NULL, "with_count");
	if (count < 0)
		return chi_frame_fail_null(t->frame, CHOIR_INVALID,
				"with_count: the count is %" PRId64 "; 0 or more is needed", count);
	choir_tensor *out = chi_tensor_alias(t->frame, t);
	if (out)
		out->count = count;
	return chi_op_record(&reshape_op, 1, &t, NULL, out);
}

typedef struct {
	choir_dtype dtype;
} cast_attributes;

static choir_status infer_cast(size_t n, choir_tensor *const in[], const void *attributes,
		choir_dtype *dtype, choir_shape *shape)
{
	const cast_attributes *cast = attributes;

	(void) n;
	*dtype = cast->dtype;
	*shape = in[0]->shape;
	return CHOIR_OK;
}

static choir_status cast_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	(void) want;
	gradient[0] = choir_cast(dy, node->in[0]->dtype);
	return CHOIR_OK;
}

const chi_op chi_cast_op = {
	.name = "cast",
	.attribute_bytes = sizeof(cast_attributes),
	.infer = infer_cast,
	.backward = cast_backward,
	.recordable = true,
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
