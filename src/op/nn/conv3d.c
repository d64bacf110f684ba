// Sums of two-dimensional convolutions over the filter's slices.
#include "op/nn/nn.h"

// Slices first, first + stride, .. of x [n, d, ..] as images.
static choir_tensor *slices_at(choir_tensor *x, int64_t first, int64_t count, int stride)
{
	const int64_t *dim = x->shape.dim;
	choir_tensor *part = choir_slice(x, 1, first, count * stride);
	if (part && stride > 1) {
		part = choir_reshape(part, CHOIR_SHAPE(dim[0], count, stride, dim[2] * dim[3] * dim[4]));
		part = part ? choir_slice(part, 2, 0, 1) : NULL;
	}
	return part ? choir_reshape(part, CHOIR_SHAPE(dim[0] * count, dim[2], dim[3], dim[4])) : NULL;
}

choir_conv_options chi_convolution_of_images(const choir_conv_options *o)
{
	choir_conv_options images = *o;
	images.activation = CHOIR_LINEAR;
	for (int i = 0; i < 2; i++) {
		images.pad_before[i] = o->pad_before[i + 1];
		images.pad_after[i] = o->pad_after[i + 1];
	}
	images.pad_before[2] = images.pad_after[2] = 0;
	return images;
}

// Whole parts need padding by stride - 1 slices more.
static choir_tensor *convolve(choir_tensor *x, choir_tensor *filter, const choir_conv_options *o,
		const int pad[2], int64_t count)
{
	const int64_t before[CHOIR_MAX_RANK] = { 0, pad[0] };
	const int64_t after[CHOIR_MAX_RANK] = { 0, pad[1] + o->stride - 1 };
	const int64_t *k = filter->shape.dim;
	const choir_conv_options images = chi_convolution_of_images(o);
	choir_tensor *padded = choir_pad(x, before, after, NULL), *sum = NULL;

	for (int64_t i = 0; padded && i < k[0]; i++) {
		choir_tensor *part = slices_at(padded, i * o->dilation, count, o->stride);
		choir_tensor *slice = choir_slice(filter, 0, i, 1);
		slice = slice ? choir_reshape(slice, CHOIR_SHAPE(k[1], k[2], k[3], k[4])) : NULL;
		choir_tensor *y = part && slice ? chi_conv2d(part, slice, NULL, &images) : NULL;
		sum = i == 0 ? y : choir_add(sum, y);
		if (!sum)
			return NULL;
	}
	if (!sum)
		return NULL;
	const int64_t *dim = sum->shape.dim;
	return choir_reshape(sum, CHOIR_SHAPE(x->shape.dim[0], count, dim[1], dim[2], dim[3]));
}

choir_tensor *choir_conv3d(choir_tensor *x, choir_tensor *filter, const choir_conv_options *o)
{
	choir_conv_options all;
	char text[2][CHI_SHAPE_TEXT];
	int pad[2];
	int64_t count = 0;

	if (!chi_convolution_begin("conv3d", 3, x, filter, o, &all))
		return NULL;
	const choir_shape *s = &x->shape, *k = &filter->shape;
	if (s->rank != 5 || k->rank != 5 ||
			!chi_convolution_axis(&all, 0, s->dim[1], k->dim[0], pad, &count))
		return chi_frame_fail_null(x->frame, CHOIR_INVALID,
				"conv3d: volumes %s and filter %s, stride %d, padding %d and dilation %d give no "
				"result; [n, d, h, w, c] and [kd, kh, kw, c / groups, out] are needed",
				chi_shape_print(s, text[0]), chi_shape_print(k, text[1]), all.stride, all.padding,
				all.dilation);
	return chi_activation_apply(all.activation, convolve(x, filter, &all, pad, count));
}
