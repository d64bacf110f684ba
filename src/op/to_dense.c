// IndexedSlices as dense tensors, and their sums.
#include "base/size.h"
#include "op/op.h"

choir_tensor *choir_to_dense(choir_tensor *t)
{
	if (t == NULL)
		return chi_frame_null_argument(NULL, "to_dense");
	if (chi_tensor_check_any(t) != CHOIR_OK || !chi_is_slices(t))
		return chi_tensor_check_any(t) == CHOIR_OK ? t : NULL;
	choir_frame *f = t->frame;
	const choir_shape shape = chi_dense_shape(t);
	choir_tensor *whole = chi_tensor_new(f, t->dtype, &shape);
	if (whole == NULL)
		return NULL;
	const choir_buffer in[3] = { { whole->data, t->dtype, shape },
		{ t->slices.data, t->slices.dtype, { 1, { t->shape.dim[0] } } },
		{ t->data, t->dtype, t->shape } };
	choir_buffer out = in[0];
	choir_status status = CHOIR_OK;
	if (chi_tensor_bytes(whole) > 0)
		status = chi_stream_fill(f->stream, whole->data, 0, chi_tensor_bytes(whole));
	if (status == CHOIR_OK && choir_shape_elements(&t->shape) > 0)
		status = chi_kernel_run(f->stream, "scatter_add", 3, in, &out, NULL);
	return status == CHOIR_OK ? whole : chi_op_failed(f, "to_dense");
}

static choir_tensor *concatenate(choir_frame *f, choir_dtype dtype, const choir_shape *shape,
		const void *a, const void *b, size_t bytes_of_a)
{
	choir_tensor *out = chi_tensor_new(f, dtype, shape);
	if (out == NULL)
		return NULL;
	const size_t all = chi_tensor_bytes(out);
	choir_status status = CHOIR_OK;
	if (bytes_of_a > 0)
		status = chi_stream_copy(f->stream, out->data, a, bytes_of_a);
	if (status == CHOIR_OK && all > bytes_of_a)
		status = chi_stream_copy(f->stream, (char *) out->data + bytes_of_a, b, all - bytes_of_a);
	return status == CHOIR_OK ? out : chi_frame_record_null(f);
}

choir_tensor *chi_slices_add(choir_tensor *a, choir_tensor *b)
{
	if (!chi_is_slices(a) || !chi_is_slices(b) || a->slices.dtype != b->slices.dtype)
		return choir_add(choir_to_dense(a), choir_to_dense(b));
	choir_frame *f = a->frame;
	choir_shape shape = a->shape, count = { 1, { 0 } };
	if (!chi_int64_add(a->shape.dim[0], b->shape.dim[0], &shape.dim[0]))
		return chi_frame_fail_null(f, CHOIR_NO_MEMORY, "slices: too many rows");
	count.dim[0] = shape.dim[0];
	choir_tensor *values = concatenate(f, a->dtype, &shape, a->data, b->data, chi_tensor_bytes(a));
	choir_tensor *indices = values == NULL
			? NULL
			: concatenate(f, a->slices.dtype, &count, a->slices.data, b->slices.data,
					  (size_t) a->shape.dim[0] * chi_dtype_size(a->slices.dtype));
	return indices == NULL ? NULL : chi_slices_new(values, indices, a->slices.rows);
}
