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

static choir_status max_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	const pool2d *p = node->attributes;
	choir_tensor *x = node->in[0], *const in[] = { x, node->out, dy };

	(void) want;
	gradient[0] =
			chi_op_kernel(x->frame, "max_pool2d_gradient", 3, in, &p->kernel, x->dtype, &x->shape);
	return CHOIR_OK;
}

static choir_status average_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	const pool2d *p = node->attributes;
	const choir_tensor *x = node->in[0];

	(void) want;
	gradient[0] = chi_op_kernel(
			x->frame, "average_pool2d_gradient", 1, &dy, &p->kernel, x->dtype, &x->shape);
	return CHOIR_OK;
}

static const chi_op max_op = {
	.name = "max_pool2d",
	.attribute_bytes = sizeof(pool2d),
	.infer = infer_pool,
	.backward = max_backward,
};
static const chi_op average_op = {
	.name = "average_pool2d",
	.attribute_bytes = sizeof(pool2d),
	.infer = infer_pool,
	.backward = average_backward,
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
