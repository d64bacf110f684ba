// Images [n, h, w, c] with a filter [kh, kw, c / groups, out]. A sequence [n, w, c] is an image of
// one row.
#include "base/options.h"
#include "base/size.h"
#include "op/nn/nn.h"
#include "op/precision/precision.h"

#include <inttypes.h>
#include <limits.h>

static choir_status check_count(const char *option, int64_t value)
{
	if (value >= 0)
		return CHOIR_OK;
	return choir_fail(
			CHOIR_INVALID, "%s is %" PRId64 "; 1 or more is needed, or 0 for 1", option, value);
}

static bool is_pad(const choir_conv_options *o, int axis, int axes)
{
	const int before = o->pad_before[axis], after = o->pad_after[axis];
	const bool allowed = o->padding != CHOIR_PADDING_SAME && axis < axes;
	return allowed ? before >= 0 && after >= 0 : before == 0 && after == 0;
}

choir_status chi_convolution_options(
		const choir_conv_options *o, int axes, choir_conv_options *all)
{
	CHOIR_TRY(chi_options_take("the options'", all, sizeof *all, o));
	CHOIR_TRY(check_count("stride", all->stride));
	CHOIR_TRY(check_count("dilation", all->dilation));
	CHOIR_TRY(check_count("groups", all->groups));
	if (all->padding < CHOIR_PADDING_SAME)
		return choir_fail(CHOIR_INVALID,
				"padding is %d; 0 or more pixels are needed, or CHOIR_PADDING_SAME", all->padding);
	for (int i = 0; i < 3; i++)
		if (!is_pad(all, i, axes))
			return choir_fail(CHOIR_INVALID,
					"pad_before[%d] is %d and pad_after[%d] %d; 0 or more are needed, "
					"and 0 with CHOIR_PADDING_SAME or after the last axis",
					i, all->pad_before[i], i, all->pad_after[i]);
	CHOIR_TRY(chi_activation_check(all->activation));
	if ((unsigned) all->bias > CHOIR_OFF)
		return choir_fail(
				CHOIR_INVALID, "bias is %d; CHOIR_ON or CHOIR_OFF is needed", (int) all->bias);
	all->stride = all->stride ? all->stride : 1;
	all->dilation = all->dilation ? all->dilation : 1;
	all->groups = all->groups ? all->groups : 1;
	return CHOIR_OK;
}

