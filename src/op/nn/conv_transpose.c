// The gradient of a convolution's input.
#include "op/nn/nn.h"

// False: no length fits.
static bool plan_axis(const choir_conv_options *o, int axis, int64_t in, int64_t filter,
		int pad[2], int64_t *result)
{
	int64_t windows = 0;

	if (in < 1 || in > INT32_MAX || filter < 1 || filter > INT32_MAX)
		return false;
	if (o->padding == CHOIR_PADDING_SAME)
		*result = in * o->stride;
	else
		*result = (in - 1) * o->stride + (filter - 1) * o->dilation + 1 -
				2 * (int64_t) o->padding - o->pad_before[axis] - o->pad_after[axis];
	return *result >= 1 && chi_convolution_axis(o, axis, *result, filter, pad, &windows) &&
			windows == in;
}

// first: the axis of x to which the options' first axis belongs.
static choir_tensor *transpose(const char *name, choir_tensor *x, choir_tensor *filter,
		const choir_conv_options *o, int first)
{
	const choir_shape *s = &x->shape, *k = &filter->shape;
	choir_shape result = { 4, { s->dim[0], 1, 1, k->dim[2] * o->groups } };
	choir_conv2d_attributes a = {
		.stride = o->stride, .dilation = o->dilation, .groups = o->groups
	};
	int pad[2][2] = { { 0, 0 }, { 0, 0 } };
	char text[2][CHI_SHAPE_TEXT];
	bool fits = s->dim[3] == k->dim[3] && s->dim[3] % o->groups == 0 && k->dim[2] > 0;

	for (int i = first; i < 3 && fits; i++)
		fits = plan_axis(o, i - first, s->dim[i], k->dim[i - 1], pad[i - 1], &result.dim[i]);
	if (!fits)
		return chi_frame_fail_null(x->frame, CHOIR_INVALID,
				"%s: x %s and filter %s do not fit with stride %d, padding %d, dilation %d and "
				"%lld "
				"groups; [n, .., c] and [.., out / groups, c] with a result of one element or "
				"more "
				"are needed",
				name, chi_shape_print(s, text[0]), chi_shape_print(k, text[1]), o->stride,
				o->padding, o->dilation, (long long) o->groups);
	a.top = pad[0][0];
	a.bottom = pad[0][1];
	a.left = pad[1][0];
	a.right = pad[1][1];
	return chi_activation_apply(o->activation, chi_conv2d_gradient_input(filter, x, &a, &result));
}

static bool has_rank(const char *name, choir_tensor *x, choir_tensor *filter, int rank)
{
	char text[2][CHI_SHAPE_TEXT];

	if (x->shape.rank == rank && filter->shape.rank == rank)
		return true;
	chi_frame_fail(x->frame, CHOIR_INVALID, "%s: x %s and filter %s; both need %d axes", name,
			chi_shape_print(&x->shape, text[0]), chi_shape_print(&filter->shape, text[1]), rank);
	return false;
}

choir_tensor *choir_conv2d_transpose(
		choir_tensor *x, choir_tensor *filter, const choir_conv_options *o)
{
	static const char name[] = "conv2d_transpose";
	choir_conv_options all;
	if (!chi_convolution_begin(name, 2, x, filter, o, &all) || !has_rank(name, x, filter, 4))
		return NULL;
	return transpose(name, x, filter, &all, 1);
}

choir_tensor *choir_conv1d_transpose(
		choir_tensor *x, choir_tensor *filter, const choir_conv_options *o)
{
	static const char name[] = "conv1d_transpose";
	choir_conv_options all;
	if (!chi_convolution_begin(name, 1, x, filter, o, &all) || !has_rank(name, x, filter, 3))
		return NULL;
	const int64_t *s = x->shape.dim, *k = filter->shape.dim;
	choir_tensor *image = choir_reshape(x, CHOIR_SHAPE(s[0], 1, s[1], s[2]));
	choir_tensor *kernel = choir_reshape(filter, CHOIR_SHAPE(1, k[0], k[1], k[2]));
	choir_tensor *y = image && kernel ? transpose(name, image, kernel, &all, 2) : NULL;
	return y ? choir_reshape(y, CHOIR_SHAPE(s[0], y->shape.dim[2], y->shape.dim[3])) : NULL;
}

// The result of one slice of the filter, [n d, h, w, c], as [n, length, h w c]: slices stride
// apart behind before slices of zeros.
static choir_tensor *spread(
		choir_tensor *y, int64_t n, int64_t d, int stride, int64_t before, int64_t after)
{
	const int64_t *s = y->shape.dim, pixels = s[1] * s[2] * s[3];
	choir_tensor *slices = choir_pad(choir_reshape(y, CHOIR_SHAPE(n, d, 1, pixels)),
			(const int64_t[]){ 0, 0, 0, 0 }, (const int64_t[]){ 0, 0, stride - 1, 0 }, NULL);
	return choir_pad(choir_reshape(slices, CHOIR_SHAPE(n, d * stride, pixels)),
			(const int64_t[]){ 0, before, 0 }, (const int64_t[]){ 0, after, 0 }, NULL);
}

static choir_tensor *transpose_volumes(choir_tensor *x, choir_tensor *filter,
		const choir_conv_options *o, const int pad[2], int64_t depth)
{
	const int64_t *s = x->shape.dim, *k = filter->shape.dim;
	const choir_conv_options images = chi_convolution_of_images(o);
	choir_tensor *slices = choir_reshape(x, CHOIR_SHAPE(s[0] * s[1], s[2], s[3], s[4]));
	choir_tensor *sum = NULL, *y = NULL;

	for (int64_t i = 0; slices && i < k[0]; i++) {
		choir_tensor *slice =
				choir_reshape(choir_slice(filter, 0, i, 1), CHOIR_SHAPE(k[1], k[2], k[3], k[4]));
		y = slice ? transpose("conv3d_transpose", slices, slice, &images, 1) : NULL;
		choir_tensor *part = y
				? spread(y, s[0], s[1], o->stride, i * o->dilation, (k[0] - 1 - i) * o->dilation)
				: NULL;
		sum = i == 0 ? part : choir_add(sum, part);
		if (!sum)
			return NULL;
	}
	if (!y)
		return NULL;
	sum = choir_slice(sum, 1, pad[0], depth);
	return choir_reshape(
			sum, CHOIR_SHAPE(s[0], depth, y->shape.dim[1], y->shape.dim[2], y->shape.dim[3]));
}

choir_tensor *choir_conv3d_transpose(
		choir_tensor *x, choir_tensor *filter, const choir_conv_options *o)
{
	static const char name[] = "conv3d_transpose";
	choir_conv_options all;
	char text[2][CHI_SHAPE_TEXT];
	int pad[2];
	int64_t depth = 0;

	if (!chi_convolution_begin(name, 3, x, filter, o, &all) || !has_rank(name, x, filter, 5))
		return NULL;
	if (!plan_axis(&all, 0, x->shape.dim[1], filter->shape.dim[0], pad, &depth))
		return chi_frame_fail_null(x->frame, CHOIR_INVALID,
				"%s: x %s and filter %s, stride %d, padding %d and dilation %d give no result; "
				"one slice or more is needed",
				name, chi_shape_print(&x->shape, text[0]),
				chi_shape_print(&filter->shape, text[1]), all.stride, all.padding, all.dilation);
	return chi_activation_apply(all.activation, transpose_volumes(x, filter, &all, pad, depth));
}
