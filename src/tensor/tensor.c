// Every handle refers to its buffer, so views and their origin may be freed in any order. A view
// of another frame's tensor first waits for work queued there, or is a copy.
#include "tensor/tensor.h"

#include "base/size.h"

#include <inttypes.h>
#include <math.h>

// Takes over b's reference, also on failure.
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

static choir_status measure(
		choir_frame *f, choir_dtype dtype, const choir_shape *shape, size_t *bytes)
{
	char text[CHI_SHAPE_TEXT];

	if (chi_dtype_size(dtype) == 0)
		return chi_frame_fail(f, CHOIR_INVALID, "tensor: dtype %d is unknown", (int) dtype);
	if (!chi_shape_bytes(shape, dtype, bytes))
		return chi_frame_fail(f, CHOIR_INVALID,
				"tensor: shape %s of %s is invalid; at most %d dimensions, "
				"none of them negative, and a size that fits are needed",
				chi_shape_print(shape, text), choir_dtype_name(dtype), CHOIR_MAX_RANK);
	return CHOIR_OK;
}

choir_tensor *chi_tensor_new(choir_frame *f, choir_dtype dtype, const choir_shape *shape)
{
	size_t bytes;
	if (measure(f, dtype, shape, &bytes) != CHOIR_OK)
		return NULL;
	chi_buffer *b = chi_frame_buffer(f, bytes);
	if (!b)
		return chi_frame_record_null(f);
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
	// Nothing writes to borrowed memory.
	void *memory = (void *) (uintptr_t) data;
	chi_buffer *b = chi_buffer_wrap(f->device, memory, bytes, NULL, NULL);
	if (!b)
		return chi_frame_record_null(f);
	choir_tensor *t = handle(f, b, memory, dtype, &shape);
	if (t)
		t->borrowed = true;
	return t;
}

// Until an operation determines the dtype.
choir_tensor *choir_number(choir_frame *f, double value)
{
	if (!f)
		return chi_frame_null_argument(NULL, "number: frame");
	choir_tensor *t = chi_tensor_new(f, CHOIR_F64, &CHOIR_SCALAR);
	if (!t)
		return NULL;
	t->is_number = true;
	t->number = value;
	// &t->number is valid until the frame has waited for its stream.
	if (chi_stream_copy(f->stream, t->data, &t->number, sizeof(t->number)) != CHOIR_OK)
		return chi_frame_record_null(f);
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

choir_variable *choir_tensor_variable(const choir_tensor *t)
{
	return t == NULL || t->source == NULL ? NULL : t->source->owner;
}

choir_device *choir_tensor_device(const choir_tensor *t)
{
	return t ? chi_tensor_memory_device(t) : NULL;
}

size_t chi_tensor_bytes(const choir_tensor *t)
{
	size_t bytes = 0;
	chi_shape_bytes(&t->shape, t->dtype, &bytes);
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
				"tensor %s %s: was dropped; the backward pass drops all results between the "
				"sources and y, so use it before the pass",
				choir_dtype_name(t->dtype), chi_shape_print(&t->shape, text));
	if (!t->source)
		return CHOIR_OK;
	if (chi_source_current(t->source, t->version))
		return CHOIR_OK;
	return chi_frame_fail(t->frame, CHOIR_STATE,
			t->version == CHI_RETIRED
					? "%s: its update was requested after this "
					  "tensor was read from it; read it again"
					: "%s: has changed since this tensor was read from it; read it again",
			t->source->name);
}

// Only t's frame's thread may record an event there; others (published) use chi_frame_publish's.
static choir_status follow(choir_frame *f, const choir_tensor *t, bool published)
{
	chi_stream *from = t->frame->stream;
	uint64_t mark = t->frame->published;

	if (from == f->stream || !t->frame->queued)
		return CHOIR_OK;
	if (!published)
		CHOIR_TRY(chi_stream_record_event(from, &mark));
	if (f->device->table != from->device->table || chi_tensor_memory_device(t)->host_memory)
		return chi_stream_wait_up_to(from, mark);
	return chi_stream_wait_event(f->stream, from, mark);
}

