// Activations. Kernels of products fuse relu, tanh and sigmoid, whose gradients need only the
// result. Gradients of other activations need the input, so these activations are separate
// operations.
#include "op/nn/nn.h"

static const chi_unary_op relu_op = { { .name = "relu", .backward = chi_unary_backward },
	"relu_gradient", true };
static const chi_unary_op tanh_op = { { .name = "tanh", .backward = chi_unary_backward },
	"tanh_gradient", true };
static const chi_unary_op sigmoid_op = { { .name = "sigmoid", .backward = chi_unary_backward },
	"sigmoid_gradient", true };
static const chi_unary_op gelu_tanh_op = { { .name = "gelu_tanh", .backward = chi_unary_backward },
	"gelu_tanh_gradient", false };
static const chi_unary_op gelu_op = { { .name = "gelu", .backward = chi_unary_backward },
	"gelu_gradient", false };
static const chi_unary_op silu_op = { { .name = "silu", .backward = chi_unary_backward },
	"silu_gradient", false };
static const chi_unary_op softplus_op = { { .name = "softplus", .backward = chi_unary_backward },
	"softplus_gradient", false };

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
	static const char *const kernels[] = {
		[CHOIR_RELU] = "relu_gradient",
		[CHOIR_TANH] = "tanh_gradient",
		[CHOIR_SIGMOID] = "sigmoid_gradient",
	};
	choir_tensor *const in[] = { y, dy };
	if (activation == CHOIR_LINEAR)
		return dy;
	return chi_op_kernel(dy->frame, kernels[activation], 2, in, NULL, dy->dtype, &dy->shape);
}

choir_tensor *choir_relu(choir_tensor *x)
{
	return chi_op_call(&relu_op.op, NULL, 1, &x, NULL);
}

choir_tensor *choir_tanh(choir_tensor *x)
{
	return chi_op_call(&tanh_op.op, NULL, 1, &x, NULL);
}

choir_tensor *choir_sigmoid(choir_tensor *x)
{
	return chi_op_call(&sigmoid_op.op, NULL, 1, &x, NULL);
}

choir_tensor *choir_gelu_tanh(choir_tensor *x)
{
	return chi_op_call(&gelu_tanh_op.op, NULL, 1, &x, NULL);
}

choir_tensor *choir_gelu(choir_tensor *x)
{
	return chi_op_call(&gelu_op.op, NULL, 1, &x, NULL);
}

choir_tensor *choir_silu(choir_tensor *x)
{
	return chi_op_call(&silu_op.op, NULL, 1, &x, NULL);
}

choir_tensor *choir_softplus(choir_tensor *x)
{
	return chi_op_call(&softplus_op.op, NULL, 1, &x, NULL);
}

// ---- Softmax along the last axis.

static choir_status infer_softmax(size_t n, choir_tensor *const in[], const void *attributes,
		choir_dtype *dtype, choir_shape *shape)
{
	(void) n;
	(void) attributes;
	*dtype = in[0]->dtype;
	*shape = in[0]->shape;
	if (shape->rank < 1)
		return choir_fail(CHOIR_INVALID, "a scalar has no last axis");
	return CHOIR_OK;
}

static const chi_unary_op softmax_op = {
	{ .name = "softmax", .infer = infer_softmax, .backward = chi_unary_backward },
	"softmax_gradient", true
};

choir_tensor *choir_softmax(choir_tensor *x)
{
	return chi_op_call(&softmax_op.op, NULL, 1, &x, NULL);
}

static const chi_unary_op log_softmax_op = {
	{ .name = "log_softmax", .infer = infer_softmax, .backward = chi_unary_backward },
	"log_softmax_gradient", true
};

choir_tensor *choir_log_softmax(choir_tensor *x)
{
	return chi_op_call(&log_softmax_op.op, NULL, 1, &x, NULL);
}
