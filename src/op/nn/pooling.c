// Pooling over windows of images [n, h, w, c]. Padding is ignored, and every window contains at
// least one pixel of the image.
#include "op/nn/nn.h"

typedef struct {
	choir_pool2d_attributes kernel; // first: kernels see this
	choir_shape out;
} pool2d;

static choir_status infer_pool(size_t n, choir_tensor *const in[], const void *attributes,
		choir_dtype *dtype, choir_shape *shape)
{
	const pool2d *p = attributes;

	(void) n;
	*dtype = in[0]->dtype;
	*shape = p->out;
	return CHOIR_OK;
}

static const chi_op max_gradient_op, max_take_op, average_gradient_op, average_op;

static pool2d reshaped(const chi_node *node, const choir_tensor *like)
{
	pool2d p = *(const pool2d *) node->attributes;
	p.out = like->shape;
	return p;
}

static choir_status max_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	choir_tensor *const in[] = { node->in[0], node->out, dy };
	const pool2d p = reshaped(node, node->in[0]);

	(void) want;
	gradient[0] = chi_op_call(&max_gradient_op, dy->frame, 3, in, &p);
	return CHOIR_OK;
}

static choir_status average_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	const pool2d p = reshaped(node, node->in[0]);

	(void) want;
	gradient[0] = chi_op_call(&average_gradient_op, dy->frame, 1, &dy, &p);
	return CHOIR_OK;
}

// The gradient and the take are linear in their last input, and each is the other's gradient.
static choir_status max_linear_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	choir_tensor *const in[] = { node->in[0], node->in[1], dy };
	const pool2d p = reshaped(node, node->in[2]);

	if (want[2])
		gradient[2] = chi_op_call(
				node->op == &max_take_op ? &max_gradient_op : &max_take_op, dy->frame, 3, in, &p);
	return CHOIR_OK;
}

static choir_status average_gradient_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	const pool2d p = reshaped(node, node->in[0]);

	(void) want;
	gradient[0] = chi_op_call(&average_op, dy->frame, 1, &dy, &p);
	return CHOIR_OK;
}

static const chi_op max_gradient_op = {
	.name = "max_pool2d_gradient",
	.attribute_bytes = sizeof(pool2d),
	.infer = infer_pool,
	.backward = max_linear_backward,
	.recordable = true,
};
static const chi_op max_take_op = {
	.name = "max_pool2d_take",
	.attribute_bytes = sizeof(pool2d),
	.infer = infer_pool,
	.backward = max_linear_backward,
	.recordable = true,
};
static const chi_op average_gradient_op = {
	.name = "average_pool2d_gradient",
	.attribute_bytes = sizeof(pool2d),
	.infer = infer_pool,
	.backward = average_gradient_backward,
	.recordable = true,
};
static const chi_op max_op = {
	.name = "max_pool2d",
	.attribute_bytes = sizeof(pool2d),
	.infer = infer_pool,
	.backward = max_backward,
	.recordable = true,
};
static const chi_op average_op = {
	.name = "average_pool2d",
	.attribute_bytes = sizeof(pool2d),
	.infer = infer_pool,
	.backward = average_backward,
	.recordable = true,
};

static bool windows_of(int64_t in, int size, int stride, int padding, int pad[2], int64_t *out)
{
	return chi_windows(in, size, stride, padding, pad, out) && (in > 0 || *out == 0);
}

static choir_tensor *call(const chi_op *op, choir_tensor *x, int size, int stride, int padding)
{
	pool2d p = { .kernel = { .window = size, .stride = stride } };
	char text[CHI_SHAPE_TEXT];
	int rows[2], columns[2];

	if (!x)
		return chi_frame_null_argument(NULL, op->name);
	const choir_shape *s = &x->shape;
	if (s->rank != 4)
		return chi_frame_fail_null(x->frame, CHOIR_INVALID,
				"%s: the input is %s; images [n, h, w, c] are needed", op->name,
				chi_shape_print(s, text));
	p.out = *s;
	if (padding >= size || !windows_of(s->dim[1], size, stride, padding, rows, &p.out.dim[1]) ||
			!windows_of(s->dim[2], size, stride, padding, columns, &p.out.dim[2]))
		return chi_frame_fail_null(x->frame, CHOIR_INVALID,
				"%s: images %s, size %d, stride %d and padding %d give no result", op->name,
				chi_shape_print(s, text), size, stride, padding);
	p.kernel.top = rows[0];
	p.kernel.bottom = rows[1];
	p.kernel.left = columns[0];
	p.kernel.right = columns[1];
	return chi_op_call(op, NULL, 1, &x, &p);
}

choir_tensor *choir_max_pool2d(choir_tensor *x, int size, int stride, int padding)
{
	return call(&max_op, x, size, stride, padding);
}

choir_tensor *choir_average_pool2d(choir_tensor *x, int size, int stride, int padding)
{
	return call(&average_op, x, size, stride, padding);
}