choir_status chi_frame_publish(choir_frame *f)
{
	return f->queued ? chi_stream_record_event(f->stream, &f->published) : CHOIR_OK;
}

static choir_tensor *view(choir_frame *f, const choir_tensor *t, void *data,
		const choir_shape *shape, bool published)
{
	if (chi_tensor_check_any(t) != CHOIR_OK)
		return chi_frame_null_argument(f, "view");
	if (!chi_device_shares(f->device, chi_tensor_memory_device(t)))
		return chi_frame_fail_null(f, CHOIR_INVALID,
				"tensor on %s: its memory is not accessible from %s; use choir_copy",
				chi_tensor_memory_device(t)->name, f->device->name);
	if (follow(f, t, published) != CHOIR_OK)
		return chi_frame_null_argument(f, "view");
	choir_tensor *out = chi_tensor_on(f, t->buffer, data, t->dtype, shape);
	if (!out)
		return NULL;
	out->source = t->source;
	out->version = t->version;
	out->borrowed = t->borrowed;
	return out;
}

static choir_tensor *copy_kind(choir_tensor *out, const choir_tensor *t)
{
	if (!out)
		return NULL;
	out->is_number = t->is_number;
	out->number = t->number;
	out->count = t->count;
	return out;
}

static choir_tensor *alias(choir_frame *f, const choir_tensor *t, bool published)
{
	choir_tensor *out = copy_kind(view(f, t, t->data, &t->shape, published), t);
	return out ? chi_slices_follow(out, t, false) : NULL;
}

choir_tensor *chi_tensor_alias(choir_frame *f, const choir_tensor *t)
{
	if (!f || !t)
		return chi_frame_null_argument(f, "tensor");
	return alias(f, t, false);
}

choir_tensor *chi_tensor_rows(choir_frame *f, const choir_tensor *t, int64_t first, int64_t rows)
{
	if (!f || !t)
		return chi_frame_null_argument(f, "tensor");
	int64_t end;
	if (chi_tensor_check(t) != CHOIR_OK)
		return chi_frame_null_argument(f, "rows");
	if (t->shape.rank < 1 || first < 0 || rows < 0 || !chi_int64_add(first, rows, &end) ||
			end > t->shape.dim[0]) {
		char text[CHI_SHAPE_TEXT];
		return chi_frame_fail_null(f, CHOIR_INVALID,
				"rows: %" PRId64 " rows from row %" PRId64 " on are not within %s", rows, first,
				chi_shape_print(&t->shape, text));
	}
	if (rows == t->shape.dim[0])
		return chi_tensor_alias(f, t);
	choir_shape shape = t->shape;
	const size_t row = chi_tensor_bytes(t) / (size_t) shape.dim[0];
	shape.dim[0] = rows;
	return view(f, t, (char *) t->data + (size_t) first * row, &shape, false);
}

choir_tensor *chi_tensor_reshape(const choir_tensor *t, const choir_shape *shape)
{
	char from[CHI_SHAPE_TEXT], to[CHI_SHAPE_TEXT];

	if (!t)
		return chi_frame_null_argument(NULL, "tensor");
	if (chi_tensor_check(t) != CHOIR_OK)
		return NULL;
	const int64_t elements = choir_shape_elements(shape);
	if (elements < 0 || elements != choir_shape_elements(&t->shape))
		return chi_frame_fail_null(t->frame, CHOIR_INVALID, "reshape: %s does not fit %s",
				chi_shape_print(&t->shape, from), chi_shape_print(shape, to));
	return view(t->frame, t, t->data, shape, false);
}

// Published tensors stay until the run ends, which waits for its streams.
static choir_status copy_bytes(choir_frame *f, void *to, const choir_tensor *t, bool published)
{
	const size_t bytes = chi_tensor_bytes(t);
	choir_device *from = chi_tensor_memory_device(t);
	if (bytes == 0)
		return CHOIR_OK;
	if (!from->host_memory || f->device->host_memory)
		return chi_device_copy(f->stream, f->device, to, from, t->data, bytes);
	return published ? chi_stream_post_kept(f->stream, to, t->data, bytes)
					 : chi_stream_post(f->stream, to, t->data, bytes);
}

