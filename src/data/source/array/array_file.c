// The file's size is checked before memory is allocated. A plain file is read into the reader's
// rows; a small compressed one is unpacked at its first use, a large one streamed. Column-major
// values are reordered.
#include "data/source/array/array.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "data/source/gzip.h"
#include "data/source/byte_order.h"
#include "tensor/tensor.h"

// Unpacked: up to LARGER_IN_MEMORY times the size, within LITTLE_ and MAX_IN_MEMORY.
enum { LITTLE_IN_MEMORY = 24 << 20, MAX_IN_MEMORY = 64 << 20, LARGER_IN_MEMORY = 8 };
enum { BLOCK_BYTES = 64 << 10 };

typedef struct {
	choir_dataset base;
	chi_array_file part[CHI_MAX_COLUMNS];
	char *memory[CHI_MAX_COLUMNS];
	int64_t next;
	bool loaded;
} arrays;

static size_t stored_size(const chi_array_file *p)
{
	return p->stored ? p->stored : chi_dtype_size(p->dtype);
}

static int64_t stored_bytes(const chi_array_file *p, int64_t bytes)
{
	return bytes / (int64_t) chi_dtype_size(p->dtype) * (int64_t) stored_size(p);
}

// A product, with a value's bytes unless 1.
static const char *describe(const chi_array_file *p, char text[], size_t size)
{
	size_t at = 0;
	for (int i = 0; i < p->rank; i++)
		at += (size_t) snprintf(
				text + at, size - at, "%s%lld", i ? " x " : "", (long long) p->dim[i]);
	if (stored_size(p) > 1)
		snprintf(text + at, size - at, " x %zu", stored_size(p));
	return text;
}

static choir_status check_dims(const chi_array_file *p)
{
	const char *name = chi_reader_name(p->reader);
	if (p->rank < 1)
		return choir_fail(CHOIR_CORRUPT,
				"%s: the header of %zu bytes declares rank 0; at least 1 "
				"needed (axis 0 counts the examples)",
				name, p->header_bytes);
	for (int i = 1; i < p->rank; i++)
		if (p->dim[i] == 0)
			return choir_fail(CHOIR_CORRUPT,
					"%s: the header of %zu bytes declares dimension %d as 0; at least 1 needed",
					name, p->header_bytes, i);
	return CHOIR_OK;
}

choir_status chi_array_file_check(chi_array_file *p)
{
	CHOIR_TRY(check_dims(p));
	char text[256];
	const char *name = chi_reader_name(p->reader);
	p->promised = (int64_t) stored_size(p);
	for (int i = p->rank - 1; i >= 0; i--)
		if (!chi_int64_multiply(p->promised, p->dim[i], &p->promised))
			return choir_fail(CHOIR_CORRUPT,
					"%s: the header of %zu bytes declares %s bytes, more than any file has", name,
					p->header_bytes, describe(p, text, sizeof text));
	uint64_t size = chi_reader_size(p->reader);
	uint64_t left = size > p->header_bytes ? size - p->header_bytes : 0;
	uint64_t promised = (uint64_t) p->promised;
	bool compressed = chi_reader_compressed(p->reader);
	if (compressed ? promised <= left : promised == left)
		return promised ? CHOIR_OK : chi_reader_end(p->reader);
	return choir_fail(CHOIR_CORRUPT,
			"%s: the header of %zu bytes declares %s = %lld bytes of "
			"values, the file has %s%llu after it",
			name, p->header_bytes, describe(p, text, sizeof text), (long long) p->promised,
			compressed ? "at most " : "", (unsigned long long) left);
}

// Values lie at the end of the memory, so none is overwritten unread.
static void widen(const chi_array_file *p, char *values, size_t count)
{
	const size_t size = chi_dtype_size(p->dtype), stored = p->stored;
	const char *from = values + count * (size - stored);
	for (size_t i = 0; i < count; i++) {
		uint8_t v1;
		uint16_t v2;
		uint32_t v4;
		int64_t value;
		if (stored == 1) {
			memcpy(&v1, from + i, 1);
			value = p->is_signed ? (int8_t) v1 : v1;
		} else if (stored == 2) {
			memcpy(&v2, from + 2 * i, 2);
			value = p->is_signed ? (int16_t) v2 : v2;
		} else {
			memcpy(&v4, from + 4 * i, 4);
			value = v4;
		}
		const int32_t narrow = (int32_t) value;
		memcpy(values + i * size, size == 4 ? (const void *) &narrow : &value, size);
	}
}

