// Records with fixed fields, as in CIFAR-10. Large unconverted fields are read into their columns
// by scattered reads, others in blocks of whole pages, split in the cache. An incomplete last
// record moves to the next block.
#include "data/dataset.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/size.h"
#include "data/source/channels_last.h"
#include "data/source/file_list.h"
#include "data/source/reader.h"
#include "data/source/byte_order.h"
#include "tensor/tensor.h"

enum {
	BLOCK_BYTES = 128 * 1024,
	PAGE = 4096,
	MAX_BYTES = 1 << 20,
	LARGE_FIELD = 512,
	NO_COLUMN = CHI_MAX_COLUMNS
};

typedef struct {
	size_t column;
	size_t bytes, width;
	choir_dtype dtype;
	bool reversed;
	int64_t channels, pixels; // 0: in column order
	int64_t limit;
} field;

typedef struct {
	choir_dataset base;
	chi_glob paths;
	choir_compression compression;
	uint64_t header;
	size_t n, record;
	field field[CHI_MAX_COLUMNS];
	bool scatter; // no field needs inspection
	chi_reader *reader;
	size_t next_path;
	int64_t number;
	size_t rest;
	unsigned char *block;
	// Blocks go to begin; a record fits before it.
	size_t begin, capacity;
	size_t first, last;
	uint64_t place;
} fixed;

static const char what[] = "fixed dataset";

static choir_compression compression_of(const fixed *f, const char *path)
{
	const size_t n = strlen(path);
	if (f->compression != CHOIR_COMPRESSION_AUTO)
		return f->compression;
	return n > 3 && strcmp(path + n - 3, ".gz") == 0 ? CHOIR_COMPRESSION_GZIP
													 : CHOIR_COMPRESSION_NONE;
}

static chi_reader *open_path(const fixed *f, size_t i)
{
	const char *path = f->paths.path[i];
	return chi_reader_open_as(path, compression_of(f, path));
}

// CHOIR_UNKNOWN_CARDINALITY if compressed.
static choir_status count_records(const fixed *f, const chi_reader *r, int64_t *records)
{
	const uint64_t size = chi_reader_size(r);
	*records = CHOIR_UNKNOWN_CARDINALITY;
	if (chi_reader_compressed(r))
		return CHOIR_OK;
	if (size < f->header || (size - f->header) % f->record != 0)
		return choir_fail(CHOIR_CORRUPT,
				"%s: %" PRIu64 " bytes; %" PRIu64 " of header and a multiple of %zu needed",
				chi_reader_name(r), size, f->header, f->record);
	*records = (int64_t) ((size - f->header) / f->record);
	return CHOIR_OK;
}

static choir_status count_all(const fixed *f, int64_t *records)
{
	*records = 0;
	for (size_t i = 0; i < f->paths.n; i++) {
		int64_t n;
		chi_reader *r = open_path(f, i);
		CHOIR_TRY(chi_made(r));
		const choir_status status = count_records(f, r, &n);
		chi_reader_close(r);
		CHOIR_TRY(status);
		if (n == CHOIR_UNKNOWN_CARDINALITY || *records == CHOIR_UNKNOWN_CARDINALITY ||
				!chi_int64_add(*records, n, records))
			*records = CHOIR_UNKNOWN_CARDINALITY;
	}
	return CHOIR_OK;
}

static void close_file(fixed *f)
{
	chi_reader_close(f->reader);
	f->reader = NULL;
}

static choir_status pass_header(fixed *f)
{
	size_t got;
	CHOIR_TRY(chi_reader_read(f->reader, NULL, (size_t) f->header, &got));
	if (got == f->header)
		return CHOIR_OK;
	return choir_fail(CHOIR_CORRUPT, "%s: %zu bytes, %" PRIu64 " of header needed",
			chi_reader_name(f->reader), got, f->header);
}

static choir_status open_next(fixed *f)
{
	int64_t records;
	if (f->next_path == f->paths.n)
		return CHOIR_END;
	f->reader = open_path(f, f->next_path);
	CHOIR_TRY(chi_made(f->reader));
	f->next_path++;
	f->number = 0;
	f->rest = 0;
	f->first = f->last = f->begin;
	f->place = f->header;
	CHOIR_TRY(count_records(f, f->reader, &records));
	return pass_header(f);
}

