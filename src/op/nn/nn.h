// Activations, convolutions and windows, for choir/nn.h and layers.
#pragma once

#include "choir/nn.h"
#include "op/op.h"

// The part of an activation that kernels of products apply: all of it, or CHOIR_LINEAR.
choir_activation chi_activation_fused(choir_activation activation);
choir_tensor *chi_activation_apply(choir_activation activation, choir_tensor *x);
// The gradient of z from y = activation(z) and dy, of a fused activation; dy itself if linear.
choir_tensor *chi_activation_gradient(
		choir_activation activation, choir_tensor *y, choir_tensor *dy);

// activation(x * filter + bias); bias may be NULL. In o stride, dilation and groups are
// at least 1. _1d needs rank 3.
choir_tensor *chi_convolution(choir_tensor *x, choir_tensor *filter, choir_tensor *bias,
		const choir_convolution_options *o, choir_activation activation);
choir_tensor *chi_convolution_1d(choir_tensor *x, choir_tensor *filter, choir_tensor *bias,
		const choir_convolution_options *o, choir_activation activation);
// Converts a sequence's options to an image's. False: too much padding.
bool chi_convolution_columns(
		const choir_convolution_options *o, choir_convolution_options *columns);
// Plans the position of a convolution's filter and its result's shape. CHOIR_INVALID: they do not
// fit.
choir_status chi_convolution_plan(const choir_shape *x, const choir_shape *filter,
		const choir_convolution_options *o, choir_conv2d_attributes *attributes, choir_shape *out);

// The zeros before and after an axis of a convolution or pooling, and the number of windows.
// padding is -1 for TensorFlow's SAME, else elements on each side. False: invalid arguments.
bool chi_windows(int64_t in, int64_t window, int stride, int padding, int pad[2], int64_t *out);
