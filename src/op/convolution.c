// Two-dimensional convolution of images [n, h, w, c] with a filter [kh, kw, c, out], plain or
// with the bias and activation of a layer fused in.
#include "base/size.h"
#include "op/op.h"

#include <limits.h>

bool chi_windows(int64_t in, int64_t window, int stride, int padding, int pad[2], int64_t *out)
{
	int64_t padded;

	if (window < 1 || window > INT_MAX / 2 || stride < 1 || padding < -1)
		return false;
	if (padding == -1) { // as many windows as strides begin in the image; the odd zero goes behind
		*out = in / stride + (in % stride != 0);
		const int64_t covered = in == 0 ? 0 : (*out - 1) * stride + window;
		const int64_t zeros = covered > in ? covered - in : 0;
		pad[0] = (int) (zeros / 2);
		pad[1] = (int) (zeros - zeros / 2);
		return true;
	}
	if (!chi_int64_add(in, 2 * (int64_t) padding, &padded) || padded < window)
		return false;
	pad[0] = pad[1] = padding;
	*out = (padded - window) / stride + 1;
	return true;
}

// The shape of the result in *out, and the zeros around x in attributes.
static choir_status plan(const choir_tensor *x, const choir_tensor *filter, int padding,
		choir_conv2d_attributes *attributes, choir_shape *out)
{
	const choir_shape *s = &x->shape, *k = &filter->shape;
	char text[2][CHI_SHAPE_TEXT];
	int rows[2], columns[2];

	chi_shape_print(s, text[0]);
	chi_shape_print(k, text[1]);
	if (s->rank != 4 || k->rank != 4 || s->dim[3] != k->dim[2] || k->dim[2] == 0)
		return choir_fail(CHOIR_INVALID,
				"conv2d: images %s and filter %s do not fit; needed "
				"[n, h, w, c] and [kh, kw, c, out]",
				text[0], text[1]);
	*out = (choir_shape){ 4, { s->dim[0], 0, 0, k->dim[3] } };
	if (!chi_windows(s->dim[1], k->dim[0], attributes->stride, padding, rows, &out->dim[1]) ||
			!chi_windows(s->dim[2], k->dim[1], attributes->stride, padding, columns, &out->dim[2]))
		return choir_fail(CHOIR_INVALID,
				"conv2d: images %s, filter %s, stride %d and padding %d give no result", text[0],
				text[1], attributes->stride, padding);
	attributes->top = rows[0];
	attributes->bottom = rows[1];
	attributes->left = columns[0];
	attributes->right = columns[1];
	return CHOIR_OK;
}

// The shape was planned before; the dtypes and the bias are left to check.
typedef struct {
	choir_conv2d_attributes kernel; // first: this is what kernels see
	choir_shape out;
} conv2d;

static choir_status infer_conv2d(size_t n, choir_tensor *const in[], const void *attributes,
		choir_dtype *dtype, choir_shape *shape)
{
	const conv2d *c = attributes;
	char text[CHI_SHAPE_TEXT];

	*dtype = in[0]->dtype;
	*shape = c->out;
	for (size_t i = 1; i < n; i++)
		if (in[i]->dtype != *dtype)
			return choir_fail(CHOIR_INVALID, "%s and %s do not go together; cast one of them",
					choir_dtype_name(*dtype), choir_dtype_name(in[i]->dtype));
	if (n == 3 && (in[2]->shape.rank != 1 || in[2]->shape.dim[0] != c->out.dim[3]))
		return choir_fail(CHOIR_INVALID, "bias is %s, needed [%lld]",
				chi_shape_print(&in[2]->shape, text), (long long) c->out.dim[3]);
	return CHOIR_OK;
}

static choir_status conv2d_backward(
		const chi_node *node, choir_tensor *dy, const bool want[], choir_tensor *gradient[])
{
	const conv2d *c = node->attributes;
	choir_tensor *x = node->in[0], *filter = node->in[1];
	choir_tensor *dz = chi_activation_gradient(c->kernel.activate, node->out, dy);
	choir_tensor *const for_input[] = { filter, dz }, *const for_filter[] = { x, dz };

	if (want[0])
		gradient[0] = chi_op_kernel(
				x->frame, "conv2d_gradient_input", 2, for_input, &c->kernel, x->dtype, &x->shape);
	if (want[1])
		gradient[1] = chi_op_kernel(x->frame, "conv2d_gradient_filter", 2, for_filter, &c->kernel,
				x->dtype, &filter->shape);
	if (node->n == 3 && want[2])
		gradient[2] = chi_sum_to(dz, &node->in[2]->shape);
	return CHOIR_OK;
}

static const chi_op conv2d_op = {
	.name = "conv2d",
	.attribute_bytes = sizeof(conv2d),
	.infer = infer_conv2d,
	.backward = conv2d_backward,
};

static choir_tensor *call(
		size_t n, choir_tensor *const in[], int stride, int padding, choir_activate activate)
{
	conv2d attributes = { .kernel = { .stride = stride, .activate = activate } };

	for (size_t i = 0; i < n; i++)
		if (!in[i])
			return chi_frame_null(choir_tensor_frame(in[0] ? in[0] : in[1]), "conv2d");
	if (plan(in[0], in[1], padding, &attributes.kernel, &attributes.out) != CHOIR_OK) {
		chi_frame_keep(in[0]->frame);
		return NULL;
	}
	return chi_op_call(&conv2d_op, NULL, n, in, &attributes);
}

choir_tensor *choir_conv2d(choir_tensor *x, choir_tensor *filter, int stride, int padding)
{
	choir_tensor *const in[] = { x, filter };
	return call(2, in, stride, padding, CHOIR_ACTIVATE_LINEAR);
}

choir_tensor *chi_conv2d(choir_tensor *x, choir_tensor *filter, choir_tensor *bias, int stride,
		int padding, choir_activate activate)
{
	choir_tensor *const in[] = { x, filter, bias };
	return call(bias ? 3 : 2, in, stride, padding, activate);
}
