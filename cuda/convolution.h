// Convolutions, and the part of them that cuDNN does.
#pragma once

#include "launch.h"

namespace choir_cuda
{

enum pass { FORWARD, GRADIENT_INPUT, GRADIENT_FILTER };

struct convolution {
	pass of;
	choir_dtype dtype;
	bool tf32;
	int64_t n, h, w, c, kh, kw, group_c, out, group_out, oh, ow, groups;
	int64_t stride, dilation, top, left, bottom, right;

	int64_t pixels() const // of y
	{
		return n * oh * ow;
	}
	int64_t patch() const
	{
		return kh * kw * group_c;
	}
};

// The scratch memory of cuDNN's way. 0: cuDNN is missing, or has no way that gives the same bits
// each time.
size_t dnn_scratch(device *d, const convolution *v);

// *done: false, and nothing was queued, where dnn_scratch gives 0. Bias and activation are not
// applied.
choir_status convolve_by_dnn(const choir_kernel_call *c, const convolution *v, bool *done);

} // namespace choir_cuda
