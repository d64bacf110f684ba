// im2col: patches of a block of output pixels are rows of [pixels, kh kw c], multiplied with the
// filter [kh kw c, out], group by group.
#include "op/plain/gemm.h"

#include <string.h>

enum { BLOCK_PIXELS = 128 };

typedef struct {
	choir_dtype dtype;
	size_t size;
	int64_t n, h, w, c, kh, kw, out, oh, ow;
	int64_t groups, group_c, group_out;
	int64_t dilation;
	int64_t pixels; // n oh ow
	int64_t patch; // kh kw group_c
	const choir_conv2d_attributes *attributes;
	char *patches; // [BLOCK_PIXELS, patch]
	void *gemm;
} convolution;

static convolution convolution_of(const choir_kernel_call *call, const choir_buffer *x,
		const choir_buffer *filter, const choir_buffer *y)
{
	const choir_conv2d_attributes *a = call->attributes;
	const int64_t *xd = x->shape.dim, *fd = filter->shape.dim, *yd = y->shape.dim;
	convolution v = {
		.dtype = x->dtype,
		.size = chi_dtype_size(x->dtype),
		.n = xd[0],
		.h = xd[1],
		.w = xd[2],
		.c = xd[3],
		.kh = fd[0],
		.kw = fd[1],
		.out = fd[3],
		.oh = yd[1],
		.ow = yd[2],
		.groups = a->groups,
		.group_c = fd[2],
		.group_out = fd[3] / a->groups,
		.dilation = a->dilation,
		.pixels = yd[0] * yd[1] * yd[2],
		.patch = fd[0] * fd[1] * fd[2],
		.attributes = a,
		.gemm = call->scratch,
	};
	v.patches = (char *) call->scratch + chi_gemm_scratch(v.dtype);
	return v;
}

static size_t scratch_of(choir_dtype dtype, const choir_shape *filter)
{
	const int64_t patch = filter->dim[0] * filter->dim[1] * filter->dim[2];
	return chi_gemm_scratch(dtype) + (size_t) (BLOCK_PIXELS * patch) * chi_dtype_size(dtype);
}

// The row of x under filter row i: kw pixels from *column on. CHOIR_NONE: outside.
static int64_t patch_row(const convolution *v, int64_t pixel, int64_t i, int64_t *column)
{
	const int64_t image = pixel / (v->oh * v->ow), in_image = pixel % (v->oh * v->ow);
	const int64_t row =
			in_image / v->ow * v->attributes->stride - v->attributes->top + i * v->dilation;
	*column = in_image % v->ow * v->attributes->stride - v->attributes->left;
	return row < 0 || row >= v->h ? CHOIR_NONE : (image * v->h + row) * v->w * v->c;
}

// [*first, *last) are inside x, without dilation.
static void clip(const convolution *v, int64_t column, int64_t *first, int64_t *last)
{
	*first = column < 0 ? -column : 0;
	*last = v->w - column < v->kw ? v->w - column : v->kw;
	if (*last < *first)
		*last = *first = 0;
}

static bool is_contiguous(const convolution *v)
{
	return v->dilation == 1 && v->groups == 1;
}

static void take_row(const convolution *v, char *to, const char *x, int64_t row, int64_t column)
{
	const size_t channels = (size_t) v->c * v->size;
	int64_t first = 0, last = 0;
	if (row != CHOIR_NONE)
		clip(v, column, &first, &last);
	memset(to, 0, (size_t) first * channels);
	if (last > first)
		memcpy(to + (size_t) first * channels,
				x + (size_t) (row + (column + first) * v->c) * v->size,
				(size_t) (last - first) * channels);
	memset(to + (size_t) last * channels, 0, (size_t) (v->kw - last) * channels);
}

// For several groups, or with dilation.
static void take_pixels(
		const convolution *v, char *to, const char *x, int64_t row, int64_t column, int64_t group)
{
	const size_t channels = (size_t) v->group_c * v->size;
	for (int64_t j = 0; j < v->kw; j++, to += channels, column += v->dilation) {
		if (row == CHOIR_NONE || column < 0 || column >= v->w)
			memset(to, 0, channels);
		else
			memcpy(to, x + (size_t) (row + column * v->c + group * v->group_c) * v->size,
					channels);
	}
}

static void take_patches(
		const convolution *v, const char *x, int64_t pixel, int64_t count, int64_t group)
{
	const size_t bytes = (size_t) (v->kw * v->group_c) * v->size;
	char *to = v->patches;
	for (int64_t p = 0; p < count; p++)
		for (int64_t i = 0; i < v->kh; i++, to += bytes) {
			int64_t column;
			const int64_t row = patch_row(v, pixel + p, i, &column);
			if (is_contiguous(v))
				take_row(v, to, x, row, column);
			else
				take_pixels(v, to, x, row, column, group);
		}
}

static void give_row(const convolution *v, char *dx, const char *from, int64_t row, int64_t column,
		int64_t group)
{
	const chi_number_loops *loops = chi_loops_best()->number[v->dtype];
	const size_t channels = (size_t) v->group_c * v->size;
	int64_t first, last;
	if (is_contiguous(v)) {
		clip(v, column, &first, &last);
		if (last > first) {
			char *to = dx + (size_t) (row + (column + first) * v->c) * v->size;
			loops->binary(CHI_ADD, to, to, from + (size_t) first * channels, (last - first) * v->c,
					false, false);
		}
		return;
	}
	for (int64_t j = 0; j < v->kw; j++, from += channels, column += v->dilation) {
		if (column >= 0 && column < v->w) {
			char *to = dx + (size_t) (row + column * v->c + group * v->group_c) * v->size;
			loops->binary(CHI_ADD, to, to, from, v->group_c, false, false);
		}
	}
}

