// Every window contains an element of x.
#include "op/nn/nn.h"

typedef struct {
	choir_pool2d_attributes kernel; // first: kernels see this
	choir_shape out;
} pool2d;

static choir_status infer_pool(chi_result *r)
{
	const pool2d *p = r->attributes;

	r->shape = p->out;
	return CHOIR_OK;
}

static const chi_op max_gradient_op, max_take_op, average_gradient_op, average_op;

static pool2d reshaped(const chi_node *node, const choir_tensor *like)
{
	pool2d p = *(const pool2d *) node->attributes;
	p.out = like->shape;
	return p;
}

static choir_status max_backward(const chi_node *node, const chi_backward *g)
{
	choir_tensor *const in[] = { node->in[0], node->out, g->dy };
	const pool2d p = reshaped(node, node->in[0]);

	g->gradient[0] = chi_op_call(&max_gradient_op, g->dy->frame, 3, in, &p);
	return CHOIR_OK;
}

static choir_status average_backward(const chi_node *node, const chi_backward *g)
{
	const pool2d p = reshaped(node, node->in[0]);

	g->gradient[0] = chi_op_call(&average_gradient_op, g->dy->frame, 1, &g->dy, &p);
	return CHOIR_OK;
}

// Both are linear in their last input, and each other's gradient.
static choir_status max_linear_backward(const chi_node *node, const chi_backward *g)
{
	choir_tensor *const in[] = { node->in[0], node->in[1], g->dy };
	const pool2d p = reshaped(node, node->in[2]);

	if (g->want[2])
		g->gradient[2] = chi_op_call(node->op == &max_take_op ? &max_gradient_op : &max_take_op,
				g->dy->frame, 3, in, &p);
	return CHOIR_OK;
}

static choir_status average_gradient_backward(const chi_node *node, const chi_backward *g)
{
	const pool2d p = reshaped(node, node->in[0]);

	g->gradient[0] = chi_op_call(&average_op, g->dy->frame, 1, &g->dy, &p);
	return CHOIR_OK;
}

#define POOL_OP(kernel, gradient) \
	{ \
		.name = kernel, .attribute_bytes = sizeof(pool2d), .infer = infer_pool, \
		.backward = gradient \
	}
static const chi_op max_gradient_op = POOL_OP("max_pool2d_gradient", max_linear_backward);
static const chi_op max_take_op = POOL_OP("max_pool2d_take", max_linear_backward);
static const chi_op average_gradient_op =
		POOL_OP("average_pool2d_gradient", average_gradient_backward);
static const chi_op max_op = POOL_OP("max_pool2d", max_backward);
static const chi_op average_op = POOL_OP("average_pool2d", average_backward);

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
		const chi_op *op, const char *name, choir_tensor *x, int size, int stride, int padding)
{
	pool2d p = { .kernel = { .window = size, .stride = stride } };
	int rows[2], columns[2];

	if (!x)
		return chi_frame_null_argument(NULL, name);
	const choir_shape *s = &x->shape;
	p.out = *s;
	if (s->rank != 4 || padding >= size ||
			!windows_of(s->dim[1], size, stride, padding, rows, &p.out.dim[1]) ||
			!windows_of(s->dim[2], size, stride, padding, columns, &p.out.dim[2]))
		return fail(name, x, "images [n, h, w, c]", size, stride, padding);
	p.kernel.top = rows[0];
	p.kernel.bottom = rows[1];
	p.kernel.left = columns[0];
	p.kernel.right = columns[1];
	return chi_op_call(op, NULL, 1, &x, &p);
}

// [n, w, c] as images of one row, below which windows reach.
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

// First slices as images, then slices, whose pixels are channels. A border window has as many
// elements in each slice, so means of means are right.
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
	choir_tensor *y = images ? pool_images(op, op->name, images, size, stride, padding) : NULL;
	if (!y)
		return NULL;
	const int64_t *out = y->shape.dim;
	y = choir_reshape(y, CHOIR_SHAPE(s[0], s[1], out[1] * out[2] * out[3]));
	y = y ? pool_sequences(op, name, y, size, stride, padding) : NULL;
	return y ? choir_reshape(y, CHOIR_SHAPE(s[0], windows, out[1], out[2], out[3])) : NULL;
}

#define POOL(function, op, pool) \
	choir_tensor *choir_##function(choir_tensor *x, int size, int stride, int padding) \
	{ \
		return pool(&op, #function, x, size, stride, padding); \
	}
POOL(max_pool1d, max_op, pool_sequences)
POOL(max_pool2d, max_op, pool_images)
POOL(max_pool3d, max_op, pool_volumes)
POOL(average_pool1d, average_op, pool_sequences)
POOL(average_pool2d, average_op, pool_images)
POOL(average_pool3d, average_op, pool_volumes)

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
	return CHOIR_AXES_BITS((1u << (x->shape.rank - 1)) - 2);
}

choir_tensor *choir_global_max_pool(choir_tensor *x)
{
	return has_inner_axes("global_max_pool", x) ? choir_max(x, inner_axes(x)) : NULL;
}

choir_tensor *choir_global_average_pool(choir_tensor *x)
{
	return has_inner_axes("global_average_pool", x) ? choir_mean(x, inner_axes(x)) : NULL;
}
