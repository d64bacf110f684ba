// Handles on memory that another handle holds already, in this frame or in another one, and the
// copies that are made where memory cannot be shared. A view has a reference of its own, so
// either may go first.
#include "base/size.h"
#include "tensor/tensor.h"

#include <inttypes.h>

// What is queued for f starts after what is queued on t's stream, which made t. Only the thread
// that t's frame belongs to may mark that stream; others (published) have the frame's mark.
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

// A handle on bytes of t from data, with what is known of t's memory.
static choir_tensor *view(choir_frame *f, const choir_tensor *t, void *data,
		const choir_shape *shape, bool published)
{
	if (chi_tensor_check_any(t) != CHOIR_OK)
		return chi_frame_null_argument(f, "view");
	if (!chi_device_shares(f->device, chi_tensor_memory_device(t)))
		return chi_frame_fail_null(f, CHOIR_INVALID,
				"tensor of %s cannot be seen from %s; move it", chi_tensor_memory_device(t)->name,
				f->device->name);
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
				"rows: %" PRId64 " from %" PRId64 " of %s are not there", rows, first,
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

// Small host memory is only queued.
static choir_status copy_bytes(choir_frame *f, void *to, const choir_tensor *t)
{
	const size_t bytes = chi_tensor_bytes(t);
	choir_device *from = chi_tensor_memory_device(t);
	if (bytes == 0)
		return CHOIR_OK;
	return from->host_memory && !f->device->host_memory
			? chi_stream_post(f->stream, to, t->data, bytes)
			: chi_device_copy(f->stream, f->device, to, from, t->data, bytes);
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
		status = copy_bytes(f, out->data, t);
	if (status != CHOIR_OK)
		return chi_frame_null_argument(f, "copy");
	return chi_slices_follow(copy_kind(out, t), t, true);
}

choir_tensor *choir_move(choir_tensor *t, choir_frame *to)
{
	if (!t || !to)
		return chi_frame_null_argument(t ? t->frame : to, "move");
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
