// Buffers of packed rows, and of ragged values.
#include "data/dataset.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "tensor/tensor.h"

enum { ROW_ALIGNMENT = 64, BLOCK_BYTES = 64 * 1024, BLOCK_EXAMPLES = 4096 };

bool chi_shape_varies(const choir_shape *shape)
{
	for (int i = 0; i < shape->rank; i++)
		if (shape->dim[i] == CHOIR_UNKNOWN)
			return true;
	return false;
}

bool chi_shape_fits(const choir_shape *column, const choir_shape *shape)
{
	if (shape->rank != column->rank)
		return false;
	for (int i = 0; i < shape->rank; i++)
		if (shape->dim[i] < 0 ||
				(column->dim[i] != CHOIR_UNKNOWN && shape->dim[i] != column->dim[i]))
			return false;
	return true;
}

choir_status chi_ragged_value_shape(
		chi_ragged_value *value, choir_dtype dtype, const choir_shape *shape)
{
	size_t bytes;
	if (!chi_shape_bytes(shape, dtype, &bytes))
		return choir_fail(CHOIR_INVALID, "dataset: an example has too many bytes");
	if (bytes > value->bytes) {
		size_t capacity = bytes > PTRDIFF_MAX / 2 ? bytes : bytes + bytes / 2;
		void *data = chi_alloc_aligned(capacity);
		CHOIR_TRY(chi_made(data));
		chi_free(value->data);
		value->data = data;
		value->bytes = capacity;
	}
	value->shape = *shape;
	return CHOIR_OK;
}

choir_status chi_ragged_value_copy(
		chi_ragged_value *to, const chi_ragged_value *from, choir_dtype dtype)
{
	size_t bytes = 0;
	CHOIR_TRY(chi_ragged_value_shape(to, dtype, &from->shape));
	if (chi_shape_bytes(&from->shape, dtype, &bytes) && bytes > 0)
		memcpy(to->data, from->data, bytes);
	return CHOIR_OK;
}

void chi_ragged_value_free(chi_ragged_value *value)
{
	chi_free(value->data);
	*value = (chi_ragged_value){ .data = NULL };
}

void chi_columns_move(const choir_dataset *d, void *const column[], int64_t examples, void *out[])
{
	for (size_t i = 0; i < d->spec.n; i++)
		out[i] = column[i] ? (char *) column[i] + (size_t) examples * d->bytes[i] : NULL;
}

static choir_status copy_columns(
		const choir_dataset *d, void *const to[], void *const from[], int64_t examples)
{
	for (size_t i = 0; i < d->spec.n; i++) {
		const choir_column *c = &d->spec.column[i];
		if (!to[i])
			continue;
		if (!chi_shape_varies(&c->shape)) {
			memcpy(to[i], from[i], (size_t) examples * d->bytes[i]);
			continue;
		}
		chi_ragged_value *value = to[i];
		const chi_ragged_value *other = from[i];
		for (int64_t k = 0; k < examples; k++)
			CHOIR_TRY(chi_ragged_value_copy(&value[k], &other[k], c->dtype));
	}
	return CHOIR_OK;
}

bool chi_row_buffer_new(const choir_dataset *d, int64_t examples, chi_row_buffer *rows)
{
	size_t offset[CHI_MAX_COLUMNS], total = 0, size;
	for (size_t i = 0; i < d->spec.n; i++) {
		offset[i] = total;
		if (!chi_size_multiply((size_t) examples, d->bytes[i], &size) ||
				!chi_size_add(total, size, &total) ||
				!chi_size_round_up(total, ROW_ALIGNMENT, &total)) {
			choir_fail(CHOIR_NO_MEMORY, "%s: %lld examples do not fit in memory", d->stage->name,
					(long long) examples);
			return false;
		}
	}
	rows->memory = chi_alloc_aligned(total);
	if (!rows->memory)
		return false;
	rows->examples = examples;
	rows->ragged_columns = 0;
	for (size_t i = 0; i < d->spec.n; i++) {
		rows->column[i] = (char *) rows->memory + offset[i];
		if (!chi_shape_varies(&d->spec.column[i].shape))
			continue;
		memset(rows->column[i], 0, (size_t) examples * d->bytes[i]);
		rows->ragged_columns |= UINT32_C(1) << i;
	}
	return true;
}

bool chi_row_buffer_grow(
		const choir_dataset *d, chi_row_buffer *rows, int64_t kept, int64_t examples)
{
	chi_row_buffer larger;
	if (!chi_row_buffer_new(d, examples, &larger))
		return false;
	for (size_t i = 0; rows->memory && i < d->spec.n; i++)
		memcpy(larger.column[i], rows->column[i],
				(size_t) (rows->ragged_columns >> i & 1 ? rows->examples : kept) * d->bytes[i]);
	chi_free(rows->memory);
	*rows = larger;
	return true;
}

void chi_row_buffer_free(chi_row_buffer *rows)
{
	for (size_t i = 0; rows->memory && i < CHI_MAX_COLUMNS; i++) {
		if (!(rows->ragged_columns >> i & 1))
			continue;
		chi_ragged_value *value = rows->column[i];
		for (int64_t k = 0; k < rows->examples; k++)
			chi_ragged_value_free(&value[k]);
	}
	chi_free(rows->memory);
	rows->memory = NULL;
}

choir_status chi_row_buffer_copy(const choir_dataset *d, void *const to[],
		const chi_row_buffer *from, int64_t first, int64_t examples)
{
	void *there[CHI_MAX_COLUMNS];
	chi_columns_move(d, from->column, first, there);
	return copy_columns(d, to, there, examples);
}

int64_t chi_block_examples(const choir_dataset *d)
{
	size_t total = 0;
	for (size_t i = 0; i < d->spec.n; i++)
		if (!chi_size_add(total, d->bytes[i], &total))
			return 1;
	size_t fit = BLOCK_BYTES / (total ? total : 1);
	return fit < 1 ? 1 : fit < BLOCK_EXAMPLES ? (int64_t) fit : BLOCK_EXAMPLES;
}
