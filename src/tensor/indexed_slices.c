// Values and, in a second buffer, their rows in a larger tensor. chi_tensor_check refuses slices:
// no operation takes them for the tensor.
#include "tensor/tensor.h"

#include <inttypes.h>
#include <string.h>

choir_shape chi_dense_shape(const choir_tensor *t)
{
	choir_shape shape = t->shape;
	if (chi_is_slices(t))
		shape.dim[0] = t->slices.rows;
	return shape;
}

static size_t index_bytes(const choir_tensor *t)
{
	return (size_t) t->shape.dim[0] * chi_dtype_size(t->slices.dtype);
}

static chi_buffer *copy_indices(const choir_tensor *out, const choir_tensor *t)
{
	choir_frame *f = out->frame;
	const size_t bytes = index_bytes(t);
	chi_buffer *b = chi_buffer_new(f->device, bytes);
	if (b == NULL || bytes == 0)
		return b;
	if (chi_device_copy(f->stream, f->device, b->memory, chi_tensor_memory_device(t),
				t->slices.data, bytes) == CHOIR_OK)
		return b;
	chi_buffer_release(b);
	return NULL;
}

choir_tensor *chi_slices_follow(choir_tensor *out, const choir_tensor *t, bool copy)
{
	if (out == NULL || !chi_is_slices(t))
		return out;
	chi_slices s = t->slices;
	if (copy) {
		s.buffer = copy_indices(out, t);
		s.data = s.buffer == NULL ? NULL : s.buffer->memory;
	} else {
		chi_buffer_retain(s.buffer);
	}
	if (s.buffer == NULL) {
		chi_frame_record_error(out->frame);
		chi_tensor_drop(out);
		return NULL;
	}
	out->slices = s;
	return out;
}

choir_tensor *chi_slices_new(choir_tensor *values, choir_tensor *indices, int64_t rows)
{
	choir_frame *f = values->frame;
	// Borrowed memory may change, so it is copied.
	choir_tensor *own = chi_tensor_retain(f, indices);
	choir_tensor *out = own == NULL ? NULL : chi_tensor_alias(f, values);
	if (out == NULL)
		return NULL;
	chi_buffer_retain(own->buffer);
	out->slices = (chi_slices){ own->buffer, own->data, own->dtype, rows };
	return out;
}

choir_status chi_slices_indices_to_host(const choir_tensor *t, int64_t *to)
{
	const int64_t n = t->shape.dim[0];
	CHOIR_TRY(chi_stream_fetch(t->frame->stream, to, t->slices.data, index_bytes(t)));
	if (t->slices.dtype == CHOIR_I64)
		return CHOIR_OK;
	// Backwards: each index is read before it is overwritten.
	for (int64_t i = n; i-- > 0;) {
		int32_t narrow;
		memcpy(&narrow, (const char *) to + (size_t) i * sizeof narrow, sizeof narrow);
		to[i] = narrow;
	}
	return CHOIR_OK;
}

choir_status chi_slices_check_indices(const choir_tensor *t, const char *what)
{
	choir_frame *f = t->frame;
	const size_t mark = chi_arena_mark(&f->arena);
	const int64_t n = t->shape.dim[0];
	int64_t *row = chi_arena_alloc(&f->arena, (size_t) n * sizeof *row);
	if (row == NULL || chi_slices_indices_to_host(t, row) != CHOIR_OK)
		return chi_frame_record_error(f);
	for (int64_t i = 0; i < n; i++)
		if (row[i] < 0 || row[i] >= t->slices.rows)
			return chi_frame_fail(f, CHOIR_INVALID,
					"%s: indices[%" PRId64 "] is %" PRId64 ", but there are %" PRId64 " rows",
					what, i, row[i], t->slices.rows);
	chi_arena_rewind(&f->arena, mark);
	return CHOIR_OK;
}

static choir_status check_operands(
		const choir_tensor *values, const choir_tensor *indices, int64_t rows)
{
	choir_frame *f = values->frame;
	char a[CHI_SHAPE_TEXT], b[CHI_SHAPE_TEXT];
	size_t bytes;
	if (indices->frame != f)
		return chi_frame_fail(f, CHOIR_INVALID,
				"indexed_slices: values and indices are in "
				"different frames; choir_copy brings them together");
	CHOIR_TRY(chi_tensor_check(values));
	CHOIR_TRY(chi_tensor_check(indices));
	if (indices->shape.rank != 1 || (indices->dtype != CHOIR_I32 && indices->dtype != CHOIR_I64))
		return chi_frame_fail(f, CHOIR_INVALID,
				"indexed_slices: indices are %s %s; a vector of i32 or i64 is needed",
				choir_dtype_name(indices->dtype), chi_shape_print(&indices->shape, a));
	if (values->shape.rank == 0 || values->shape.dim[0] != indices->shape.dim[0])
		return chi_frame_fail(f, CHOIR_INVALID,
				"indexed_slices: values are %s and indices %s; each index needs one row of values",
				chi_shape_print(&values->shape, a), chi_shape_print(&indices->shape, b));
	choir_shape whole = values->shape;
	whole.dim[0] = rows;
	if (!chi_shape_bytes(&whole, values->dtype, &bytes))
		return chi_frame_fail(f, CHOIR_INVALID,
				"indexed_slices: %" PRId64 " rows are negative or too many", rows);
	return CHOIR_OK;
}

choir_tensor *choir_indexed_slices(choir_tensor *values, choir_tensor *indices, int64_t rows)
{
	if (values == NULL || indices == NULL)
		return chi_frame_null_argument(
				values != NULL ? values->frame : choir_tensor_frame(indices), "indexed_slices");
	if (check_operands(values, indices, rows) != CHOIR_OK)
		return NULL;
	choir_tensor *t = chi_slices_new(values, indices, rows);
	return t == NULL || chi_slices_check_indices(t, "indexed_slices") != CHOIR_OK ? NULL : t;
}

bool choir_tensor_is_slices(const choir_tensor *t)
{
	return t != NULL && chi_is_slices(t);
}

int64_t choir_slices_rows(const choir_tensor *t)
{
	return choir_tensor_is_slices(t) ? t->slices.rows : 0;
}

static bool check_slices(const choir_tensor *t)
{
	if (chi_tensor_check_any(t) != CHOIR_OK)
		return false;
	if (chi_is_slices(t))
		return true;
	chi_frame_fail(t->frame, CHOIR_INVALID, "slices: the tensor is not indexed slices");
	return false;
}

choir_tensor *choir_slices_values(choir_tensor *t)
{
	if (t == NULL || !check_slices(t))
		return NULL;
	choir_tensor *out = chi_tensor_alias(t->frame, t);
	if (out == NULL)
		return NULL;
	chi_buffer_release(out->slices.buffer);
	out->slices = (chi_slices){ 0 };
	return out;
}

choir_tensor *choir_slices_indices(choir_tensor *t)
{
	if (t == NULL || !check_slices(t))
		return NULL;
	return chi_tensor_on(t->frame, t->slices.buffer, t->slices.data, t->slices.dtype,
			&(choir_shape){ 1, { t->shape.dim[0] } });
}