static int64_t integer_at(choir_dtype dtype, const unsigned char *p)
{
	int64_t i64;
	int32_t i32;
	if (dtype == CHOIR_I64) {
		memcpy(&i64, p, sizeof i64);
		return i64;
	}
	if (dtype == CHOIR_I32) {
		memcpy(&i32, p, sizeof i32);
		return i32;
	}
	return *p;
}

static choir_status check_values(
		const fixed *f, int64_t record, const field *a, const unsigned char *values)
{
	const int64_t limit = a->dtype == CHOIR_BOOL ? 2 : a->limit;
	for (size_t at = 0; limit > 0 && at < a->bytes; at += a->width) {
		const int64_t v = integer_at(a->dtype, values + at);
		if (v < 0 || v >= limit)
			return choir_fail(CHOIR_CORRUPT,
					"%s: record %" PRId64 " at byte %" PRIu64 ": \"%s\" is %" PRId64
					", 0 to %" PRId64 " are possible",
					chi_reader_name(f->reader), record, f->header + (uint64_t) record * f->record,
					f->base.spec.column[a->column].name, v, limit - 1);
	}
	return CHOIR_OK;
}

static choir_status take_apart(
		const fixed *f, int64_t record, unsigned char *p, void *const column[], int64_t row)
{
	for (size_t i = 0; i < f->n; p += f->field[i].bytes, i++) {
		const field *a = &f->field[i];
		if (a->column == NO_COLUMN)
			continue;
		if (a->reversed)
			chi_reverse_bytes(p, a->bytes, a->width);
		CHOIR_TRY(check_values(f, record, a, p));
		if (!column[a->column])
			continue;
		unsigned char *to = (unsigned char *) column[a->column] + (size_t) row * a->bytes;
		if (a->channels)
			chi_channels_last(to, p, (size_t) a->channels, (size_t) a->pixels, a->width);
		else
			memcpy(to, p, a->bytes);
	}
	return CHOIR_OK;
}

// Whole blocks: damage of a small compressed file shows before any record is delivered.
static choir_status fill_block(fixed *f)
{
	const size_t left = f->last - f->first;
	size_t got;
	memmove(f->block + f->begin - left, f->block + f->first, left);
	f->first = f->begin - left;
	f->last = f->begin;
	CHOIR_TRY(chi_reader_read(
			f->reader, f->block + f->begin, f->capacity - (size_t) (f->place % PAGE), &got));
	f->last += got;
	f->place += got;
	return CHOIR_OK;
}

static choir_status read_block(fixed *f, void *const column[], int64_t want, size_t *got)
{
	if (f->last - f->first < f->record)
		CHOIR_TRY(fill_block(f));
	const size_t left = f->last - f->first, there = left / f->record;
	const size_t records = (uint64_t) want < there ? (size_t) want : there;
	for (size_t i = 0; i < records; i++, f->first += f->record)
		CHOIR_TRY(
				take_apart(f, f->number + (int64_t) i, f->block + f->first, column, (int64_t) i));
	*got = records ? records * f->record : left;
	return CHOIR_OK;
}

static choir_status read_records(fixed *f, void *to, int64_t want, size_t *got)
{
	size_t bytes;
	if (!chi_size_multiply((size_t) want, f->record, &bytes) || bytes > MAX_BYTES)
		bytes = f->record < MAX_BYTES ? MAX_BYTES / f->record * f->record : f->record;
	return chi_reader_read(f->reader, to, bytes, got);
}

// Unwanted fields go to the block.
static choir_status read_scattered(fixed *f, void *const column[], int64_t want, size_t *got)
{
	chi_file_part parts[CHI_MAX_PARTS];
	if (f->n == 1 && column[0])
		return read_records(f, column[0], want, got);
	const size_t max = CHI_MAX_PARTS / f->n;
	const size_t records = (uint64_t) want < max ? (size_t) want : max;
	size_t n = 0;
	for (size_t i = 0; i < records; i++)
		for (size_t k = 0; k < f->n; k++) {
			const field *a = &f->field[k];
			char *to = a->column == NO_COLUMN ? NULL : column[a->column];
			parts[n++] = (chi_file_part){ to ? to + i * a->bytes : (char *) f->block, a->bytes };
		}
	return chi_reader_read_parts(f->reader, parts, n, got);
}

