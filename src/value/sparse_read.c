// For the tape a sparse read is a read of the variable. A gather sees whole rows if the variable
// has a lock, else whole elements.
#include "value/sparse_read.h"

#include "base/memory_copy.h"
#include "op/op.h"

#include <inttypes.h>

bool chi_variable_allows_sparse_read(const choir_variable *v, const choir_frame *f)
{
	return v->shards == 0 && v->concurrency != CHI_EXCLUSIVE &&
			v->synchronization == CHOIR_SYNCHRONIZATION_ON_WRITE && v->copies == 1 &&
			v->copy[0].device->host_memory && f->device->host_memory && v->elements > 0 &&
			v->shape.rank > 0;
}

choir_tensor *chi_variable_sparse_read(choir_variable *v, int copy, choir_frame *f)
{
	const chi_copy *c = &v->copy[copy];
	choir_tensor *t = chi_tensor_on(f, c->buffer, NULL, v->dtype, &v->shape);
	if (t == NULL)
		return NULL;
	t->source = &c->source;
	t->version = chi_atomic64_load(&c->source.version);
	return t;
}

static int copy_of(const choir_variable *v, const chi_source *source)
{
	int copy = 0;
	while (&v->copy[copy].source != source)
		copy++;
	return copy;
}

choir_tensor *chi_variable_fill_sparse_read(choir_tensor *sparse_read)
{
	choir_variable *v = sparse_read->source->owner;
	choir_tensor *values =
			chi_variable_view(v, copy_of(v, sparse_read->source), sparse_read->frame);
	if (values == NULL)
		return NULL;
	chi_buffer_retain(values->buffer);
	chi_buffer_release(sparse_read->buffer);
	sparse_read->buffer = values->buffer;
	sparse_read->data = values->data;
	chi_tensor_drop(values);
	return sparse_read;
}

static choir_status take_relaxed(const choir_variable *v, const void *memory,
		const choir_tensor *indices, choir_tensor *out)
{
	const int64_t n = choir_shape_elements(&indices->shape), rows = v->shape.dim[0];
	const int64_t width = v->elements / rows;
	const size_t size = chi_dtype_size(v->dtype);
	for (int64_t i = 0; i < n; i++) {
		const int64_t row = (int64_t) chi_dtype_load(indices->dtype, indices->data, i);
		if (row < 0 || row >= rows)
			return choir_fail(CHOIR_INVALID,
					"index %" PRId64 " at position %" PRId64 " is "
					"not a row; rows are 0 to %" PRId64,
					row, i, rows - 1);
		chi_copy_atomic((char *) out->data + (size_t) (i * width) * size,
				(const char *) memory + (size_t) (row * width) * size, width, size);
	}
	return CHOIR_OK;
}

static choir_status take_locked(
		const choir_variable *v, void *memory, const choir_tensor *indices, choir_tensor *out)
{
	chi_stream *stream = out->frame->stream;
	const choir_buffer in[2] = { { memory, v->dtype, v->shape },
		{ indices->data, indices->dtype, indices->shape } };
	choir_buffer to = { out->data, out->dtype, out->shape };
	CHOIR_TRY(chi_kernel_run(stream, "gather", 2, in, &to, NULL));
	return chi_stream_wait(stream); // other workers write it next
}

choir_status chi_variable_gather_rows(
		const choir_tensor *table, const choir_tensor *indices, choir_tensor *out)
{
	choir_variable *v = table->source->owner;
	const int copy = copy_of(v, table->source);
	void *memory = v->copy[copy].buffer->memory;
	CHOIR_TRY(chi_variable_enter_to_read(v));
	choir_status status = chi_variable_check_defined(v, copy, out->frame);
	if (status == CHOIR_OK)
		status = v->concurrency == CHI_LOCK_FREE ? take_relaxed(v, memory, indices, out)
												 : take_locked(v, memory, indices, out);
	chi_variable_leave(v);
	return status;
}