static choir_status take_values(
		const chi_array_file *p, void *values, size_t bytes, int64_t before)
{
	const size_t stored = (size_t) stored_bytes(p, (int64_t) bytes);
	if (chi_order_differs(p->big_endian))
		chi_reverse_bytes((char *) values + (bytes - stored), stored, stored_size(p));
	if (p->stored)
		widen(p, values, stored / p->stored);
	const unsigned char *byte = values;
	for (size_t i = 0; p->dtype == CHOIR_BOOL && i < bytes; i++)
		if (byte[i] > 1)
			return choir_fail(CHOIR_CORRUPT, "%s: byte %lld is %d; a bool must be 0 or 1",
					chi_reader_name(p->reader),
					(long long) p->header_bytes + (long long) before + (long long) i, byte[i]);
	return CHOIR_OK;
}

// before: bytes read so far. to NULL: skips. Only here a truncated compressed file shows.
static choir_status read_values(const chi_array_file *p, void *to, size_t bytes, int64_t before)
{
	size_t got;
	const size_t stored = (size_t) stored_bytes(p, (int64_t) bytes);
	CHOIR_TRY(
			chi_reader_read(p->reader, to ? (char *) to + (bytes - stored) : NULL, stored, &got));
	if (got < stored)
		return choir_fail(CHOIR_CORRUPT,
				"%s: the header of %zu bytes declares %lld bytes of values, the file has %lld",
				chi_reader_name(p->reader), p->header_bytes, (long long) p->promised,
				(long long) (before + (int64_t) got));
	if (before + (int64_t) stored == p->promised) // before the last values are used
		CHOIR_TRY(chi_reader_end(p->reader));
	return to ? take_values(p, to, bytes, before) : CHOIR_OK;
}

static choir_status to_first_value(const chi_array_file *p)
{
	size_t got;
	CHOIR_TRY(chi_reader_rewind(p->reader));
	return chi_reader_read(p->reader, NULL, p->header_bytes, &got);
}

// Column-major. place: the row-major position.
typedef struct {
	int rank;
	int64_t dim[CHI_ARRAY_FILE_RANK], stride[CHI_ARRAY_FILE_RANK], at[CHI_ARRAY_FILE_RANK];
	int64_t place;
} row_sum;

static void begin_walk(row_sum *w, const chi_array_file *p)
{
	*w = (row_sum){ .rank = p->rank };
	int64_t stride = 1;
	for (int i = p->rank - 1; i >= 0; i--) {
		w->dim[i] = p->dim[i];
		w->stride[i] = stride;
		stride *= p->dim[i];
	}
}

static void advance(row_sum *w)
{
	for (int i = 0; i < w->rank; i++) {
		w->place += w->stride[i];
		if (++w->at[i] < w->dim[i])
			return;
		w->place -= w->stride[i] * w->dim[i];
		w->at[i] = 0;
	}
}

static choir_status load_scattered(const chi_array_file *p, char *memory, char *block)
{
	const size_t size = chi_dtype_size(p->dtype);
	int64_t done = 0;
	row_sum w;
	begin_walk(&w, p);
	while (done < p->promised) {
		const int64_t left = (p->promised - done) / (int64_t) stored_size(p) * (int64_t) size;
		const size_t bytes = left < BLOCK_BYTES ? (size_t) left : BLOCK_BYTES;
		CHOIR_TRY(read_values(p, block, bytes, done));
		for (size_t i = 0; i < bytes; i += size, advance(&w))
			memcpy(memory + (size_t) w.place * size, block + i, size);
		done += stored_bytes(p, (int64_t) bytes);
	}
	return CHOIR_OK;
}

static bool memory_bytes(const chi_array_file *p, int64_t *bytes)
{
	return chi_int64_multiply(
			p->promised / (int64_t) stored_size(p), (int64_t) chi_dtype_size(p->dtype), bytes);
}

static choir_status read_all(const chi_array_file *p, char *memory)
{
	CHOIR_TRY(to_first_value(p));
	int64_t bytes = 0;
	if (!p->fortran && memory_bytes(p, &bytes))
		return read_values(p, memory, (size_t) bytes, 0);
	char *block = chi_alloc_aligned(BLOCK_BYTES);
	CHOIR_TRY(chi_made(block));
	choir_status status = load_scattered(p, memory, block);
	chi_free(block);
	return status;
}

static choir_status load(arrays *s)
{
	for (size_t i = 0; i < s->base.spec.n && !s->loaded; i++) {
		if (s->memory[i])
			continue;
		int64_t bytes = INT64_MAX;
		(void) memory_bytes(&s->part[i], &bytes);
		char *memory = chi_alloc_aligned((size_t) bytes);
		CHOIR_TRY(chi_made(memory));
		choir_status status = read_all(&s->part[i], memory);
		if (status != CHOIR_OK) {
			chi_free(memory);
			return status;
		}
		s->memory[i] = memory;
		chi_reader_close(s->part[i].reader);
		s->part[i].reader = NULL;
	}
	s->loaded = true;
	return CHOIR_OK;
}

