// Elementwise operations. Operands broadcast; their gradients are summed over the repeated axes.
#include "op/op.h"

static choir_status infer_binary(size_t n, choir_tensor *const in[], const void *attributes,
		choir_dtype *dtype, choir_shape *shape)
{
	const choir_shape *a = &in[0]->shape, *b = &in[1]->shape;
	char text[2][CHI_SHAPE_TEXT];

	(void) n;
	(void) attributes;
	*dtype = in[0]->dtype;
	if (in[0]->dtype != in[1]->dtype)
		return choir_fail(CHOIR_INVALID, "the dtypes are %s and %s; cast one of them",
				choir_dtype_name(in[0]->dtype), choir_dtype_name(in[1]->dtype));
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

static choir_tensor *call_binary(const chi_op *op, choir_tensor *a, choir_tensor *b)
{
	choir_tensor *const in[] = { a, b };
	return chi_op_call(op, NULL, 2, in, NULL);
}

static choir_status add_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	for (size_t i = 0; i < 2; i++)
		if (want[i])
			gradient[i] = chi_sum_to(dy, &node->in[i]->shape);
	return CHOIR_OK;
}

static choir_status subtract_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	if (want[0])
		gradient[0] = chi_sum_to(dy, &node->in[0]->shape);
	if (want[1])
		gradient[1] = choir_scale(chi_sum_to(dy, &node->in[1]->shape), -1);
	return CHOIR_OK;
}

static choir_status multiply_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	for (size_t i = 0; i < 2; i++)
		if (want[i])
			gradient[i] = chi_sum_to(choir_multiply(dy, node->in[1 - i]), &node->in[i]->shape);
	return CHOIR_OK;
}

// d(a/b) = da/b - (a/b) db/b
static choir_status divide_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	choir_tensor *part = choir_divide(dy, node->in[1]);

	if (want[0])
		gradient[0] = chi_sum_to(part, &node->in[0]->shape);
	if (want[1])
		gradient[1] =
				choir_scale(chi_sum_to(choir_multiply(part, node->out), &node->in[1]->shape), -1);
	return CHOIR_OK;
}

static choir_status maximum_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	choir_tensor *const in[] = { node->in[0], node->in[1], dy };

	for (int side = 0; side < 2; side++) {
		const choir_maximum_gradient_attributes attributes = { side };
		if (want[side])
			gradient[side] = chi_sum_to(chi_op_kernel(dy->frame, "maximum_gradient", 3, in,
												&attributes, dy->dtype, &dy->shape),
					&node->in[side]->shape);
	}
	return CHOIR_OK;
}

choir_status chi_unary_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	const chi_unary_op *u = (const chi_unary_op *) node->op;
	choir_tensor *const in[] = { u->of_result ? node->out : node->in[0], dy };
	(void) want;
	gradient[0] = chi_op_kernel(dy->frame, u->gradient, 2, in, NULL, dy->dtype, &dy->shape);
	return CHOIR_OK;
}

static choir_status exp_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	(void) want;
	gradient[0] = choir_multiply(dy, node->out);
	return CHOIR_OK;
}

static choir_status log_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	(void) want;
	gradient[0] = choir_divide(dy, node->in[0]);
	return CHOIR_OK;
}

static choir_status scale_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	const choir_scale_attributes *attributes = node->attributes;
	(void) want;
	gradient[0] = choir_scale(dy, attributes->by);
	return CHOIR_OK;
}

static const chi_op add_op = { .name = "add", .infer = infer_binary, .backward = add_backward };
static const chi_op subtract_op = {
	.name = "subtract",
	.infer = infer_binary,
	.backward = subtract_backward,
};
static const chi_op multiply_op = {
	.name = "multiply",
	.infer = infer_binary,
	.backward = multiply_backward,
};
static const chi_op divide_op = {
	.name = "divide",
	.infer = infer_binary,
	.backward = divide_backward,
};
static const chi_op maximum_op = {
	.name = "maximum",
	.infer = infer_binary,
	.backward = maximum_backward,
};
static const chi_unary_op square_op = { { .name = "square", .backward = chi_unary_backward },
	"square_gradient", false };
static const chi_unary_op sqrt_op = { { .name = "sqrt", .backward = chi_unary_backward },
	"sqrt_gradient", true };
static const chi_op exp_op = { .name = "exp", .backward = exp_backward };
static const chi_op log_op = { .name = "log", .backward = log_backward };
static const chi_op scale_op = {
	.name = "scale",
	.attribute_bytes = sizeof(choir_scale_attributes),
	.backward = scale_backward,
};

choir_tensor *choir_add(choir_tensor *a, choir_tensor *b)
{
	return call_binary(&add_op, a, b);
}

choir_tensor *choir_subtract(choir_tensor *a, choir_tensor *b)
{
	return call_binary(&subtract_op, a, b);
}

choir_tensor *choir_multiply(choir_tensor *a, choir_tensor *b)
{
	return call_binary(&multiply_op, a, b);
}

choir_tensor *choir_divide(choir_tensor *a, choir_tensor *b)
{
	return call_binary(&divide_op, a, b);
}

choir_tensor *choir_maximum(choir_tensor *a, choir_tensor *b)
{
	return call_binary(&maximum_op, a, b);
}

choir_tensor *choir_square(choir_tensor *x)
{
	return chi_op_call(&square_op.op, NULL, 1, &x, NULL);
}

choir_tensor *choir_sqrt(choir_tensor *x)
{
	return chi_op_call(&sqrt_op.op, NULL, 1, &x, NULL);
}

choir_tensor *choir_exp(choir_tensor *x)
{
	return chi_op_call(&exp_op, NULL, 1, &x, NULL);
}

choir_tensor *choir_log(choir_tensor *x)
{
	return chi_op_call(&log_op, NULL, 1, &x, NULL);
}

choir_tensor *choir_scale(choir_tensor *x, double by)
{
	const choir_scale_attributes attributes = { by };
	if (x && !chi_dtype_holds(x->dtype, by))
		return chi_frame_fail_null(x->frame, CHOIR_INVALID,
				"scale: the number %g is not a value of %s", by, choir_dtype_name(x->dtype));
	return chi_op_call(&scale_op, NULL, 1, &x, &attributes);
}