static choir_tensor *copy(choir_frame *f, const choir_tensor *t, bool published)
{
	if (chi_tensor_check_any(t) != CHOIR_OK)
		return chi_frame_null_argument(f, "copy");
	choir_tensor *out = chi_tensor_new(f, t->dtype, &t->shape);
	if (!out)
		return NULL;
	choir_status status = follow(f, t, published);
	if (status == CHOIR_OK)
		status = copy_bytes(f, out->data, t, published);
	if (status != CHOIR_OK)
		return chi_frame_null_argument(f, "copy");
	return chi_slices_follow(copy_kind(out, t), t, true);
}

choir_tensor *choir_copy(choir_tensor *t, choir_frame *to)
{
	if (!t || !to)
		return chi_frame_null_argument(t ? t->frame : to, "copy");
	return copy(to, t, false);
}

choir_tensor *chi_tensor_published(choir_frame *f, choir_tensor *t)
{
	if (!chi_device_shares(chi_tensor_memory_device(t), f->device))
		return copy(f, t, true);
	return t->frame == f ? t : alias(f, t, true);
}

choir_tensor *chi_tensor_retain(choir_frame *f, const choir_tensor *t)
{
	if (!f || !t)
		return chi_frame_null_argument(f, "tensor");
	if (t->borrowed || t->source || !chi_device_shares(f->device, chi_tensor_memory_device(t)))
		return copy(f, t, false);
	return chi_tensor_alias(f, t);
}

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
	// The caller may change this memory afterwards.
	const choir_status status = chi_stream_post(t->frame->stream, t->data, from, bytes);
	return status == CHOIR_OK ? CHOIR_OK : chi_frame_record_error(t->frame);
}

const void *choir_tensor_data(const choir_tensor *t)
{
	if (!t || chi_tensor_check(t) != CHOIR_OK)
		return NULL;
	choir_frame *f = t->frame;
	if (!chi_tensor_memory_device(t)->host_memory) {
		chi_frame_fail(f, CHOIR_UNSUPPORTED,
				"tensor: the host cannot access the memory of %s; use choir_tensor_to_host",
				chi_tensor_memory_device(t)->name);
		return NULL;
	}
	if (f->queued && chi_stream_wait(f->stream) != CHOIR_OK)
		return chi_frame_record_null(f);
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
		chi_frame_fail(t->frame, CHOIR_INVALID, "number: the tensor is %s; one element is needed",
				chi_shape_print(&t->shape, text));
		return (double) NAN;
	}
	if (chi_tensor_to_host(t, element.bytes) != CHOIR_OK)
		return (double) NAN;
	return chi_dtype_load(t->dtype, element.bytes, 0);
}

choir_status choir_tensor_to_host(const choir_tensor *t, void *to, size_t bytes)
{
	char text[CHI_SHAPE_TEXT];

	if (!t)
		return chi_frame_status(NULL);
	if (bytes != chi_tensor_bytes(t))
		return chi_frame_fail(t->frame, CHOIR_INVALID,
				"tensor_to_host: %s %s has %zu bytes, not %zu", choir_dtype_name(t->dtype),
				chi_shape_print(&t->shape, text), chi_tensor_bytes(t), bytes);
	if (!to && bytes > 0)
		return chi_frame_fail(t->frame, CHOIR_INVALID, "tensor_to_host: the target is NULL");
	return chi_tensor_to_host(t, to);
}

// Others could release memory that work queued here uses, so this reference stays until the frame
// has waited.
void chi_tensor_drop(choir_tensor *t)
{
	if (!t || !t->buffer)
		return;
	chi_buffer *b = t->buffer;
	t->buffer = NULL;
	t->data = NULL;
	// Never rewritten, but queued work may read them.
	if (t->slices.buffer && !t->frame->queued) {
		chi_buffer_release(t->slices.buffer);
		t->slices.buffer = NULL;
	}
	if (t->frame->queued && (b->foreign || chi_atomic32_load(&b->references) > 1))
		t->held = b;
	else
		chi_frame_give_back(t->frame, b);
}