static choir_status read_file(fixed *f, void *const column[], int64_t want, int64_t *got)
{
	size_t bytes = 0;
	const bool scatter = f->scatter && !chi_reader_compressed(f->reader);
	if (f->rest == 0)
		CHOIR_TRY(scatter ? read_scattered(f, column, want, &bytes)
						  : read_block(f, column, want, &bytes));
	*got = (int64_t) (bytes / f->record);
	if (bytes % f->record)
		f->rest = bytes % f->record;
	if (*got == 0 && f->rest)
		return choir_fail(CHOIR_CORRUPT,
				"%s: ends %zu bytes into record %" PRId64 "; each has %zu bytes",
				chi_reader_name(f->reader), f->rest, f->number, f->record);
	f->number += *got;
	return *got ? CHOIR_OK : CHOIR_END;
}

static choir_status fixed_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	fixed *f = (fixed *) d;
	for (;;) {
		if (!f->reader)
			CHOIR_TRY(open_next(f));
		const choir_status status = read_file(f, column, want, got);
		if (status != CHOIR_END)
			return status;
		close_file(f);
	}
}

static choir_status fixed_rewind(choir_dataset *d)
{
	fixed *f = (fixed *) d;
	close_file(f);
	f->next_path = 0;
	return CHOIR_OK;
}

static choir_status fixed_seek(choir_dataset *d, int64_t elements)
{
	fixed *f = (fixed *) d;
	int64_t left = elements;
	while (left > 0) {
		size_t got, bytes;
		if (!f->reader) {
			const choir_status status = open_next(f);
			if (status != CHOIR_OK)
				return status == CHOIR_END ? chi_dataset_too_short(d, elements - left, elements)
										   : status;
		}
		if (!chi_size_multiply((size_t) left, f->record, &bytes))
			bytes = SIZE_MAX;
		CHOIR_TRY(chi_reader_read(f->reader, NULL, bytes, &got));
		f->place += got;
		f->number += (int64_t) (got / f->record);
		left -= (int64_t) (got / f->record);
		if (left > 0)
			close_file(f);
	}
	return CHOIR_OK;
}

static void fixed_free(choir_dataset *d)
{
	fixed *f = (fixed *) d;
	close_file(f);
	chi_glob_free(&f->paths);
	chi_free(f->block);
}

static const chi_stage fixed_stage = {
	.name = what,
	.read = fixed_read,
	.rewind = fixed_rewind,
	.free = fixed_free,
	.seek = fixed_seek,
	.files = CHI_FILES_HERE,
	.shard_files = chi_paths_shard,
	.path = chi_paths_at,
};

static choir_status check_field(const choir_field *a, size_t i)
{
	const char *name = a->name ? a->name : "(no name)";
	const bool integer = a->dtype == CHOIR_U8 || a->dtype == CHOIR_I32 || a->dtype == CHOIR_I64;
	if (a->channels_first && a->shape.rank < 2)
		return choir_fail(CHOIR_INVALID,
				"%s: field %zu, \"%s\": channels_first needs a shape of rank 2 or more", what, i,
				name);
	if (a->limit < 0 || (a->limit > 0 && !integer))
		return choir_fail(CHOIR_INVALID,
				"%s: field %zu, \"%s\": a limit of %" PRId64
				" for %s; 0 or more, and dtype u8, i32 or i64 needed",
				what, i, name, a->limit, choir_dtype_name(a->dtype));
	return CHOIR_OK;
}

static choir_status to_columns(
		size_t n, const choir_field fields[], size_t *count, choir_column columns[])
{
	*count = 0;
	if (n < 1 || n > CHI_MAX_COLUMNS || !fields)
		return choir_fail(CHOIR_INVALID, "%s: %zu fields given; 1 to %d needed", what,
				fields ? n : 0, (int) CHI_MAX_COLUMNS);
	for (size_t i = 0; i < n; i++) {
		CHOIR_TRY(check_field(&fields[i], i));
		if (fields[i].name)
			columns[(*count)++] = (choir_column){
				.name = fields[i].name, .dtype = fields[i].dtype, .shape = fields[i].shape
			};
	}
	return CHOIR_OK;
}

