// Padding is ignored, and every window contains at least one element of x.
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

static choir_tensor *fail(
		const char *name, choir_tensor *x, const char *needed, int size, int stride, int padding)
{
	char text[CHI_SHAPE_TEXT];
	return chi_frame_fail_null(x->frame, CHOIR_INVALID,
			"%s: %s, size %d, stride %d and padding %d give no result; %s are needed", name,
			chi_shape_print(&x->shape, text), size, stride, padding, needed);
}

static choir_tensor *pool_images(
		const chi_op *op, choir_tensor *x, int size, int stride, int padding)
{
	pool2d p = { .kernel = { .window = size, .stride = stride } };
	int rows[2], columns[2];

	if (!x)
		return chi_frame_null_argument(NULL, op->name);
	const choir_shape *s = &x->shape;
	p.out = *s;
	if (s->rank != 4 || padding >= size ||
			!windows_of(s->dim[1], size, stride, padding, rows, &p.out.dim[1]) ||
			!windows_of(s->dim[2], size, stride, padding, columns, &p.out.dim[2]))
		return fail(op->name, x, "images [n, h, w, c]", size, stride, padding);
	p.kernel.top = rows[0];
	p.kernel.bottom = rows[1];
	p.kernel.left = columns[0];
	p.kernel.right = columns[1];
	return chi_op_call(op, NULL, 1, &x, &p);
}

// [n, w, c] as images of one row, with windows that reach below it.
static choir_tensor *pool_sequences(
		const chi_op *op, const char *name, choir_tensor *x, int size, int stride, int padding)
{
	pool2d p = { .kernel = { .window = size, .stride = stride, .bottom = size - 1 } };
	int columns[2];

	if (!x)
		return chi_frame_null_argument(NULL, name);
	const int64_t *s = x->shape.dim;
	if (x->shape.rank != 3 || padding >= size ||
			!windows_of(s[1], size, stride, padding, columns, &p.out.dim[2]))
		return fail(name, x, "sequences [n, w, c]", size, stride, padding);
	p.out = CHOIR_SHAPE(s[0], 1, p.out.dim[2], s[2]);
	p.kernel.left = columns[0];
	p.kernel.right = columns[1];
	choir_tensor *image = choir_reshape(x, CHOIR_SHAPE(s[0], 1, s[1], s[2]));
	choir_tensor *y = chi_op_call(op, x->frame, 1, &image, &p);
	return y ? choir_reshape(y, CHOIR_SHAPE(s[0], y->shape.dim[2], s[2])) : NULL;
}

// First all slices as images, then the slices, whose pixels are channels. A window at a border
// has as many elements in each of its slices, so means of means are right.
static choir_tensor *pool_volumes(
		const chi_op *op, const char *name, choir_tensor *x, int size, int stride, int padding)
{
	int pad[2];
	int64_t windows;

	if (!x)
		return chi_frame_null_argument(NULL, name);
	const int64_t *s = x->shape.dim;
	if (x->shape.rank != 5 || padding >= size ||
			!windows_of(s[1], size, stride, padding, pad, &windows))
		return fail(name, x, "volumes [n, d, h, w, c]", size, stride, padding);
	choir_tensor *images = choir_reshape(x, CHOIR_SHAPE(s[0] * s[1], s[2], s[3], s[4]));
	choir_tensor *y = images ? pool_images(op, images, size, stride, padding) : NULL;
	if (!y)
		return NULL;
	const int64_t *out = y->shape.dim;
	y = choir_reshape(y, CHOIR_SHAPE(s[0], s[1], out[1] * out[2] * out[3]));
	y = y ? pool_sequences(op, name, y, size, stride, padding) : NULL;
	return y ? choir_reshape(y, CHOIR_SHAPE(s[0], windows, out[1], out[2], out[3])) : NULL;
}

choir_tensor *choir_max_pool2d(choir_tensor *x, int size, int stride, int padding)
{
	return pool_images(&max_op, x, size, stride, padding);
}

choir_tensor *choir_average_pool2d(choir_tensor *x, int size, int stride, int padding)
{
	return pool_images(&average_op, x, size, stride, padding);
}

choir_tensor *choir_max_pool1d(choir_tensor *x, int size, int stride, int padding)
{
	return pool_sequences(&max_op, "max_pool1d", x, size, stride, padding);
}

choir_tensor *choir_average_pool1d(choir_tensor *x, int size, int stride, int padding)
{
	return pool_sequences(&average_op, "average_pool1d", x, size, stride, padding);
}

choir_tensor *choir_max_pool3d(choir_tensor *x, int size, int stride, int padding)
{
	return pool_volumes(&max_op, "max_pool3d", x, size, stride, padding);
}

choir_tensor *choir_average_pool3d(choir_tensor *x, int size, int stride, int padding)
{
	return pool_volumes(&average_op, "average_pool3d", x, size, stride, padding);
}

static bool has_inner_axes(const char *name, choir_tensor *x)
{
	char text[CHI_SHAPE_TEXT];

	if (!x)
		chi_frame_null_argument(NULL, name);
	else if (x->shape.rank < 3)
		chi_frame_fail(x->frame, CHOIR_INVALID, "%s: the input is %s; [n, .., c] is needed", name,
				chi_shape_print(&x->shape, text));
	return x && x->shape.rank >= 3;
}

static choir_axes inner_axes(const choir_tensor *x)
{
	return ((choir_axes) 1 << (x->shape.rank - 1)) - 2;
}

choir_tensor *choir_global_max_pool(choir_tensor *x)
{
	return has_inner_axes("global_max_pool", x) ? choir_max(x, inner_axes(x)) : NULL;
}

choir_tensor *choir_global_average_pool(choir_tensor *x)
{
	return has_inner_axes("global_average_pool", x) ? choir_mean(x, inner_axes(x)) : NULL;
}
