// Elementwise operations: each has a row with its kernel and gradient.
#include "op/tape/tape.h"

#define TWO_BY_ROOT_PI 1.1283791670955126

choir_status chi_infer_binary(chi_result *r)
{
	if (r->in[0]->dtype != r->in[1]->dtype)
		return choir_fail(CHOIR_INVALID, "the dtypes are %s and %s; cast one of them",
				choir_dtype_name(r->in[0]->dtype), choir_dtype_name(r->in[1]->dtype));
	return chi_broadcast_shapes(&r->in[0]->shape, &r->in[1]->shape, &r->shape);
}

static choir_tensor *number(const choir_tensor *like, double value)
{
	return like ? choir_number(like->frame, value) : NULL;
}

static choir_status add_backward(const chi_node *node, const chi_backward *g)
{
	for (size_t i = 0; i < 2; i++)
		if (g->want[i])
			g->gradient[i] = chi_sum_to(g->dy, &node->in[i]->shape);
	return CHOIR_OK;
}

static choir_status subtract_backward(const chi_node *node, const chi_backward *g)
{
	if (g->want[0])
		g->gradient[0] = chi_sum_to(g->dy, &node->in[0]->shape);
	if (g->want[1])
		g->gradient[1] = choir_scale(chi_sum_to(g->dy, &node->in[1]->shape), -1);
	return CHOIR_OK;
}

static choir_status multiply_backward(const chi_node *node, const chi_backward *g)
{
	for (size_t i = 0; i < 2; i++)
		if (g->want[i])
			g->gradient[i] =
					chi_sum_to(choir_multiply(g->dy, node->in[1 - i]), &node->in[i]->shape);
	return CHOIR_OK;
}

// d(a/b) = da/b - (a/b) db/b
static choir_status divide_backward(const chi_node *node, const chi_backward *g)
{
	choir_tensor *part = choir_divide(g->dy, node->in[1]);

	if (g->want[0])
		g->gradient[0] = chi_sum_to(part, &node->in[0]->shape);
	if (g->want[1])
		g->gradient[1] =
				choir_scale(chi_sum_to(choir_multiply(part, node->out), &node->in[1]->shape), -1);
	return CHOIR_OK;
}

static choir_status infer_maximum_gradient(chi_result *r)
{
	r->dtype = r->in[2]->dtype;
	r->shape = r->in[2]->shape;
	return CHOIR_OK;
}

static choir_tensor *maximum_gradient(
		choir_tensor *a, choir_tensor *b, choir_tensor *dy, const void *attributes);

// Linear in dy; constant where a and b differ.
static choir_status maximum_gradient_backward(const chi_node *node, const chi_backward *g)
{
	if (g->want[2])
		g->gradient[2] = maximum_gradient(node->in[0], node->in[1], g->dy, node->attributes);
	return CHOIR_OK;
}

static const chi_op maximum_gradient_op = {
	.name = "maximum_gradient",
	.attribute_bytes = sizeof(choir_maximum_gradient_attributes),
	.infer = infer_maximum_gradient,
	.backward = maximum_gradient_backward,
};

static choir_tensor *maximum_gradient(
		choir_tensor *a, choir_tensor *b, choir_tensor *dy, const void *attributes)
{
	choir_tensor *const in[] = { a, b, dy };
	return chi_op_call(&maximum_gradient_op, dy->frame, 3, in, attributes);
}

static choir_status extreme_gradients(const chi_node *node, size_t larger, const chi_backward *g)
{
	choir_tensor *a = node->in[larger], *b = node->in[1 - larger];
	for (int side = 0; side < 2; side++) {
		const choir_maximum_gradient_attributes attributes = { side };
		if (g->want[side])
			g->gradient[side] =
					chi_sum_to(maximum_gradient(a, b, g->dy, &attributes), &node->in[side]->shape);
	}
	return CHOIR_OK;
}

static choir_status maximum_backward(const chi_node *node, const chi_backward *g)
{
	return extreme_gradients(node, 0, g);
}

static choir_status minimum_backward(const chi_node *node, const chi_backward *g)
{
	return extreme_gradients(node, 1, g);
}

// d(a^b) = b a^(b - 1) da + log(a) a^b db; the first is 0 for b = 0, the second where not a > 0.
static choir_status pow_backward(const chi_node *node, const chi_backward *g)
{
	choir_tensor *a = node->in[0], *b = node->in[1], *one = number(g->dy, 1),
				 *zero = number(g->dy, 0);

	if (g->want[0]) {
		choir_tensor *slope = choir_multiply(b, choir_pow(a, choir_subtract(b, one)));
		g->gradient[0] = chi_sum_to(
				choir_multiply(g->dy, choir_where(choir_equal(b, zero), zero, slope)), &a->shape);
	}
	if (g->want[1]) {
		choir_tensor *positive = choir_greater(a, zero);
		choir_tensor *slope = choir_multiply(choir_log(choir_where(positive, a, one)), node->out);
		g->gradient[1] =
				chi_sum_to(choir_multiply(g->dy, choir_where(positive, slope, zero)), &b->shape);
	}
	return CHOIR_OK;
}

