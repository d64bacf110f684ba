// Convolutions as matrix products: the patches of a block of output pixels become the rows of a
// matrix [pixels, kh kw c], which the filter, seen as [kh kw c, out], is multiplied with.
#include "op/plain/plain.h"

#include <string.h>

enum { BLOCK_PIXELS = 128 }; // of one matrix of patches

typedef struct {
	choir_dtype dtype;
	size_t size; // of an element
	int64_t n, h, w, c, kh, kw, out, oh, ow;
	int64_t pixels; // n oh ow
	int64_t patch; // kh kw c
	const choir_conv2d_attributes *attributes;
	char *patches; // [BLOCK_PIXELS, patch]
	void *product; // scratch of the product
} convolution;

static convolution convolution_of(const choir_kernel_call *call, const choir_buffer *x,
		const choir_buffer *filter, const choir_buffer *y)
{
	const int64_t *xd = x->shape.dim, *fd = filter->shape.dim, *yd = y->shape.dim;
	convolution v = {
		.dtype = x->dtype,
		.size = chi_dtype_size(x->dtype),
		.n = xd[0], .h = xd[1], .w = xd[2], .c = xd[3],
		.kh = fd[0], .kw = fd[1], .out = fd[3],
		.oh = yd[1], .ow = yd[2],
		.pixels = yd[0] * yd[1] * yd[2],
		.patch = fd[0] * fd[1] * fd[2],
		.attributes = call->attributes,
		.product = call->scratch,
	};
	v.patches = (char *) call->scratch + chi_product_scratch(v.dtype);
	return v;
}

static size_t scratch_of(choir_dtype dtype, const choir_shape *filter)
{
	const int64_t patch = filter->dim[0] * filter->dim[1] * filter->dim[2];
	return chi_product_scratch(dtype) + (size_t) (BLOCK_PIXELS * patch) * chi_dtype_size(dtype);
}

// Where row i (of the filter) of an output pixel's patch lies in x: kw pixels from *column on in
// the row whose first element is returned; CHOIR_NONE: outside.
static int64_t patch_row(const convolution *v, int64_t pixel, int64_t i, int64_t *column)
{
	const int64_t image = pixel / (v->oh * v->ow), in_image = pixel % (v->oh * v->ow);
	const int64_t row = in_image / v->ow * v->attributes->stride - v->attributes->top + i;
	*column = in_image % v->ow * v->attributes->stride - v->attributes->left;
	return row < 0 || row >= v->h ? CHOIR_NONE : (image * v->h + row) * v->w * v->c;
}

// The part [*first, *last) of kw pixels from column on that lies in x.
static void clip(const convolution *v, int64_t column, int64_t *first, int64_t *last)
{
	*first = column < 0 ? -column : 0;
	*last = v->w - column < v->kw ? v->w - column : v->kw;
	if (*last < *first)
		*last = *first = 0;
}

// Copies the patches of count pixels from x, zeros where they reach beyond it.
static void take_patches(const convolution *v, const char *x, int64_t pixel, int64_t count)
{
	const size_t channels = (size_t) v->c * v->size;
	char *to = v->patches;
	for (int64_t p = 0; p < count; p++)
		for (int64_t i = 0; i < v->kh; i++, to += (size_t) v->kw * channels) {
			int64_t column, first = 0, last = 0;
			const int64_t row = patch_row(v, pixel + p, i, &column);
			if (row != CHOIR_NONE)
				clip(v, column, &first, &last);
			memset(to, 0, (size_t) first * channels);
			if (last > first)
				memcpy(to + (size_t) first * channels,
						x + (size_t) (row + (column + first) * v->c) * v->size,
						(size_t) (last - first) * channels);
			memset(to + (size_t) last * channels, 0, (size_t) (v->kw - last) * channels);
		}
}

// Adds the patches of count pixels to dx.
static void give_patches(const convolution *v, char *dx, int64_t pixel, int64_t count)
{
	const chi_number_loops *loops = chi_loops_best()->number[v->dtype];
	const size_t channels = (size_t) v->c * v->size;
	const char *from = v->patches;
	for (int64_t p = 0; p < count; p++)
		for (int64_t i = 0; i < v->kh; i++, from += (size_t) v->kw * channels) {
			int64_t column, first, last;
			const int64_t row = patch_row(v, pixel + p, i, &column);
			if (row == CHOIR_NONE)
				continue;
			clip(v, column, &first, &last);
			char *to = dx + (size_t) (row + (column + first) * v->c) * v->size;
			if (last > first)
				loops->binary(CHI_ADD, to, to, from + (size_t) first * channels,
						(last - first) * v->c, false, false);
		}
}

static choir_status run_conv2d(const choir_kernel_call *call)
{
	const choir_buffer *x = &call->in[0], *filter = &call->in[1];
	const convolution v = convolution_of(call, x, filter, call->out);
	chi_product product = {
		.dtype = v.dtype, .n = v.out, .k = v.patch,
		.a = v.patches, .a_row = v.patch, .a_column = 1,
		.b = filter->data, .b_row = v.out, .b_column = 1,
		.c_row = v.out, .scratch = v.product,
	};
	for (int64_t pixel = 0; pixel < v.pixels; pixel += BLOCK_PIXELS) {
		product.m = v.pixels - pixel < BLOCK_PIXELS ? v.pixels - pixel : BLOCK_PIXELS;
		product.c = chi_element(call->out, pixel * v.out);
		take_patches(&v, x->data, pixel, product.m);
		chi_product_run(&product);
		chi_finish(v.dtype, product.c, product.m, v.out, call->n > 2 ? call->in[2].data : NULL,
				v.attributes->activate);
	}
	return CHOIR_OK;
}

static choir_status run_gradient_input(const choir_kernel_call *call)
{
	const choir_buffer *filter = &call->in[0], *dy = &call->in[1];
	const convolution v = convolution_of(call, call->out, filter, dy);
	chi_product product = {
		.dtype = v.dtype, .n = v.patch, .k = v.out,
		.a_row = v.out, .a_column = 1,
		.b = filter->data, .b_row = 1, .b_column = v.out,
		.c = v.patches, .c_row = v.patch, .scratch = v.product,
	};
	if (chi_elements(call->out) > 0)
		memset(call->out->data, 0, (size_t) chi_elements(call->out) * v.size);
	for (int64_t pixel = 0; pixel < v.pixels; pixel += BLOCK_PIXELS) {
		product.m = v.pixels - pixel < BLOCK_PIXELS ? v.pixels - pixel : BLOCK_PIXELS;
		product.a = chi_element(dy, pixel * v.out);
		chi_product_run(&product);
		give_patches(&v, call->out->data, pixel, product.m);
	}
	return CHOIR_OK;
}

static choir_status run_gradient_filter(const choir_kernel_call *call)
{
	const choir_buffer *x = &call->in[0], *dy = &call->in[1];
	const convolution v = convolution_of(call, x, call->out, dy);
	chi_product product = {
		.dtype = v.dtype, .m = v.patch, .n = v.out,
		.a = v.patches, .a_row = 1, .a_column = v.patch,
		.b_row = v.out, .b_column = 1,
		.c = call->out->data, .c_row = v.out, .scratch = v.product,
	};
	for (int64_t pixel = 0; pixel < v.pixels || pixel == 0; pixel += BLOCK_PIXELS) {
		product.k = v.pixels - pixel < BLOCK_PIXELS ? v.pixels - pixel : BLOCK_PIXELS;
		product.b = chi_element(dy, pixel * v.out);
		product.accumulate = pixel > 0;
		take_patches(&v, x->data, pixel, product.k);
		chi_product_run(&product);
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
