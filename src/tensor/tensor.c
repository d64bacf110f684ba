// Handles: how tensors come to be, are looked at, checked and given back. A handle lies in its
// frame's arena and holds a reference to a counted buffer; nothing here needs a kernel (that is
// op/create.c).
#include "tensor/tensor.h"

#include <math.h>
#include <string.h>

// A zeroed handle on b, whose reference it takes over; on failure b is released.
static choir_tensor *handle(
		choir_frame *f, chi_buffer *b, void *data, choir_dtype dtype, const choir_shape *shape)
{
	const size_t mark = chi_arena_mark(&f->arena);
	choir_tensor *t = chi_arena_alloc(&f->arena, sizeof(*t));
	if (!t) {
		chi_buffer_release(b);
		chi_frame_record_error(f);
		return NULL;
	}
	t->frame = f;
	t->buffer = b;
	t->data = data;
	t->shape = *shape;
	t->dtype = dtype;
	t->count = CHOIR_NONE;
	t->mark = mark;
	t->next = f->tensors;
	f->tensors = t;
	return t;
}

choir_tensor *chi_tensor_on(choir_frame *f, chi_buffer *buffer, void *data, choir_dtype dtype,
		const choir_shape *shape)
{
	chi_buffer_retain(buffer);
	return handle(f, buffer, data, dtype, shape);
}

// The bytes of a shape that somebody asked for, or a failure in f.
static choir_status measure(
		choir_frame *f, choir_dtype dtype, const choir_shape *shape, size_t *bytes)
{
	char text[CHI_SHAPE_TEXT];

	if (chi_dtype_size(dtype) == 0)
		return chi_frame_fail(f, CHOIR_INVALID, "tensor: dtype %d is unknown", (int) dtype);
	if (!chi_shape_bytes(shape, dtype, bytes))
		return chi_frame_fail(f, CHOIR_INVALID,
				"tensor: shape %s of %s cannot be: at most %d "
				"dimensions, none negative, and a size that fits",
				chi_shape_print(shape, text), choir_dtype_name(dtype), CHOIR_MAX_RANK);
	return CHOIR_OK;
}

choir_tensor *chi_tensor_new(choir_frame *f, choir_dtype dtype, const choir_shape *shape)
{
	size_t bytes;
	if (measure(f, dtype, shape, &bytes) != CHOIR_OK)
		return NULL;
	chi_buffer *b = chi_frame_buffer(f, bytes);
	if (!b) {
		chi_frame_record_error(f);
		return NULL;
	}
	return handle(f, b, b->memory, dtype, shape);
}

choir_tensor *choir_constant(
		choir_frame *f, choir_dtype dtype, choir_shape shape, const void *data)
{
	if (!f)
		return chi_frame_null_argument(NULL, "constant: frame");
	choir_tensor *t = chi_tensor_new(f, dtype, &shape);
	if (!t)
		return NULL;
	if (!data && chi_tensor_bytes(t) > 0)
		return chi_frame_fail_null(f, CHOIR_INVALID, "constant: data is NULL");
	return chi_tensor_from_host(t, data) == CHOIR_OK ? t : NULL;
}

choir_tensor *choir_borrow(choir_frame *f, choir_dtype dtype, choir_shape shape, const void *data)
{
	size_t bytes;

	if (!f)
		return chi_frame_null_argument(NULL, "borrow: frame");
	if (!f->device->host_memory)
		return choir_constant(f, dtype, shape, data);
	if (measure(f, dtype, &shape, &bytes) != CHOIR_OK)
		return NULL;
	if (bytes == 0)
		return chi_tensor_new(f, dtype, &shape);
	if (!data)
		return chi_frame_fail_null(f, CHOIR_INVALID, "borrow: data is NULL");
	// Nothing writes through a borrowed tensor, whatever the type says.
	void *memory = (void *) (uintptr_t) data;
	chi_buffer *b = chi_buffer_wrap(f->device, memory, bytes, NULL, NULL);
	if (!b) {
		chi_frame_record_error(f);
		return NULL;
	}
	choir_tensor *t = handle(f, b, memory, dtype, &shape);
	if (t)
		t->borrowed = true;
	return t;
}