bool chi_windows(int64_t in, int64_t window, int stride, int padding, int pad[2], int64_t *out)
{
	int64_t padded;

	if (window < 1 || window > INT_MAX / 2 || stride < 1 || padding < -1)
		return false;
	if (padding == -1) { // SAME: an odd zero goes last
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

bool chi_convolution_axis(const choir_conv_options *o, int axis, int64_t in, int64_t filter,
		int pad[2], int64_t *out)
{
	const int64_t before = o->pad_before[axis], after = o->pad_after[axis];
	int64_t padded;

	if (filter < 1 || filter > INT_MAX / 2 || o->dilation > INT_MAX / 2 / filter ||
			!chi_int64_add(in, before + after, &padded))
		return false;
	const int64_t window = (filter - 1) * o->dilation + 1;
	if (!chi_windows(padded, window, o->stride, o->padding, pad, out))
		return false;
	if (before > INT_MAX - pad[0] || after > INT_MAX - pad[1])
		return false;
	pad[0] += (int) before;
	pad[1] += (int) after;
	return in > 0 || *out == 0;
}

choir_status chi_convolution_plan(const choir_shape *x, const choir_shape *filter,
		const choir_conv_options *o, choir_conv2d_attributes *attributes, choir_shape *out)
{
	char text[2][CHI_SHAPE_TEXT];
	int rows[2], columns[2];

	chi_shape_print(x, text[0]);
	chi_shape_print(filter, text[1]);
	if (x->rank != 4 || filter->rank != 4 || filter->dim[2] == 0 || x->dim[3] % o->groups != 0 ||
			x->dim[3] / o->groups != filter->dim[2] || filter->dim[3] % o->groups != 0)
		return choir_fail(CHOIR_INVALID,
				"images %s and filter %s do not fit in %" PRId64 " "
				"groups; [n, h, w, c] and [kh, kw, c / groups, out] are needed",
				text[0], text[1], o->groups);
	*out = (choir_shape){ 4, { x->dim[0], 0, 0, filter->dim[3] } };
	if (!chi_convolution_axis(o, 0, x->dim[1], filter->dim[0], rows, &out->dim[1]) ||
			!chi_convolution_axis(o, 1, x->dim[2], filter->dim[1], columns, &out->dim[2]))
		return choir_fail(CHOIR_INVALID,
				"images %s, filter %s, stride %d, padding %d and dilation %d give no "
				"result",
				text[0], text[1], o->stride, o->padding, o->dilation);
	attributes->stride = o->stride;
	attributes->dilation = o->dilation;
	attributes->groups = o->groups;
	attributes->top = rows[0];
	attributes->bottom = rows[1];
	attributes->left = columns[0];
	attributes->right = columns[1];
	return CHOIR_OK;
}

typedef struct {
	choir_conv2d_attributes kernel; // first: kernels see this
	choir_shape out;
	bool wide;
} conv2d;

static choir_status infer_conv2d(chi_result *r)
{
	const conv2d *c = r->attributes;
	char text[CHI_SHAPE_TEXT];

	const choir_dtype operands = r->in[0]->dtype, bias = chi_dtype_wide(operands);
	r->dtype = c->wide ? chi_dtype_wide(operands) : operands;
	r->shape = c->out;
	for (size_t i = 1; i < r->n; i++)
		if (r->in[i]->dtype != operands && (i < 2 || r->in[i]->dtype != bias))
			return choir_fail(CHOIR_INVALID, "the dtypes are %s and %s; cast one of them",
					choir_dtype_name(operands), choir_dtype_name(r->in[i]->dtype));
	if (r->n == 3 && (r->in[2]->shape.rank != 1 || r->in[2]->shape.dim[0] != c->out.dim[3]))
		return choir_fail(CHOIR_INVALID, "the bias is %s; [%lld] is needed",
				chi_shape_print(&r->in[2]->shape, text), (long long) c->out.dim[3]);
	return CHOIR_OK;
}

static const chi_op conv2d_op, gradient_input_op, gradient_filter_op;

static choir_tensor *call(const chi_op *op, const conv2d *like, choir_tensor *a, choir_tensor *b,
		const choir_tensor *of)
{
	conv2d c = *like;
	choir_tensor *const in[] = { a, b };

	c.out = of->shape;
	c.wide = chi_precision_takes_wide(of);
	return chi_op_call(op, NULL, 2, in, &c);
}

static conv2d linear(const chi_node *node)
{
	conv2d c = *(const conv2d *) node->attributes;
	c.kernel.activation = CHOIR_LINEAR;
	return c;
}

// The convolution is bilinear: each of three operations has the others as gradients.
static choir_status gradient_input_backward(const chi_node *node, const chi_backward *g)
{
	const conv2d c = linear(node);
	choir_tensor *filter = node->in[0], *dy = node->in[1];

	if (g->want[0])
		g->gradient[0] = call(&gradient_filter_op, &c, g->dy, dy, filter);
	if (g->want[1])
		g->gradient[1] = call(&conv2d_op, &c, g->dy, filter, dy);
	return CHOIR_OK;
}

static choir_status gradient_filter_backward(const chi_node *node, const chi_backward *g)
{
	const conv2d c = linear(node);
	choir_tensor *x = node->in[0], *dy = node->in[1];

	if (g->want[0])
		g->gradient[0] = call(&gradient_input_op, &c, g->dy, dy, x);
	if (g->want[1])
		g->gradient[1] = call(&conv2d_op, &c, x, g->dy, dy);
	return CHOIR_OK;
}

static choir_status conv2d_backward(const chi_node *node, const chi_backward *g)
{
	const conv2d *c = node->attributes;
	choir_tensor *x = node->in[0], *filter = node->in[1];
	choir_tensor *dz = chi_activation_gradient(c->kernel.activation, node->out, g->dy);

	if (g->want[0])
		g->gradient[0] = call(&gradient_input_op, c, filter, dz, x);
	if (g->want[1])
		g->gradient[1] = call(&gradient_filter_op, c, x, dz, filter);
	if (node->n == 3 && g->want[2])
		g->gradient[2] = chi_sum_to(dz, &node->in[2]->shape);
	return CHOIR_OK;
}

#define CONVOLUTION_OP(kernel, gradient) \
	{ \
		.name = kernel, .attribute_bytes = sizeof(conv2d), .infer = infer_conv2d, \
		.backward = gradient \
	}
static const chi_op gradient_input_op =
		CONVOLUTION_OP("conv2d_gradient_input", gradient_input_backward);
static const chi_op gradient_filter_op =
		CONVOLUTION_OP("conv2d_gradient_filter", gradient_filter_backward);
static const chi_op conv2d_op = CONVOLUTION_OP("conv2d", conv2d_backward);

choir_tensor *chi_conv2d_gradient_input(choir_tensor *filter, choir_tensor *dy,
		const choir_conv2d_attributes *a, const choir_shape *result)
{
	const conv2d c = { .kernel = *a, .out = *result };
	choir_tensor *const in[] = { filter, dy };
	return chi_op_call(&gradient_input_op, NULL, 2, in, &c);
}

static choir_tensor *convolve(const char *name, choir_tensor *x, choir_tensor *filter,
		choir_tensor *bias, const choir_conv_options *o)
{
	conv2d attributes = { .kernel = { .activation = chi_activation_fused(o->activation) } };
	choir_tensor *const in[] = { x, filter, bias };

	if (!x || !filter)
		return chi_frame_null_argument(choir_tensor_frame(x ? x : filter), name);
	if (chi_convolution_plan(&x->shape, &filter->shape, o, &attributes.kernel, &attributes.out) !=
			CHOIR_OK)
		return chi_op_failed(x->frame, name);
	choir_tensor *y = chi_op_call(&conv2d_op, NULL, bias ? 3 : 2, in, &attributes);
	return attributes.kernel.activation == o->activation ? y
														 : chi_activation_apply(o->activation, y);
}

choir_tensor *chi_conv2d(
		choir_tensor *x, choir_tensor *filter, choir_tensor *bias, const choir_conv_options *o)
{
	return convolve("conv2d", x, filter, bias, o);
}

bool chi_convolution_columns(const choir_conv_options *o, choir_conv_options *columns)
{
	*columns = *o;
	columns->pad_before[0] = columns->pad_after[0] = 0;
	columns->pad_before[1] = o->pad_before[0];
	columns->pad_after[1] = o->pad_after[0];
	if (o->padding <= 0)
		return true;
	columns->padding = 0;
	return !__builtin_add_overflow(o->pad_before[0], o->padding, &columns->pad_before[1]) &&
			!__builtin_add_overflow(o->pad_after[0], o->padding, &columns->pad_after[1]);
}

choir_tensor *chi_conv1d(
		choir_tensor *x, choir_tensor *filter, choir_tensor *bias, const choir_conv_options *o)
{
	const choir_shape *s = &x->shape, *k = &filter->shape;
	choir_conv_options columns;

	if (!chi_convolution_columns(o, &columns))
		return chi_frame_fail_null(x->frame, CHOIR_INVALID, "conv1d: the padding is too large");
	choir_tensor *y =
			convolve("conv1d", choir_reshape(x, CHOIR_SHAPE(s->dim[0], 1, s->dim[1], s->dim[2])),
					choir_reshape(filter, CHOIR_SHAPE(1, k->dim[0], k->dim[1], k->dim[2])), bias,
					&columns);
	return y ? choir_reshape(y, CHOIR_SHAPE(y->shape.dim[0], y->shape.dim[2], y->shape.dim[3]))
			 : NULL;
}

bool chi_convolution_begin(const char *name, int axes, choir_tensor *x, choir_tensor *filter,
		const choir_conv_options *o, choir_conv_options *all)
{
	if (!x || !filter) {
		chi_frame_null_argument(choir_tensor_frame(x ? x : filter), name);
		return false;
	}
	choir_status status = chi_convolution_options(o, axes, all);
	if (status == CHOIR_OK && all->bias == CHOIR_ON)
		status = choir_fail(
				CHOIR_INVALID, "bias is on, but only layers have one; use choir_bias_add");
	if (status != CHOIR_OK)
		chi_op_failed(x->frame, name);
	return status == CHOIR_OK;
}

choir_tensor *choir_conv2d(choir_tensor *x, choir_tensor *filter, const choir_conv_options *o)
{
	choir_conv_options all;
	return chi_convolution_begin("conv2d", 2, x, filter, o, &all)
			? chi_conv2d(x, filter, NULL, &all)
			: NULL;
}

choir_tensor *choir_conv1d(choir_tensor *x, choir_tensor *filter, const choir_conv_options *o)
{
	choir_conv_options all;
	char text[2][CHI_SHAPE_TEXT];

	if (!chi_convolution_begin("conv1d", 1, x, filter, o, &all))
		return NULL;
	if (x->shape.rank != 3 || filter->shape.rank != 3)
		return chi_frame_fail_null(x->frame, CHOIR_INVALID,
				"conv1d: sequences %s and filter %s do not fit; "
				"[n, w, c] and [k, c / groups, out] are needed",
				chi_shape_print(&x->shape, text[0]), chi_shape_print(&filter->shape, text[1]));
	return chi_conv1d(x, filter, NULL, &all);
}