static void give_patches(
		const convolution *v, char *dx, int64_t pixel, int64_t count, int64_t group)
{
	const size_t bytes = (size_t) (v->kw * v->group_c) * v->size;
	const char *from = v->patches;
	for (int64_t p = 0; p < count; p++)
		for (int64_t i = 0; i < v->kh; i++, from += bytes) {
			int64_t column;
			const int64_t row = patch_row(v, pixel + p, i, &column);
			if (row != CHOIR_NONE)
				give_row(v, dx, from, row, column, group);
		}
}

static int64_t pixels_from(const convolution *v, int64_t pixel)
{
	return v->pixels - pixel < BLOCK_PIXELS ? v->pixels - pixel : BLOCK_PIXELS;
}

static choir_status run_conv2d(const choir_kernel_call *call)
{
	const choir_buffer *x = &call->in[0], *filter = &call->in[1];
	const convolution v = convolution_of(call, x, filter, call->out);
	chi_gemm gemm = {
		.dtype = v.dtype,
		.n = v.group_out,
		.k = v.patch,
		.a = { v.patches, v.patch, 1 },
		.b = { .row = v.out, .column = 1 },
		.c_row = v.out,
		.scratch = v.gemm,
	};
	for (int64_t pixel = 0; pixel < v.pixels; pixel += BLOCK_PIXELS) {
		gemm.m = pixels_from(&v, pixel);
		for (int64_t g = 0; g < v.groups; g++) {
			gemm.b.data = chi_element(filter, g * v.group_out);
			gemm.c = chi_element(call->out, pixel * v.out + g * v.group_out);
			take_patches(&v, x->data, pixel, gemm.m, g);
			chi_gemm_run(&gemm);
		}
		chi_finish(v.dtype, chi_element(call->out, pixel * v.out), gemm.m, v.out,
				call->n > 2 ? call->in[2].data : NULL, v.attributes->activation);
	}
	return CHOIR_OK;
}

static choir_status run_gradient_input(const choir_kernel_call *call)
{
	const choir_buffer *filter = &call->in[0], *dy = &call->in[1];
	const convolution v = convolution_of(call, call->out, filter, dy);
	chi_gemm gemm = {
		.dtype = v.dtype,
		.n = v.patch,
		.k = v.group_out,
		.a = { .row = v.out, .column = 1 },
		.b = { .row = 1, .column = v.out },
		.c = v.patches,
		.c_row = v.patch,
		.scratch = v.gemm,
	};
	if (chi_elements(call->out) > 0)
		memset(call->out->data, 0, (size_t) chi_elements(call->out) * v.size);
	for (int64_t pixel = 0; pixel < v.pixels; pixel += BLOCK_PIXELS) {
		gemm.m = pixels_from(&v, pixel);
		for (int64_t g = 0; g < v.groups; g++) {
			gemm.a.data = chi_element(dy, pixel * v.out + g * v.group_out);
			gemm.b.data = chi_element(filter, g * v.group_out);
			chi_gemm_run(&gemm);
			give_patches(&v, call->out->data, pixel, gemm.m, g);
		}
	}
	return CHOIR_OK;
}

static choir_status run_gradient_filter(const choir_kernel_call *call)
{
	const choir_buffer *x = &call->in[0], *dy = &call->in[1];
	const convolution v = convolution_of(call, x, call->out, dy);
	chi_gemm gemm = {
		.dtype = v.dtype,
		.m = v.patch,
		.n = v.group_out,
		.a = { v.patches, 1, v.patch },
		.b = { .row = v.out, .column = 1 },
		.c_row = v.out,
		.scratch = v.gemm,
	};
	for (int64_t pixel = 0; pixel < v.pixels || pixel == 0; pixel += BLOCK_PIXELS) {
		gemm.k = pixels_from(&v, pixel);
		gemm.accumulate = pixel > 0;
		for (int64_t g = 0; g < v.groups; g++) {
			gemm.b.data = chi_element(dy, pixel * v.out + g * v.group_out);
			gemm.c = chi_element(call->out, g * v.group_out);
			take_patches(&v, x->data, pixel, gemm.k, g);
			chi_gemm_run(&gemm);
		}
	}
	return CHOIR_OK;
}

static size_t scratch(const choir_kernel_call *call)
{
	return scratch_of(call->in[0].dtype, &call->in[1].shape);
}

static size_t gradient_input_scratch(const choir_kernel_call *call)
{
	return scratch_of(call->in[0].dtype, &call->in[0].shape);
}

static size_t gradient_filter_scratch(const choir_kernel_call *call)
{
	return scratch_of(call->in[0].dtype, &call->out->shape);
}

static const chi_kernel_spec specs[] = {
	{ "conv2d", CHI_REAL, sizeof(choir_conv2d_attributes), run_conv2d, scratch, NULL, NULL },
	{ "conv2d_gradient_input", CHI_REAL, sizeof(choir_conv2d_attributes), run_gradient_input,
			gradient_input_scratch, NULL, NULL },
	{ "conv2d_gradient_filter", CHI_REAL, sizeof(choir_conv2d_attributes), run_gradient_filter,
			gradient_filter_scratch, NULL, NULL },
};
const chi_kernel_list chi_plain_conv2d = { specs, sizeof specs / sizeof specs[0] };