// Held in f64, which no whole number below 2^53 overflows, until an operation says which dtype.
choir_tensor *choir_number(choir_frame *f, double value)
{
	if (!f)
		return chi_frame_null_argument(NULL, "number: frame");
	choir_tensor *t = chi_tensor_new(f, CHOIR_F64, &CHOIR_SCALAR);
	if (!t)
		return NULL;
	t->is_number = true;
	t->number = value;
	// The handle lives until the frame has waited for its stream.
	if (chi_stream_copy(f->stream, t->data, &t->number, sizeof(t->number)) != CHOIR_OK) {
		chi_frame_record_error(f);
		return NULL;
	}
	return t;
}

const choir_shape *choir_tensor_shape(const choir_tensor *t)
{
	static const choir_shape none = { 0, { 0 } };
	return t ? &t->shape : &none;
}

choir_dtype choir_tensor_dtype(const choir_tensor *t)
{
	return t ? t->dtype : CHOIR_F32;
}

choir_frame *choir_tensor_frame(const choir_tensor *t)
{
	return t ? t->frame : NULL;
}

choir_device *choir_tensor_device(const choir_tensor *t)
{
	return t ? chi_tensor_memory_device(t) : NULL;
}

size_t chi_tensor_bytes(const choir_tensor *t)
{
	size_t bytes = 0;
	chi_shape_bytes(&t->shape, t->dtype, &bytes); // it was checked when t was made
	return bytes;
}

choir_status chi_tensor_check(const choir_tensor *t)
{
	char values[CHI_SHAPE_TEXT], whole[CHI_SHAPE_TEXT];

	CHOIR_TRY(chi_tensor_check_any(t));
	if (!chi_is_slices(t))
		return CHOIR_OK;
	const choir_shape shape = chi_dense_shape(t);
	return chi_frame_fail(t->frame, CHOIR_UNSUPPORTED,
			"%s %s are slices of %s; choir_to_dense makes them a tensor",
			choir_dtype_name(t->dtype), chi_shape_print(&t->shape, values),
			chi_shape_print(&shape, whole));
}

choir_status chi_tensor_check_any(const choir_tensor *t)
{
	char text[CHI_SHAPE_TEXT];

	if (!t->buffer)
		return chi_frame_fail(t->frame, CHOIR_STATE,
				"tensor %s %s is dead: what lies between the "
				"sources and y dies on the tape's way back",
				choir_dtype_name(t->dtype), chi_shape_print(&t->shape, text));
	if (!t->source)
		return CHOIR_OK;
	if (chi_source_current(t->source, t->version))
		return CHOIR_OK;
	return chi_frame_fail(t->frame, CHOIR_STATE,
			t->version == CHI_RETIRED
					? "%s: its update was asked for since this tensor was read from it; read it "
					  "again"
					: "%s: has changed since this tensor was read from it; read it again",
			t->source->name);
}

// On a queued device memory that others hold as well cannot be handed on by whoever lets go last,
// since they do not know what is queued here: so this reference stays until the frame has waited.
void chi_tensor_drop(choir_tensor *t)
{
	if (!t || !t->buffer)
		return;
	chi_buffer *b = t->buffer;
	t->buffer = NULL;
	t->data = NULL;
	// Indices of slices are never written again, but queued work may still read them.
	if (t->slices.buffer && !t->frame->queued) {
		chi_buffer_release(t->slices.buffer);
		t->slices.buffer = NULL;
	}
	if (t->frame->queued && (b->foreign || chi_atomic32_load(&b->references) > 1))
		t->held = b;
	else
		chi_frame_give_back(t->frame, b);
}
