// IDX files, the format of MNIST: two zero bytes, a value type, a rank, the dimensions as
// big-endian 32-bit numbers, then all values packed, big-endian. Axis 0 counts the examples. The
// header is read when the dataset is made and its promise is held against the size of the file
// before any memory is asked for; the values are read when they are wanted. A plain file is read
// in blocks straight into the rows of who asked. A compressed one is unpacked to memory at its
// first use, or as a stream where that would be much.
#include "data/step.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "data/source/reader.h"
#include "tensor/tensor.h"

enum { MAGIC_BYTES = 4, DIM_BYTES = 4, MAX_RANK = CHOIR_MAX_RANK }; // batches have as many axes
enum { MOST_IN_MEMORY = 64 << 20 }; // bytes of a compressed file's values

typedef struct {
	choir_dtype dtype;
	int rank;
	int64_t dim[MAX_RANK];
	size_t bytes; // of the header
	int64_t promised; // bytes of values
	char text[160]; // the promise in words
} header;

typedef struct {
	choir_dataset base;
	chi_reader *reader;
	size_t header_bytes, value_bytes;
	char *memory; // all values, if they were read to memory
	int64_t next; // stream: the number of the next example
} idx;

// The format's value types; those without a dtype here have a name only.
static const struct {
	unsigned char code;
	const char *name;
	bool readable;
	choir_dtype dtype;
} types[] = {
	{ 0x08, "u8", true, CHOIR_U8 },
	{ 0x09, "i8", false, 0 },
	{ 0x0b, "i16", false, 0 },
	{ 0x0c, "i32", true, CHOIR_I32 },
	{ 0x0d, "f32", true, CHOIR_F32 },
	{ 0x0e, "f64", true, CHOIR_F64 },
};

static choir_status find_type(const char *name, unsigned char code, choir_dtype *dtype)
{
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		if (types[i].code != code)
			continue;
		*dtype = types[i].dtype;
		if (types[i].readable)
			return CHOIR_OK;
		return choir_fail(CHOIR_UNSUPPORTED,
				"%s: the values are %s, which Choir has no dtype for; it reads u8, i32, f32, f64",
				name, types[i].name);
	}
	return choir_fail(CHOIR_CORRUPT,
			"%s: value type 0x%02x, IDX has 08, 09, 0b, 0c, 0d and 0e only", name, code);
}

static choir_status read_magic(chi_reader *r, header *h)
{
	const char *name = chi_reader_name(r);
	unsigned char m[MAGIC_BYTES];
	size_t got;
	CHOIR_TRY(chi_reader_read(r, m, sizeof m, &got));
	if (got == 0)
		return choir_fail(CHOIR_CORRUPT, "%s: empty, an IDX header has at least 8 bytes", name);
	if (got < sizeof m)
		return choir_fail(CHOIR_CORRUPT, "%s: ends after %zu bytes, an IDX header has at least 8",
				name, got);
	if (m[0] || m[1])
		return choir_fail(CHOIR_CORRUPT,
				"%s: begins with %02x %02x %02x %02x, an IDX file with 00 00, type and rank", name,
				m[0], m[1], m[2], m[3]);
	CHOIR_TRY(find_type(name, m[2], &h->dtype));
	if (m[3] == 0)
		return choir_fail(
				CHOIR_CORRUPT, "%s: rank 0, at least 1 needed (axis 0 counts the examples)", name);
	if (m[3] > MAX_RANK)
		return choir_fail(
				CHOIR_UNSUPPORTED, "%s: rank %d, at most %d possible", name, m[3], MAX_RANK);
	h->rank = m[3];
	h->bytes = MAGIC_BYTES + DIM_BYTES * (size_t) h->rank;
	return CHOIR_OK;
}

static choir_status read_dims(chi_reader *r, header *h)
{
	const char *name = chi_reader_name(r);
	unsigned char bytes[DIM_BYTES * MAX_RANK];
	size_t got, need = DIM_BYTES * (size_t) h->rank;
	CHOIR_TRY(chi_reader_read(r, bytes, need, &got));
	if (got < need)
		return choir_fail(CHOIR_CORRUPT, "%s: ends after %zu bytes, its header of rank %d has %zu",
				name, MAGIC_BYTES + got, h->rank, h->bytes);
	for (int i = 0; i < h->rank; i++) {
		uint32_t dim;
		memcpy(&dim, bytes + DIM_BYTES * i, sizeof dim);
		h->dim[i] = be32toh(dim);
		if (i > 0 && h->dim[i] == 0)
			return choir_fail(CHOIR_CORRUPT, "%s: dimension %d is 0, at least 1 needed", name, i);
	}
	return CHOIR_OK;
}

