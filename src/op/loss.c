// Losses, one for each example, and softmax.
#include "op/op.h"

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

static choir_status softmax_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	choir_tensor *const in[] = { node->out, dy };

	(void) want;
	gradient[0] = chi_op_kernel(dy->frame, "softmax_gradient", 2, in, NULL, dy->dtype, &dy->shape);
	return CHOIR_OK;
}

static const chi_op softmax_op = {
	.name = "softmax",
	.infer = infer_softmax,
	.backward = softmax_backward,
};

choir_tensor *choir_softmax(choir_tensor *x)
{
	return chi_op_call(&softmax_op, NULL, 1, &x, NULL);
}

static choir_status infer_cross_entropy(size_t n, choir_tensor *const in[], const void *attributes,
		choir_dtype *dtype, choir_shape *shape)
{
	const choir_shape *logits = &in[0]->shape, *labels = &in[1]->shape;
	const choir_dtype label = in[1]->dtype;
	char text[2][CHI_SHAPE_TEXT];

	(void) n;
	(void) attributes;
	*dtype = in[0]->dtype;
	if (label != CHOIR_U8 && label != CHOIR_I32 && label != CHOIR_I64)
		return choir_fail(
				CHOIR_INVALID, "labels are %s, needed u8, i32 or i64", choir_dtype_name(label));
	if (logits->rank != 2 || labels->rank != 1 || logits->dim[0] != labels->dim[0] ||
			logits->dim[1] == 0)
		return choir_fail(CHOIR_INVALID,
				"logits %s and labels %s do not fit; needed [n, classes] and [n]",
				chi_shape_print(logits, text[0]), chi_shape_print(labels, text[1]));
	*shape = *labels;
	return CHOIR_OK;
}

static choir_status cross_entropy_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	choir_tensor *logits = node->in[0], *const in[] = { logits, node->in[1], dy };

	if (want[0])
		gradient[0] = chi_op_kernel(dy->frame, "softmax_cross_entropy_gradient", 3, in, NULL,
				logits->dtype, &logits->shape);
	return CHOIR_OK;
}

static const chi_op cross_entropy_op = {
	.name = "softmax_cross_entropy",
	.infer = infer_cross_entropy,
	.backward = cross_entropy_backward,
};

choir_tensor *choir_softmax_cross_entropy(choir_tensor *logits, choir_tensor *labels)
{
	choir_tensor *const in[] = { logits, labels };
	return chi_op_call(&cross_entropy_op, NULL, 2, in, NULL);
}

// The mean over all axes but the first.
choir_tensor *choir_squared_error(choir_tensor *x, choir_tensor *target)
{
	choir_tensor *square = choir_square(choir_subtract(x, target));
	if (!square)
		return NULL;
	const int rank = square->shape.rank;
	if (rank < 1)
		return chi_frame_fail_null(square->frame, CHOIR_INVALID,
				"squared_error: scalars have no examples; needed [n, ...]");
	return rank == 1 ? square : choir_mean(square, ((choir_axes) 1 << rank) - 2);
}
