// What the operations of choir/nn.h share with each other and with layers.
#pragma once

#include "choir/nn.h"
#include "op/op.h"

// The gradient of z from y = activate(z) and dy; dy itself where activate is linear.
choir_tensor *chi_activation_gradient(choir_activate activate, choir_tensor *y, choir_tensor *dy);

// A convolution as layers fuse it, of images or (1d) sequences. o has no zeros: stride, dilation
// and groups are resolved. bias may be NULL. _1d needs x and filter of rank 3.
choir_tensor *chi_convolution(choir_tensor *x, choir_tensor *filter, choir_tensor *bias,
		const choir_convolution_options *o, choir_activate activate);
choir_tensor *chi_convolution_1d(choir_tensor *x, choir_tensor *filter, choir_tensor *bias,
		const choir_convolution_options *o, choir_activate activate);
// The same options for a sequence that is seen as an image of one row. False: too many zeros.
bool chi_convolution_columns(
		const choir_convolution_options *o, choir_convolution_options *columns);
// Where the filter lies on x and what comes out. CHOIR_INVALID: they do not fit.
choir_status chi_convolution_plan(const choir_shape *x, const choir_shape *filter,
		const choir_convolution_options *o, choir_conv2d_attributes *attributes, choir_shape *out);

// The zeros before and behind one axis of images, and the windows along it. padding: -1 as
// TensorFlow's SAME, else elements a side. False: size, stride or padding cannot be.
bool chi_windows(int64_t in, int64_t window, int stride, int padding, int pad[2], int64_t *out);