static choir_status arrays_range(
		choir_dataset *d, void *const column[], int64_t first, int64_t count)
{
	arrays *s = (arrays *) d;
	CHOIR_TRY(load(s));
	for (size_t i = 0; i < d->spec.n; i++)
		if (column[i])
			memcpy(column[i], s->memory[i] + (size_t) first * d->bytes[i],
					(size_t) count * d->bytes[i]);
	return CHOIR_OK;
}

static const void *arrays_peek(choir_dataset *d, size_t column, int64_t first, int64_t count)
{
	(void) count;
	arrays *s = (arrays *) d;
	if (!d->random || load(s) != CHOIR_OK)
		return NULL;
	return s->memory[column] + (size_t) first * d->bytes[column];
}

static choir_status arrays_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	arrays *s = (arrays *) d;
	int64_t left = d->spec.examples - s->next, n = want < left ? want : left;
	if (n == 0)
		return CHOIR_END;
	for (size_t i = 0; i < d->spec.n; i++)
		CHOIR_TRY(read_values(&s->part[i], column[i], (size_t) n * d->bytes[i],
				s->next * stored_bytes(&s->part[i], (int64_t) d->bytes[i])));
	s->next += n;
	*got = n;
	return CHOIR_OK;
}

static choir_status arrays_seek(choir_dataset *d, int64_t elements)
{
	arrays *s = (arrays *) d;
	s->next = elements;
	for (size_t i = 0; i < d->spec.n; i++) {
		const size_t one = (size_t) stored_bytes(&s->part[i], (int64_t) d->bytes[i]);
		size_t got, bytes = (size_t) elements * one;
		CHOIR_TRY(chi_reader_read(s->part[i].reader, NULL, bytes, &got));
		if (got < bytes)
			return chi_dataset_too_short(d, (int64_t) (got / one), elements);
	}
	return CHOIR_OK;
}

static const char *arrays_path(const choir_dataset *d, int64_t i)
{
	(void) i;
	return chi_reader_path(((const arrays *) d)->part[0].reader);
}

static choir_status arrays_rewind(choir_dataset *d)
{
	arrays *s = (arrays *) d;
	s->next = 0;
	for (size_t i = 0; i < d->spec.n; i++)
		CHOIR_TRY(to_first_value(&s->part[i]));
	return CHOIR_OK;
}

static void arrays_free(choir_dataset *d)
{
	arrays *s = (arrays *) d;
	for (size_t i = 0; i < d->spec.n; i++) {
		chi_reader_close(s->part[i].reader);
		chi_free(s->memory[i]);
	}
}

static int64_t max_in_memory(const chi_array_file *p)
{
	const uint64_t max = chi_reader_size(p->reader) / CHI_GZIP_RATIO * LARGER_IN_MEMORY;
	return max < LITTLE_IN_MEMORY ? LITTLE_IN_MEMORY
			: max < MAX_IN_MEMORY ? (int64_t) max
								  : MAX_IN_MEMORY;
}

#define STAGE(text) \
	{ \
		.name = text, .range = arrays_range, .read = arrays_read, .rewind = arrays_rewind, \
		.peek = arrays_peek, .free = arrays_free, .seek = arrays_seek, .files = CHI_FILES_HERE, \
		.path = arrays_path, \
	}
static const chi_stage stages[] = { STAGE("idx dataset"), STAGE("npy dataset"),
	STAGE("npz dataset") };

choir_dataset *chi_array_file_new(
		chi_array_format format, size_t n, chi_array_file parts[], const char *const names[])
{
	choir_column columns[CHI_MAX_COLUMNS] = { 0 };
	bool compressed = false, fortran = false;
	int64_t total = 0, bytes;
	for (size_t i = 0; i < n; i++) {
		const chi_array_file *p = &parts[i];
		columns[i] = (choir_column){ .name = names[i], .dtype = p->dtype };
		columns[i].shape.rank = p->rank - 1;
		memcpy(columns[i].shape.dim, p->dim + 1, (size_t) (p->rank - 1) * sizeof p->dim[0]);
		compressed = compressed || chi_reader_compressed(p->reader);
		fortran = fortran || (p->fortran && p->rank > 1);
		if (!memory_bytes(p, &bytes) || !chi_int64_add(total, bytes, &total))
			total = INT64_MAX;
	}
	arrays *s = chi_source_new(&stages[format], sizeof *s, n, columns, parts[0].dim[0]);
	if (!s)
		return NULL;
	memcpy(s->part, parts, n * sizeof parts[0]);
	s->base.files = 1;
	s->base.random = fortran || (compressed && total <= max_in_memory(&parts[0]));
	return &s->base;
}
