// Tensors and the host: whole tensors in and out, one number, a pointer where there can be one.
// Each waits for what is queued, since nothing else says when a tensor is final.
#include "tensor/tensor.h"

#include <math.h>
#include <string.h>

choir_status chi_tensor_to_host(const choir_tensor *t, void *to)
{
	CHOIR_TRY(chi_tensor_check(t));
	const choir_status status =
			chi_stream_fetch(t->frame->stream, to, t->data, chi_tensor_bytes(t));
	return status == CHOIR_OK ? CHOIR_OK : chi_frame_record_error(t->frame);
}

choir_status chi_tensor_from_host(choir_tensor *t, const void *from)
{
	const size_t bytes = chi_tensor_bytes(t);
	if (bytes == 0)
		return CHOIR_OK;
	// The caller may change what is read as soon as this returns.
	const choir_status status = chi_stream_send(t->frame->stream, t->data, from, bytes);
	return status == CHOIR_OK ? CHOIR_OK : chi_frame_record_error(t->frame);
}

const void *choir_tensor_data(const choir_tensor *t)
{
	if (!t || chi_tensor_check(t) != CHOIR_OK)
		return NULL;
	choir_frame *f = t->frame;
	if (!chi_tensor_memory_device(t)->host_memory) {
		chi_frame_fail(f, CHOIR_UNSUPPORTED,
				"tensor: the host cannot reach the memory of %s; fetch it",
				chi_tensor_memory_device(t)->name);
		return NULL;
	}
	if (f->queued && chi_stream_wait(f->stream) != CHOIR_OK) {
		chi_frame_record_error(f);
		return NULL;
	}
	return t->data;
}

double choir_tensor_number(const choir_tensor *t)
{
	union {
		double largest;
		unsigned char bytes[sizeof(double)];
	} element;
	char text[CHI_SHAPE_TEXT];

	if (!t)
		return (double) NAN;
	if (t->is_number)
		return t->number;
	if (choir_shape_elements(&t->shape) != 1) {
		chi_frame_fail(t->frame, CHOIR_INVALID, "number: %s is not one element",
				chi_shape_print(&t->shape, text));
		return (double) NAN;
	}
	if (chi_tensor_to_host(t, element.bytes) != CHOIR_OK)
		return (double) NAN;
	return chi_dtype_load(t->dtype, element.bytes, 0);
}

choir_status choir_tensor_fetch(const choir_tensor *t, void *to, size_t bytes)
{
	char text[CHI_SHAPE_TEXT];

	if (!t)
		return chi_frame_status(NULL);
	if (bytes != chi_tensor_bytes(t))
		return chi_frame_fail(t->frame, CHOIR_INVALID, "fetch: %s %s has %zu bytes, not %zu",
				choir_dtype_name(t->dtype), chi_shape_print(&t->shape, text), chi_tensor_bytes(t),
				bytes);
	if (!to && bytes > 0)
		return chi_frame_fail(t->frame, CHOIR_INVALID, "fetch: nowhere to put it: NULL");
	return chi_tensor_to_host(t, to);
}
