// Examples in the program's memory.
#include "data/dataset.h"

#include <string.h>

#include "base/size.h"

typedef struct {
	choir_dataset base;
	const char *data[CHI_MAX_COLUMNS];
} memory;

static choir_status memory_range(
		choir_dataset *d, void *const column[], int64_t first, int64_t count)
{
	const memory *m = (memory *) d;
	for (size_t i = 0; i < d->spec.n; i++)
		if (column[i])
			memcpy(column[i], m->data[i] + (size_t) first * d->bytes[i],
					(size_t) count * d->bytes[i]);
	return CHOIR_OK;
}

static const void *memory_peek(choir_dataset *d, size_t column, int64_t first, int64_t count)
{
	(void) count;
	const memory *m = (memory *) d;
	return m->data[column] ? m->data[column] + (size_t) first * d->bytes[column] : NULL;
}

static const chi_stage memory_stage = {
	.name = "memory dataset",
	.range = memory_range,
	.peek = memory_peek,
};

static choir_status check_data(const choir_dataset *d, const choir_column columns[])
{
	for (size_t i = 0; i < d->spec.n; i++) {
		size_t size;
		if (!columns[i].data && d->spec.examples > 0)
			return choir_fail(
					CHOIR_INVALID, "memory dataset: column \"%s\" has no data", columns[i].name);
		if (!chi_size_multiply((size_t) d->spec.examples, d->bytes[i], &size) ||
				size > PTRDIFF_MAX)
			return choir_fail(CHOIR_INVALID,
					"memory dataset: column \"%s\": %lld examples "
					"of %zu bytes do not fit in memory",
					columns[i].name, (long long) d->spec.examples, d->bytes[i]);
	}
	return CHOIR_OK;
}

static bool copy_data(memory *m)
{
	choir_dataset *d = &m->base;
	if (!chi_row_buffer_new(d, d->spec.examples, &m->base.rows))
		return false;
	if (d->spec.examples > 0)
		memory_range(d, m->base.rows.column, 0, d->spec.examples);
	for (size_t i = 0; i < d->spec.n; i++)
		m->data[i] = m->base.rows.column[i];
	return true;
}

choir_dataset *choir_memory_dataset_new(
		int64_t examples, size_t n, const choir_column columns[], bool copy)
{
	if (examples < 0)
		return chi_fail_null(CHOIR_INVALID,
				"memory dataset: %lld examples given; 0 or more needed", (long long) examples);
	memory *m = chi_source_new(&memory_stage, sizeof *m, n, columns, examples);
	if (!m)
		return NULL;
	m->base.random = true;
	for (size_t i = 0; i < n; i++)
		m->data[i] = columns[i].data;
	if (check_data(&m->base, columns) != CHOIR_OK || (copy && !copy_data(m)))
		return chi_dataset_discard(&m->base);
	return &m->base;
}
