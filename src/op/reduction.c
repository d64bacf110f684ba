// Reductions and broadcasting. Kernels get axes without negative numbers.
#include "op/op.h"

// Resolves a set of axes, in which negative ones count from the last. False: *axis does not exist.
static bool resolve(choir_axes axes, int rank, uint32_t *out, int *axis)
{
	*out = 0;
	if (axes == CHOIR_ALL_AXES)
		axes = ((choir_axes) 1 << rank) - 1;
	for (int bit = 0; bit < 32; bit++) {
		if (!(axes >> bit & 1))
			continue;
		const int i = bit < 16 ? bit : bit - 32 + rank;
		if (i < 0 || i >= rank) {
			*axis = bit < 16 ? bit : bit - 32;
			return false;
		}
		*out |= (uint32_t) 1 << i;
	}
	return true;
}

static choir_status infer_sum(size_t n, choir_tensor *const in[], const void *attributes,
		choir_dtype *dtype, choir_shape *shape)
{
	const choir_sum_attributes *sum = attributes;

	(void) n;
	*dtype = in[0]->dtype;
	shape->rank = 0;
	for (int i = 0; i < in[0]->shape.rank; i++)
		if (!(sum->axes >> i & 1))
			shape->dim[shape->rank++] = in[0]->shape.dim[i];
	return CHOIR_OK;
}

static choir_status sum_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	const choir_sum_attributes *sum = node->attributes;
	choir_shape kept = node->in[0]->shape; // summed axes are 1

	(void) want;
	for (int i = 0; i < kept.rank; i++)
		if (sum->axes >> i & 1)
			kept.dim[i] = 1;
	gradient[0] = chi_broadcast_to(chi_tensor_reshape(dy, &kept), &node->in[0]->shape);
	return CHOIR_OK;
}

static const chi_op sum_op = {
	.name = "sum",
	.attribute_bytes = sizeof(choir_sum_attributes),
	.infer = infer_sum,
	.backward = sum_backward,
};

static choir_tensor *fail_axis(const choir_tensor *x, const char *name, int axis)
{
	char text[CHI_SHAPE_TEXT];
	return chi_frame_fail_null(x->frame, CHOIR_INVALID, "%s: %s has no axis %d", name,
			chi_shape_print(&x->shape, text), axis);
}

static choir_tensor *sum_axes(choir_tensor *x, uint32_t axes)
{
	const choir_sum_attributes attributes = { axes };
	return axes ? chi_op_call(&sum_op, NULL, 1, &x, &attributes) : x;
}

choir_tensor *choir_sum(choir_tensor *x, choir_axes axes)
{
	uint32_t resolved;
	int axis;

	if (!x)
		return chi_frame_null_argument(NULL, "sum");
	if (!resolve(axes, x->shape.rank, &resolved, &axis))
		return fail_axis(x, "sum", axis);
	return sum_axes(x, resolved);
}

// i32 and i64 are divided in f64, other integers in f32.
choir_tensor *choir_mean(choir_tensor *x, choir_axes axes)
{
	uint32_t resolved;
	int axis;
	double count = 1;

	if (!x)
		return chi_frame_null_argument(NULL, "mean");
	if (!resolve(axes, x->shape.rank, &resolved, &axis))
		return fail_axis(x, "mean", axis);
	for (int i = 0; i < x->shape.rank; i++)
		if (resolved >> i & 1)
			count *= (double) x->shape.dim[i];
	if (x->dtype == CHOIR_I32 || x->dtype == CHOIR_I64)
		x = choir_cast(x, CHOIR_F64);
	else if (!chi_dtype_is_float(x->dtype))
		x = choir_cast(x, CHOIR_F32);
	if (!resolved || (x = sum_axes(x, resolved)) == NULL)
		return x;
	return choir_divide(x, choir_number(x->frame, count));
}

static choir_status infer_argmax(size_t n, choir_tensor *const in[], const void *attributes,
		choir_dtype *dtype, choir_shape *shape)
{
	const choir_argmax_attributes *argmax = attributes;
	const choir_sum_attributes dropped = { (uint32_t) 1 << argmax->axis };

	infer_sum(n, in, &dropped, dtype, shape);
	*dtype = CHOIR_I64;
	return CHOIR_OK;
}

static const chi_op argmax_op = {
	.name = "argmax",
	.attribute_bytes = sizeof(choir_argmax_attributes),
	.infer = infer_argmax,
};

choir_tensor *choir_argmax(choir_tensor *x, int axis)
{
	char text[CHI_SHAPE_TEXT];

	if (!x)
		return chi_frame_null_argument(NULL, "argmax");
	const int rank = x->shape.rank;
	if (axis < -rank || axis >= rank)
		return fail_axis(x, "argmax", axis);
	const choir_argmax_attributes attributes = { axis < 0 ? axis + rank : axis };
	if (x->shape.dim[attributes.axis] == 0)
		return chi_frame_fail_null(x->frame, CHOIR_INVALID, "argmax: axis %d of %s is empty", axis,
				chi_shape_print(&x->shape, text));
	return chi_op_call(&argmax_op, NULL, 1, &x, &attributes);
}

choir_tensor *chi_sum_to(choir_tensor *x, const choir_shape *shape)
{
	uint32_t axes = 0;

	if (!x || chi_shape_equal(&x->shape, shape))
		return x;
	const int lead = x->shape.rank - shape->rank;
	for (int i = 0; i < x->shape.rank; i++)
		if (i < lead || shape->dim[i - lead] != x->shape.dim[i])
			axes |= (uint32_t) 1 << i;
	choir_tensor *sum = sum_axes(x, axes);
	return sum ? chi_tensor_reshape(sum, shape) : NULL; // restores axes of length 1
}

choir_tensor *chi_broadcast_to(choir_tensor *x, const choir_shape *shape)
{
	if (!x || chi_shape_equal(&x->shape, shape))
		return x;
	return chi_op_kernel(x->frame, "broadcast", 1, &x, NULL, x->dtype, shape);
}