// d(atan2(a, b)) = (b da - a db) / (a^2 + b^2)
static choir_status atan2_backward(const chi_node *node, const chi_backward *g)
{
	choir_tensor *a = node->in[0], *b = node->in[1];
	choir_tensor *part = choir_divide(g->dy, choir_add(choir_square(a), choir_square(b)));

	if (g->want[0])
		g->gradient[0] = chi_sum_to(choir_multiply(part, b), &a->shape);
	if (g->want[1])
		g->gradient[1] = choir_negate(chi_sum_to(choir_multiply(part, a), &b->shape));
	return CHOIR_OK;
}

choir_status chi_unary_backward(const chi_node *node, const chi_backward *g)
{
	const chi_unary_op *u = (const chi_unary_op *) node->op;
	choir_tensor *const in[] = { u->of_result ? node->out : node->in[0], g->dy };
	if (u->slope && (!u->gradient || chi_backward_is_recorded(g->dy->frame)))
		g->gradient[0] = u->slope(node->in[0], node->out, g->dy);
	else
		g->gradient[0] =
				chi_op_kernel(g->dy->frame, u->gradient, 2, in, NULL, g->dy->dtype, &g->dy->shape);
	return CHOIR_OK;
}

static choir_status scale_backward(const chi_node *node, const chi_backward *g)
{
	const choir_scale_attributes *attributes = node->attributes;
	g->gradient[0] = choir_scale(g->dy, attributes->by);
	return CHOIR_OK;
}

static const chi_op scale_op = {
	.name = "scale",
	.attribute_bytes = sizeof(choir_scale_attributes),
	.backward = scale_backward,
};

#define BINARY(kernel) \
	choir_tensor *choir_##kernel(choir_tensor *a, choir_tensor *b) \
	{ \
		static const chi_op op = { \
			.name = #kernel, .infer = chi_infer_binary, .backward = kernel##_backward \
		}; \
		choir_tensor *const in[] = { a, b }; \
		return chi_op_call(&op, NULL, 2, in, NULL); \
	}
BINARY(add)
BINARY(subtract)
BINARY(multiply)
BINARY(divide)
BINARY(maximum)
BINARY(minimum)
BINARY(pow)
BINARY(atan2)

#define UNARY(kernel, slope) CHI_UNARY_OP(kernel, NULL, NULL, false, slope)
#define STEP(kernel) UNARY(kernel, choir_scale(dy, 0))
CHI_UNARY_OP(square, NULL, "square_gradient", false, choir_multiply(choir_scale(x, 2), dy))
CHI_UNARY_OP(sqrt, NULL, "sqrt_gradient", true, choir_divide(dy, choir_scale(y, 2)))
UNARY(rsqrt, choir_scale(choir_multiply(dy, choir_divide(y, x)), -0.5))
UNARY(exp, choir_multiply(dy, y))
UNARY(expm1, choir_multiply(dy, choir_exp(x)))
UNARY(log, choir_divide(dy, x))
UNARY(log1p, choir_divide(dy, choir_add(x, number(x, 1))))
UNARY(abs, choir_multiply(dy, choir_sign(x)))
UNARY(negate, choir_negate(dy))
STEP(sign)
STEP(floor)
STEP(ceil)
STEP(round)
UNARY(sin, choir_multiply(dy, choir_cos(x)))
UNARY(cos, choir_negate(choir_multiply(dy, choir_sin(x))))
UNARY(tan, choir_multiply(dy, choir_add(choir_square(y), number(y, 1))))
UNARY(erf,
		choir_scale(choir_multiply(dy, choir_exp(choir_negate(choir_square(x)))), TWO_BY_ROOT_PI))

choir_tensor *choir_scale(choir_tensor *x, double by)
{
	const choir_scale_attributes attributes = { by };
	if (x && !chi_dtype_holds(x->dtype, by))
		return chi_frame_fail_null(x->frame, CHOIR_INVALID,
				"scale: the number %g is not a value of %s", by, choir_dtype_name(x->dtype));
	return chi_op_call(&scale_op, NULL, 1, &x, &attributes);
}

choir_tensor *choir_clip(choir_tensor *x, double low, double high)
{
	if (x && !(low <= high))
		return chi_frame_fail_null(x->frame, CHOIR_INVALID,
				"clip: the bounds are %g and %g; the first must not be the larger", low, high);
	return choir_minimum(choir_maximum(x, number(x, low)), number(x, high));
}
