// Convolutions of images [n, h, w, c], by cuDNN or as products. A filter of one pixel is a product
// of matrices. Others without cuDNN, or for which it has no algorithm with the same bits each
// time, are products whose operands are looked up in the images (implicit GEMM).
#include "convolution.h"
#include "matmul.h"

namespace choir_cuda
{

static convolution convolution_of(const choir_kernel_call *call, pass of)
{
	const auto *a = attributes<choir_conv2d_attributes>(call);
	const choir_shape *x = &(of == GRADIENT_INPUT ? call->out : &call->in[0])->shape;
	const choir_shape *y = &(of == FORWARD ? call->out : &call->in[1])->shape;
	const choir_buffer *filter = of == FORWARD ? &call->in[1]
			: of == GRADIENT_INPUT			   ? &call->in[0]
											   : call->out;
	const int64_t *k = filter->shape.dim;
	convolution v = {};
	v.of = of;
	v.dtype = call->in[0].dtype;
	v.tf32 = is_in_tf32(call);
	v.n = x->dim[0], v.h = x->dim[1], v.w = x->dim[2], v.c = x->dim[3];
	v.kh = k[0], v.kw = k[1], v.group_c = k[2], v.out = k[3];
	v.oh = y->dim[1], v.ow = y->dim[2];
	v.groups = a->groups;
	v.group_out = v.out / a->groups;
	v.stride = a->stride;
	v.dilation = a->dilation;
	v.top = a->top, v.left = a->left, v.bottom = a->bottom, v.right = a->right;
	return v;
}

// Element p of the patch of x under the filter, at a pixel of y.
template <class T> struct patches {
	using reads_only = void;
	const T *x;
	convolution v;
	__device__ real<T> operator()(int64_t group, int64_t pixel, int64_t p) const
	{
		const int64_t i = p / v.group_c / v.kw, j = p / v.group_c % v.kw;
		const int64_t row = pixel / v.ow % v.oh * v.stride - v.top + i * v.dilation;
		const int64_t column = pixel % v.ow * v.stride - v.left + j * v.dilation;
		if (row < 0 || row >= v.h || column < 0 || column >= v.w)
			return 0;
		const int64_t at = (pixel / v.ow / v.oh * v.h + row) * v.w + column;
		return (real<T>) x[at * v.c + group * v.group_c + p % v.group_c];
	}
};

template <class T> struct turned_patches {
	using reads_only = void;
	patches<T> own;
	__device__ real<T> operator()(int64_t group, int64_t p, int64_t pixel) const
	{
		return own(group, pixel, p);
	}
};

// The element of dy that element q of [kh, kw, group_out] multiplies, at a pixel of x.
template <class T> struct back_patches {
	using reads_only = void;
	const T *dy;
	convolution v;
	__device__ real<T> operator()(int64_t group, int64_t pixel, int64_t q) const
	{
		const int64_t i = q / v.group_out / v.kw, j = q / v.group_out % v.kw;
		const int64_t row = pixel / v.w % v.h + v.top - i * v.dilation;
		const int64_t column = pixel % v.w + v.left - j * v.dilation;
		const int64_t r = row / v.stride, s = column / v.stride;
		if (row < 0 || column < 0 || row % v.stride != 0 || column % v.stride != 0 || r >= v.oh ||
				s >= v.ow)
			return 0;
		const int64_t at = (pixel / v.w / v.h * v.oh + r) * v.ow + s;
		return (real<T>) dy[at * v.out + group * v.group_out + q % v.group_out];
	}
};

template <class T> struct back_filters {
	using reads_only = void;
	const T *filter;
	convolution v;
	__device__ real<T> operator()(int64_t group, int64_t q, int64_t channel) const
	{
		const int64_t at = q / v.group_out * v.group_c + channel;
		return (real<T>) filter[at * v.out + group * v.group_out + q % v.group_out];
	}
};

struct slow_convolution {
	template <class T> static choir_status run(const choir_kernel_call *c, const convolution *of)
	{
		typedef real<T> V;
		const convolution &v = *of;
		const T *first = given<T>(c, 0), *second = given<T>(c, 1);
		const output<T> out = output_of<T>(*c->out);
		const matrix<T> by = { second, v.out, 1, v.group_out };
		const result<T> to = { out, v.out, v.group_out, 1 };
		const patches<T> x = { first, v };
		switch (v.of) {
		case FORWARD:
			return launch_tiles<V>(c, x, by, to, v.pixels(), v.group_out, v.patch(), v.groups);
		case GRADIENT_INPUT:
			return launch_tiles<V>(c, back_patches<T>{ second, v }, back_filters<T>{ first, v },
					result<T>{ out, v.c, v.group_c, 1 }, v.n * v.h * v.w, v.group_c,
					v.kh * v.kw * v.group_out, v.groups);
		default:
			return launch_tiles<V>(c, turned_patches<T>{ x }, by, to, v.patch(), v.group_out,
					v.pixels(), v.groups);
		}
	}
};

static bool is_product(const convolution &v)
{
	return v.kh == 1 && v.kw == 1 && v.stride == 1 && v.groups == 1 &&
			v.top + v.left + v.bottom + v.right == 0;
}

static choir_status convolve_by_product(const choir_kernel_call *c, const convolution &v)
{
	product p = packed_product(v.dtype, v.pixels(), v.out, v.c);
	if (v.of == GRADIENT_INPUT) {
		p = packed_product(v.dtype, v.pixels(), v.c, v.out);
		p.b_transposed = true;
		p.b_row = v.out;
	} else if (v.of == GRADIENT_FILTER) {
		p = packed_product(v.dtype, v.c, v.out, v.pixels());
		p.a_transposed = true;
		p.a_row = v.c;
	}
	p.out_dtype = c->out->dtype;
	p.a = c->in[v.of == GRADIENT_INPUT ? 1 : 0].data;
	p.b = c->in[v.of == GRADIENT_INPUT ? 0 : 1].data;
	p.out = c->out->data;
	return multiply(c, &p, c->scratch);
}

static choir_status convolve(const choir_kernel_call *c, pass of)
{
	const convolution v = convolution_of(c, of);
	bool done = false;
	if (is_product(v))
		return convolve_by_product(c, v);
	CHOIR_TRY(convolve_by_dnn(c, &v, &done));
	return done ? CHOIR_OK : for_float<slow_convolution>(v.dtype, c, &v);
}

template <pass of> static size_t scratch(const choir_kernel_call *c)
{
	const convolution v = convolution_of(c, of);
	return is_product(v) ? product_workspace() : dnn_scratch(device_of(c->device), &v);
}

template <pass of> static choir_status run(const choir_kernel_call *c)
{
	return convolve(c, of);
}

static choir_status run_forward(const choir_kernel_call *c)
{
	const choir_activation activation = attributes<choir_conv2d_attributes>(c)->activation;
	CHOIR_TRY(convolve(c, FORWARD));
	return finish(c, c->n > 2 ? &c->in[2] : NULL, c->in[1].shape.dim[3], activation);
}

static const kernel kernels[] = {
	{ "conv2d", FLOATS, run_forward, scratch<FORWARD>, score_product },
	{ "conv2d_gradient_input", FLOATS, run<GRADIENT_INPUT>, scratch<GRADIENT_INPUT>,
			score_product },
	{ "conv2d_gradient_filter", FLOATS, run<GRADIENT_FILTER>, scratch<GRADIENT_FILTER>,
			score_product },
	{ "conv2d", F32, run_forward, scratch<FORWARD>, score_product, NULL, true },
	{ "conv2d_gradient_input", F32, run<GRADIENT_INPUT>, scratch<GRADIENT_INPUT>, score_product,
			NULL, true },
	{ "conv2d_gradient_filter", F32, run<GRADIENT_FILTER>, scratch<GRADIENT_FILTER>, score_product,
			NULL, true },
};
const kernel_list convolution_kernels = list_of(kernels);

} // namespace choir_cuda
