// For choir/nn.h and layers.
#pragma once

#include "choir/nn.h"
#include "op/op.h"

// activation if kernels of products fuse it, else CHOIR_LINEAR.
choir_activation chi_activation_fused(choir_activation activation);
choir_status chi_activation_check(choir_activation activation);
choir_tensor *chi_activation_apply(choir_activation activation, choir_tensor *x);
// The gradient by z, from y = activation(z) and dy.
choir_tensor *chi_activation_gradient(
		choir_activation activation, choir_tensor *y, choir_tensor *dy);

// The last axis keeps one element.
choir_tensor *chi_sum_rows(choir_tensor *x);

// Also sets defaults. CHOIR_INVALID, without the caller's name.
choir_status chi_convolution_options(
		const choir_conv_options *o, int axes, choir_conv_options *all);
// o is complete; bias may be NULL. conv1d needs rank 3.
choir_tensor *chi_conv2d(
		choir_tensor *x, choir_tensor *filter, choir_tensor *bias, const choir_conv_options *o);
choir_tensor *chi_conv1d(
		choir_tensor *x, choir_tensor *filter, choir_tensor *bias, const choir_conv_options *o);
// A sequence's options as an image's. False: too much padding.
bool chi_convolution_columns(const choir_conv_options *o, choir_conv_options *columns);
// The zeros at both ends and the number of windows along one axis. False: the filter does not fit.
bool chi_convolution_axis(const choir_conv_options *o, int axis, int64_t in, int64_t filter,
		int pad[2], int64_t *out);
// For the slices of a volume: axes 1 and 2 become 0 and 1. Without the activation.
choir_conv_options chi_convolution_of_images(const choir_conv_options *o);
// Gives the gradient by the input [result].
choir_tensor *chi_conv2d_gradient_input(choir_tensor *filter, choir_tensor *dy,
		const choir_conv2d_attributes *a, const choir_shape *result);
// False: recorded in the operands' frame.
bool chi_convolution_begin(const char *name, int axes, choir_tensor *x, choir_tensor *filter,
		const choir_conv_options *o, choir_conv_options *all);
// The result's shape. CHOIR_INVALID, without the caller's name.
choir_status chi_convolution_plan(const choir_shape *x, const choir_shape *filter,
		const choir_conv_options *o, choir_conv2d_attributes *attributes, choir_shape *out);

// As chi_convolution_axis. padding: -1 for TensorFlow's SAME, else on each side.
bool chi_windows(int64_t in, int64_t window, int stride, int padding, int pad[2], int64_t *out);

// [n, t, ..] becomes [n t, ..]. NULL gives NULL.
choir_tensor *chi_time_steps(choir_tensor *x);
