// Slices, concatenation, flip and transposition move bytes, where the dtype does not matter.
#include "op/plain/plain.h"

#include <string.h>

// Rows are contiguous in the part only.
typedef struct {
	size_t rows;
	size_t whole, part;
	size_t first;
} subset;

static subset subset_of(
		const choir_buffer *whole, const choir_buffer *part, int axis, int64_t first)
{
	subset c = { .rows = 1 };
	size_t inner = chi_dtype_size(whole->dtype);
	for (int i = 0; i < axis; i++)
		c.rows *= (size_t) whole->shape.dim[i];
	for (int i = axis + 1; i < whole->shape.rank; i++)
		inner *= (size_t) whole->shape.dim[i];
	c.whole = (size_t) whole->shape.dim[axis] * inner;
	c.part = (size_t) part->shape.dim[axis] * inner;
	c.first = (size_t) first * inner;
	return c;
}

static choir_status run_slice(const choir_kernel_call *call)
{
	const choir_slice_attributes *a = call->attributes;
	const subset c = subset_of(&call->in[0], call->out, a->axis, a->first);
	const char *from = (const char *) call->in[0].data + c.first;
	char *to = call->out->data;
	for (size_t i = 0; i < c.rows; i++, from += c.whole, to += c.part)
		memcpy(to, from, c.part);
	return CHOIR_OK;
}

static choir_status run_slice_gradient(const choir_kernel_call *call)
{
	const choir_slice_attributes *a = call->attributes;
	const subset c = subset_of(call->out, &call->in[0], a->axis, a->first);
	const char *from = call->in[0].data;
	char *to = call->out->data;
	for (size_t i = 0; i < c.rows; i++, from += c.part, to += c.whole) {
		memset(to, 0, c.first);
		memcpy(to + c.first, from, c.part);
		memset(to + c.first + c.part, 0, c.whole - c.first - c.part);
	}
	return CHOIR_OK;
}

static choir_status run_concat(const choir_kernel_call *call)
{
	const choir_slice_attributes *a = call->attributes;
	int64_t first = 0;
	for (size_t k = 0; k < call->n; k++) {
		const choir_buffer *in = &call->in[k];
		const subset c = subset_of(call->out, in, a->axis, first);
		const char *from = in->data;
		char *to = (char *) call->out->data + c.first;
		for (size_t i = 0; i < c.rows && c.part > 0; i++, from += c.part, to += c.whole)
			memcpy(to, from, c.part);
		first += in->shape.dim[a->axis];
	}
	return CHOIR_OK;
}

static choir_status run_flip(const choir_kernel_call *call)
{
	const choir_flip_attributes *a = call->attributes;
	const choir_buffer *x = &call->in[0];
	const subset c = subset_of(x, x, a->axis, 0);
	const size_t n = (size_t) x->shape.dim[a->axis], part = c.whole / n;
	for (size_t row = 0; row < c.rows; row++) {
		const char *from = (const char *) x->data + row * c.whole;
		char *to = (char *) call->out->data + row * c.whole;
		for (size_t i = 0; i < n; i++)
			memcpy(to + i * part, from + (n - 1 - i) * part, part);
	}
	return CHOIR_OK;
}

static void take(char *to, const char *from, int64_t n, int64_t stride, size_t size)
{
	if (stride == 1) {
		memcpy(to, from, (size_t) n * size);
	} else if (size == 4) {
		const uint32_t *x = (const uint32_t *) (const void *) from;
		uint32_t *out = (uint32_t *) (void *) to;
		for (int64_t i = 0; i < n; i++)
			out[i] = x[i * stride];
	} else {
		for (int64_t i = 0; i < n; i++)
			memcpy(to + (size_t) i * size, from + (size_t) (i * stride) * size, size);
	}
}

static choir_status run_transpose(const choir_kernel_call *call)
{
	const choir_transpose_attributes *a = call->attributes;
	const choir_shape *in = &call->in[0].shape, *out = &call->out->shape;
	const size_t size = chi_dtype_size(call->out->dtype);
	const int last = out->rank - 1;
	int64_t packed[CHOIR_MAX_RANK], stride[CHOIR_MAX_RANK] = { 0 }, index[CHOIR_MAX_RANK] = { 0 };
	int64_t at = 0, step = 1;
	for (int i = last; i >= 0; i--) {
		packed[i] = step;
		step *= in->dim[i];
	}
	for (int i = 0; i <= last; i++)
		stride[i] = packed[a->axes[i]];
	const int64_t run = out->dim[last], elements = chi_elements(call->out);
	for (int64_t done = 0; done < elements; done += run) {
		take(chi_element(call->out, done), chi_element(&call->in[0], at), run, stride[last], size);
		for (int i = last - 1; i >= 0; i--) {
			at += stride[i];
			if (++index[i] < out->dim[i])
				break;
			at -= stride[i] * out->dim[i];
			index[i] = 0;
		}
	}
	return CHOIR_OK;
}

static const chi_kernel_spec specs[] = {
	{ "slice", CHI_ALL, sizeof(choir_slice_attributes), run_slice, NULL, NULL, NULL },
	{ "slice_gradient", CHI_REAL, sizeof(choir_slice_attributes), run_slice_gradient, NULL, NULL,
			NULL },
	{ "concat", CHI_ALL, sizeof(choir_slice_attributes), run_concat, NULL, NULL, NULL },
	{ "flip", CHI_ALL, sizeof(choir_flip_attributes), run_flip, NULL, NULL, NULL },
	{ "transpose", CHI_ALL, sizeof(choir_transpose_attributes), run_transpose, NULL, NULL, NULL },
};
const chi_kernel_list chi_plain_slice_transpose = { specs, sizeof specs / sizeof specs[0] };