// The promise as a product, in words; the values' bytes as a factor where there are several.
static void describe(header *h)
{
	size_t at = 0;
	for (int i = 0; i < h->rank; i++)
		at += (size_t) snprintf(h->text + at, sizeof h->text - at, "%s%lld", i ? " x " : "",
				(long long) h->dim[i]);
	if (chi_dtype_size(h->dtype) > 1)
		snprintf(h->text + at, sizeof h->text - at, " x %zu", chi_dtype_size(h->dtype));
}

// Holds the promise against the file, before anybody believes it.
static choir_status check_promise(chi_reader *r, header *h)
{
	const char *name = chi_reader_name(r);
	describe(h);
	h->promised = (int64_t) chi_dtype_size(h->dtype);
	for (int i = h->rank - 1; i >= 0; i--)
		if (!chi_int64_multiply(h->promised, h->dim[i], &h->promised))
			return choir_fail(CHOIR_CORRUPT,
					"%s: %zu bytes of header promise %s bytes, more than any file has", name,
					h->bytes, h->text);
	uint64_t size = chi_reader_size(r), left = size > h->bytes ? size - h->bytes : 0;
	uint64_t promised = (uint64_t) h->promised;
	bool compressed = chi_reader_compressed(r);
	if (compressed ? promised <= left : promised == left)
		return CHOIR_OK;
	return choir_fail(CHOIR_CORRUPT,
			"%s: %zu bytes of header promise %s = %lld bytes, the file has %s%llu behind it", name,
			h->bytes, h->text, (long long) h->promised, compressed ? "at most " : "",
			(unsigned long long) left);
}

static void to_host_order(void *values, size_t bytes, size_t value_bytes)
{
	char *p = values;
	for (size_t i = 0; value_bytes == sizeof(uint32_t) && i < bytes; i += sizeof(uint32_t)) {
		uint32_t v;
		memcpy(&v, p + i, sizeof v);
		v = be32toh(v);
		memcpy(p + i, &v, sizeof v);
	}
	for (size_t i = 0; value_bytes == sizeof(uint64_t) && i < bytes; i += sizeof(uint64_t)) {
		uint64_t v;
		memcpy(&v, p + i, sizeof v);
		v = be64toh(v);
		memcpy(p + i, &v, sizeof v);
	}
}

// Exactly so many bytes of values; a compressed file shows only here that it has fewer.
static choir_status read_values(idx *x, void *to, size_t bytes, int64_t before)
{
	size_t got;
	CHOIR_TRY(chi_reader_read(x->reader, to, bytes, &got));
	if (got == bytes)
		return CHOIR_OK;
	int64_t promised = x->base.spec.examples * (int64_t) x->base.bytes[0];
	return choir_fail(CHOIR_CORRUPT,
			"%s: %zu bytes of header promise %lld bytes of values, the file has %lld",
			chi_reader_name(x->reader), x->header_bytes, (long long) promised,
			(long long) (before + (int64_t) got));
}

static choir_status to_first_value(idx *x)
{
	size_t got;
	CHOIR_TRY(chi_reader_rewind(x->reader));
	return chi_reader_read(x->reader, NULL, x->header_bytes, &got);
}

static choir_status read_all(idx *x, char *memory, size_t bytes)
{
	CHOIR_TRY(to_first_value(x));
	CHOIR_TRY(read_values(x, memory, bytes, 0));
	CHOIR_TRY(chi_reader_end(x->reader));
	to_host_order(memory, bytes, x->value_bytes);
	return CHOIR_OK;
}

// Random access: all values come to memory with the first use; the file is not needed any more.
static choir_status load(idx *x)
{
	if (x->memory)
		return CHOIR_OK;
	size_t bytes = (size_t) x->base.spec.examples * x->base.bytes[0];
	char *memory = chi_alloc_aligned(bytes);
	if (!memory)
		return CHOIR_NO_MEMORY;
	choir_status status = read_all(x, memory, bytes);
	if (status != CHOIR_OK) {
		chi_free(memory);
		return status;
	}
	x->memory = memory;
	chi_reader_close(x->reader);
	x->reader = NULL;
	return CHOIR_OK;
}

