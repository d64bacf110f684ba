// Kernels of products fuse relu, tanh and sigmoid, whose gradients need only the result.
#include "op/nn/nn.h"
#include "op/tape/tape.h"

static choir_tensor *number(const choir_tensor *like, double value)
{
	return like ? choir_number(like->frame, value) : NULL;
}

// dy (s + x s (1 - s) slope), the gradient of x s for a sigmoid s of x; slope NULL: 1.
static choir_tensor *gated_slope(
		choir_tensor *x, choir_tensor *s, choir_tensor *slope, choir_tensor *dy)
{
	choir_tensor *bend = choir_multiply(s, choir_subtract(number(s, 1), s));
	if (slope)
		bend = choir_multiply(bend, slope);
	return choir_multiply(dy, choir_add(s, choir_multiply(x, bend)));
}

// Constants of float_loops.inc: x sigmoid(scale (x + cubic x^3)).
static choir_tensor *gelu_tanh_gradient(choir_tensor *x, choir_tensor *dy)
{
	const double scale = 1.5957691216057308, cubic = 0.044715;
	choir_tensor *square = choir_square(x);
	choir_tensor *inner = choir_multiply(x, choir_add(choir_scale(square, cubic), number(x, 1)));
	choir_tensor *slope =
			choir_scale(choir_add(choir_scale(square, 3 * cubic), number(x, 1)), scale);
	return gated_slope(x, choir_sigmoid(choir_scale(inner, scale)), slope, dy);
}

// dy (P(x) + x p(x)), P the normal distribution, p its density.
static choir_tensor *gelu_gradient(choir_tensor *x, choir_tensor *dy)
{
	const double root = 0.70710678118654752, density = 0.39894228040143268;
	choir_tensor *below =
			choir_scale(choir_add(choir_erf(choir_scale(x, root)), number(x, 1)), 0.5);
	choir_tensor *bell = choir_scale(choir_exp(choir_scale(choir_square(x), -0.5)), density);
	return choir_multiply(dy, choir_add(below, choir_multiply(x, bell)));
}

CHI_UNARY_OP(relu, NULL, "relu_gradient", true,
		choir_where(choir_greater(y, number(y, 0)), dy, number(y, 0)))
CHI_UNARY_OP(tanh, NULL, "tanh_gradient", true,
		choir_multiply(dy, choir_subtract(number(y, 1), choir_square(y))))
CHI_UNARY_OP(sigmoid, NULL, "sigmoid_gradient", true,
		choir_multiply(dy, choir_multiply(y, choir_subtract(number(y, 1), y))))
CHI_UNARY_OP(gelu_tanh, NULL, "gelu_tanh_gradient", false, gelu_tanh_gradient(x, dy))
CHI_UNARY_OP(gelu, NULL, "gelu_gradient", false, gelu_gradient(x, dy))
CHI_UNARY_OP(silu, NULL, "silu_gradient", false, gated_slope(x, choir_sigmoid(x), NULL, dy))
CHI_UNARY_OP(softplus, NULL, "softplus_gradient", false, choir_multiply(dy, choir_sigmoid(x)))

choir_status chi_activation_check(choir_activation activation)
{
	if ((unsigned) activation <= CHOIR_SILU)
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID,
			"activation %d is unknown; known: "
			"LINEAR, RELU, TANH, SIGMOID, GELU, GELU_TANH and SILU",
			(int) activation);
}

choir_activation chi_activation_fused(choir_activation activation)
{
	return activation <= CHOIR_SIGMOID ? activation : CHOIR_LINEAR;
}

choir_tensor *chi_activation_apply(choir_activation activation, choir_tensor *x)
{
	static choir_unary_op *const functions[] = {
		[CHOIR_RELU] = choir_relu,
		[CHOIR_TANH] = choir_tanh,
		[CHOIR_SIGMOID] = choir_sigmoid,
		[CHOIR_GELU] = choir_gelu,
		[CHOIR_GELU_TANH] = choir_gelu_tanh,
		[CHOIR_SILU] = choir_silu,
	};
	return x == NULL || activation == CHOIR_LINEAR ? x : functions[activation](x);
}

choir_tensor *chi_activation_gradient(
		choir_activation activation, choir_tensor *y, choir_tensor *dy)
{
	static const chi_unary_op *const ops[] = {
		[CHOIR_RELU] = &relu_op,
		[CHOIR_TANH] = &tanh_op,
		[CHOIR_SIGMOID] = &sigmoid_op,
	};
	choir_tensor *const in[] = { y, dy };
	if (activation == CHOIR_LINEAR)
		return dy;
	const chi_unary_op *u = ops[activation];
	if (chi_backward_is_recorded(dy->frame))
		return u->slope(NULL, y, dy);
	return chi_op_kernel(dy->frame, u->gradient, 2, in, NULL, dy->dtype, &dy->shape);
}

static choir_status infer_softmax(chi_result *r)
{
	if (r->shape.rank < 1)
		return choir_fail(CHOIR_INVALID, "a scalar has no last axis");
	return CHOIR_OK;
}

choir_tensor *chi_sum_rows(choir_tensor *x)
{
	if (!x)
		return NULL;
	choir_shape column = x->shape;
	column.dim[column.rank - 1] = 1;
	choir_tensor *sum = choir_sum(x, CHOIR_AXIS(-1));
	return sum ? choir_reshape(sum, column) : NULL;
}

CHI_UNARY_OP(softmax, infer_softmax, "softmax_gradient", true,
		choir_multiply(y, choir_subtract(dy, chi_sum_rows(choir_multiply(y, dy)))))
CHI_UNARY_OP(log_softmax, infer_softmax, "log_softmax_gradient", true,
		choir_subtract(dy, choir_multiply(choir_exp(y), chi_sum_rows(dy))))

choir_tensor *choir_leaky_relu(choir_tensor *x, double slope)
{
	return choir_where(choir_greater(x, number(x, 0)), x, choir_scale(x, slope));
}

// expm1's argument is bounded, so that it stays finite.
choir_tensor *choir_elu(choir_tensor *x, double alpha)
{
	choir_tensor *below = choir_scale(choir_expm1(choir_minimum(x, number(x, 0))), alpha);
	return choir_where(choir_greater(x, number(x, 0)), x, below);
}