static choir_status set_field(fixed *f, const choir_field *from, size_t *column)
{
	field *a = &f->field[f->n++];
	a->column = from->name ? (*column)++ : NO_COLUMN;
	a->dtype = from->dtype;
	a->width = (unsigned) from->dtype <= CHOIR_BF16 ? chi_dtype_size(from->dtype) : 0;
	a->reversed = a->width > 1 && chi_order_differs(from->big_endian);
	a->limit = from->limit;
	if (a->width == 0 || choir_shape_elements(&from->shape) < 1 ||
			!chi_shape_bytes(&from->shape, from->dtype, &a->bytes) ||
			!chi_size_add(f->record, a->bytes, &f->record) || f->record > INT32_MAX)
		return choir_fail(CHOIR_INVALID,
				"%s: field %zu: its dtype or shape is invalid, or the record is larger than 2 GiB",
				what, f->n - 1);
	if (from->channels_first) {
		a->channels = from->shape.dim[from->shape.rank - 1];
		a->pixels = choir_shape_elements(&from->shape) / a->channels;
	}
	if (a->reversed || a->channels || a->limit || a->dtype == CHOIR_BOOL)
		f->scatter = false;
	return CHOIR_OK;
}

static choir_status set_fields(fixed *f, size_t n, const choir_field fields[])
{
	size_t column = 0;
	f->scatter = true;
	for (size_t i = 0; i < n; i++)
		CHOIR_TRY(set_field(f, &fields[i], &column));
	f->scatter = f->scatter && f->record / n >= LARGE_FIELD;
	const size_t pages = (f->record + PAGE - 1) / PAGE * PAGE; // a record has at most 2 GiB
	f->begin = f->first = f->last = pages;
	f->capacity = pages < BLOCK_BYTES ? BLOCK_BYTES : pages + PAGE;
	f->block = chi_alloc_aligned(f->begin + f->capacity);
	CHOIR_TRY(chi_made(f->block));
	CHOIR_TRY(count_all(f, &f->base.spec.examples));
	f->base.elements = f->base.spec.examples;
	f->base.files = (int64_t) f->paths.n;
	return CHOIR_OK;
}

static choir_status check_options(choir_fixed_options *o, const choir_fixed_options *given)
{
	if (chi_options_take("the options'", o, sizeof *o, given) != CHOIR_OK)
		return chi_error_prefix("%s", what);
	if ((unsigned) o->compression > CHOIR_COMPRESSION_ZLIB)
		return choir_fail(CHOIR_INVALID, "%s: the compression is unknown", what);
	if (o->header < 0)
		return choir_fail(CHOIR_INVALID, "%s: a header of %" PRId64 " bytes; 0 or more needed",
				what, o->header);
	return CHOIR_OK;
}

choir_dataset *choir_fixed_length_record_dataset_new(
		const char *path, size_t n, const choir_field fields[], const choir_fixed_options *options)
{
	choir_fixed_options o;
	choir_column columns[CHI_MAX_COLUMNS];
	chi_glob paths = { .n = 0 };
	size_t count;
	if (check_options(&o, options) != CHOIR_OK ||
			to_columns(n, fields, &count, columns) != CHOIR_OK ||
			chi_files_paths(&paths, what, path, o.files) != CHOIR_OK)
		return NULL;
	fixed *f = chi_source_new(&fixed_stage, sizeof *f, count, columns, CHOIR_UNKNOWN_CARDINALITY);
	if (!f) {
		chi_glob_free(&paths);
		return NULL;
	}
	f->paths = paths;
	f->base.paths = &f->paths;
	f->compression = o.compression;
	f->header = (uint64_t) o.header;
	if (set_fields(f, n, fields) == CHOIR_OK)
		return &f->base;
	return chi_dataset_discard(&f->base);
}

choir_dataset *choir_cifar10_dataset_new(const char *directory, bool test)
{
	static const choir_field fields[] = {
		{ .name = "label", .dtype = CHOIR_U8, .limit = 10 },
		{ .name = "image",
				.dtype = CHOIR_U8,
				.shape = { 3, { 32, 32, 3 } },
				.channels_first = true },
	};
	if (!directory)
		return chi_fail_null(CHOIR_INVALID, "cifar10 dataset: the directory is NULL");
	const char *name = test ? "/test_batch.bin" : "/data_batch_*.bin";
	const size_t bytes = strlen(directory) + strlen(name) + 1;
	char *path = chi_alloc(bytes);
	if (!path)
		return NULL;
	snprintf(path, bytes, "%s%s", directory, name);
	choir_dataset *d = choir_fixed_length_record_dataset_new(
			path, sizeof fields / sizeof fields[0], fields, NULL);
	chi_free(path);
	return d;
}