static choir_status idx_range(choir_dataset *d, void *const column[], int64_t first, int64_t count)
{
	idx *x = (idx *) d;
	CHOIR_TRY(load(x));
	if (column[0])
		memcpy(column[0], x->memory + (size_t) first * d->bytes[0], (size_t) count * d->bytes[0]);
	return CHOIR_OK;
}

static const void *idx_peek(choir_dataset *d, size_t column, int64_t first, int64_t count)
{
	(void) column;
	(void) count;
	idx *x = (idx *) d;
	if (!d->random || load(x) != CHOIR_OK)
		return NULL;
	return x->memory + (size_t) first * d->bytes[0];
}

static choir_status idx_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	idx *x = (idx *) d;
	int64_t left = d->spec.examples - x->next, n = want < left ? want : left;
	if (n == 0)
		return CHOIR_END;
	size_t bytes = (size_t) n * d->bytes[0];
	CHOIR_TRY(read_values(x, column[0], bytes, x->next * (int64_t) d->bytes[0]));
	if (n == left) // before the last examples are believed
		CHOIR_TRY(chi_reader_end(x->reader));
	if (column[0])
		to_host_order(column[0], bytes, x->value_bytes);
	x->next += n;
	*got = n;
	return CHOIR_OK;
}

static choir_status idx_rewind(choir_dataset *d)
{
	idx *x = (idx *) d;
	x->next = 0;
	return to_first_value(x);
}

static void idx_free(choir_dataset *d)
{
	idx *x = (idx *) d;
	chi_reader_close(x->reader);
	chi_free(x->memory);
}

static choir_status idx_seek(choir_dataset *d, int64_t elements)
{
	idx *x = (idx *) d;
	size_t got, bytes = (size_t) elements * d->bytes[0];
	CHOIR_TRY(chi_reader_read(x->reader, NULL, bytes, &got));
	x->next = elements;
	return got == bytes ? CHOIR_OK : chi_dataset_too_short(d, x->next, elements);
}

// One file cannot be shared out by files; the core says so.
static choir_status idx_shard_files(choir_dataset *d, int64_t count, int64_t index)
{
	(void) d;
	(void) count;
	(void) index;
	return CHOIR_OK;
}

static const chi_step idx_step = {
	.name = "idx dataset",
	.range = idx_range,
	.read = idx_read,
	.rewind = idx_rewind,
	.peek = idx_peek,
	.free = idx_free,
	.seek = idx_seek,
	.files = CHI_FILES_HERE,
	.shard_files = idx_shard_files,
};

static idx *make(chi_reader *r, const char *column)
{
	header h;
	if (read_magic(r, &h) != CHOIR_OK || read_dims(r, &h) != CHOIR_OK ||
			check_promise(r, &h) != CHOIR_OK)
		return NULL;
	if (h.promised == 0 && chi_reader_end(r) != CHOIR_OK)
		return NULL;
	choir_column c = { .name = column, .dtype = h.dtype, .shape = { .rank = h.rank - 1 } };
	memcpy(c.shape.dim, h.dim + 1, (size_t) c.shape.rank * sizeof h.dim[0]);
	idx *x = chi_source_new(&idx_step, sizeof *x, 1, &c, h.dim[0]);
	if (!x)
		return NULL;
	x->reader = r;
	x->header_bytes = h.bytes;
	x->value_bytes = chi_dtype_size(h.dtype);
	x->base.files = 1;
	x->base.random = chi_reader_compressed(r) && h.promised <= MOST_IN_MEMORY;
	return x;
}

choir_dataset *choir_idx_dataset_new(const char *path, const char *column)
{
	if (!path) {
		choir_fail(CHOIR_INVALID, "idx dataset: the path is NULL");
		return NULL;
	}
	chi_reader *r = chi_reader_open(path);
	if (!r)
		return NULL;
	idx *x = make(r, column);
	if (!x) {
		chi_reader_close(r);
		return NULL;
	}
	return &x->base;
}
