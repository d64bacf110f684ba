// A magic number, the chain's signature, the worker's share, then elements: a head (examples,
// bytes, checksum) and columns, packed, or dimensions and values per example. A head with 0
// examples is the end. Native byte order.
#include "data/dataset/cache_file.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/size.h"
#include "base/text.h"
#include "tensor/tensor.h"

static const uint64_t magic = UINT64_C(0x32656863612d6368);

typedef struct {
	int64_t count, index;
} part;

typedef struct {
	uint64_t magic, signature;
	part of;
} beginning;

typedef struct {
	int64_t examples;
	uint64_t bytes, sum;
} head;

struct chi_cache_file {
	char *path;
	uint64_t signature;
	part of;
	part found;
	chi_file *file;
	chi_writer *writer;
	uint64_t at;
	unsigned char *bytes;
	size_t length, capacity;
};

static uint64_t checksum(const unsigned char *bytes, size_t length)
{
	uint64_t sum = length, word;
	for (; length >= sizeof word; length -= sizeof word, bytes += sizeof word) {
		memcpy(&word, bytes, sizeof word);
		sum = chi_hash_mix(sum ^ word);
	}
	word = 0;
	if (length > 0)
		memcpy(&word, bytes, length);
	return chi_hash_mix(sum ^ word);
}

static choir_status corrupt(const chi_cache_file *f, uint64_t at, const char *what)
{
	char name[256];
	return choir_fail(CHOIR_CORRUPT,
			"cache: %s: byte %llu: %s; remove the file to rebuild the cache",
			chi_text_clean(f->path, name, sizeof name), (unsigned long long) at, what);
}

static choir_status check_start(chi_cache_file *f)
{
	beginning start;
	char name[256];
	if (chi_file_size(f->file) < sizeof start)
		return corrupt(f, 0, "too short for a cache file");
	CHOIR_TRY(chi_file_read(f->file, 0, &start, sizeof start));
	if (start.magic != magic)
		return corrupt(f, 0, "not a cache file, or one of another byte order");
	if (start.signature != f->signature)
		return choir_fail(CHOIR_INVALID,
				"cache: %s: made by a chain of other stages or arguments; remove "
				"the file, or use another path",
				chi_text_clean(f->path, name, sizeof name));
	f->found = start.of;
	f->at = sizeof start;
	return CHOIR_OK;
}

static choir_status check_part(const chi_cache_file *f)
{
	char name[256];
	if (f->found.count == f->of.count && f->found.index == f->of.index)
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID,
			"cache: %s: holds the share of worker %lld of %lld, but this is worker %lld of %lld; "
			"give each worker its own path",
			chi_text_clean(f->path, name, sizeof name), (long long) f->found.index,
			(long long) f->found.count, (long long) f->of.index, (long long) f->of.count);
}

static void close_file(chi_cache_file *f)
{
	chi_file_close(f->file);
	f->file = NULL;
}

static choir_status find(chi_cache_file *f)
{
	chi_error before;
	chi_error_save(&before);
	f->file = chi_file_open(f->path);
	if (!f->file && choir_error_status() != CHOIR_NOT_FOUND)
		return choir_error_status();
	if (!f->file) {
		chi_error_restore(&before);
		return CHOIR_OK;
	}
	const choir_status status = check_start(f);
	if (status != CHOIR_OK)
		close_file(f);
	return status;
}

chi_cache_file *chi_cache_file_new(const char *path, const choir_dataset *d)
{
	chi_cache_file *f = chi_alloc(sizeof *f);
	if (!f)
		return NULL;
	f->signature = chi_dataset_signature(d);
	f->of.count = 1;
	f->path = chi_strdup(path);
	if (f->path && find(f) == CHOIR_OK)
		return f;
	chi_cache_file_free(f);
	return NULL;
}

choir_status chi_cache_file_share(chi_cache_file *f, int64_t count, int64_t index)
{
	f->of = (part){ count, index };
	return f->file ? check_part(f) : CHOIR_OK;
}

void chi_cache_file_free(chi_cache_file *f)
{
	if (!f)
		return;
	if (f->writer)
		chi_writer_abort(f->writer);
	chi_file_close(f->file);
	chi_free(f->bytes);
	chi_free(f->path);
	chi_free(f);
}

bool chi_cache_file_whole(const chi_cache_file *f)
{
	return f->file != NULL;
}

choir_status chi_cache_file_rewind(chi_cache_file *f)
{
	f->at = sizeof(beginning);
	if (f->writer)
		chi_writer_abort(f->writer);
	f->writer = NULL;
	return CHOIR_OK;
}

static choir_status add(chi_cache_file *f, const void *bytes, size_t length)
{
	size_t need;
	if (!chi_size_add(f->length, length, &need) || !chi_grow(&f->bytes, &f->capacity, need, 1))
		return choir_fail(CHOIR_NO_MEMORY, "cache: an element has too many bytes");
	if (length > 0)
		memcpy(f->bytes + f->length, bytes, length);
	f->length = need;
	return CHOIR_OK;
}

static choir_status add_ragged_values(
		chi_cache_file *f, const choir_column *c, const chi_ragged_value *value, int64_t examples)
{
	for (int64_t k = 0; k < examples; k++) {
		size_t bytes;
		if (!chi_shape_bytes(&value[k].shape, c->dtype, &bytes))
			return choir_fail(CHOIR_INTERNAL, "cache: a ragged value has no valid shape");
		CHOIR_TRY(add(f, value[k].shape.dim, (size_t) c->shape.rank * sizeof(int64_t)));
		CHOIR_TRY(add(f, value[k].data, bytes));
	}
	return CHOIR_OK;
}

static choir_status begin(chi_cache_file *f)
{
	const beginning start = { magic, f->signature, f->of };
	if (f->writer)
		return CHOIR_OK;
	f->writer = chi_writer_new(f->path);
	return f->writer ? chi_writer_write(f->writer, &start, sizeof start) : choir_error_status();
}

choir_status chi_cache_file_write(
		chi_cache_file *f, const choir_dataset *d, void *const column[], int64_t examples)
{
	f->length = 0;
	CHOIR_TRY(begin(f));
	for (size_t i = 0; i < d->spec.n; i++) {
		const choir_column *c = &d->spec.column[i];
		if (chi_shape_varies(&c->shape))
			CHOIR_TRY(add_ragged_values(f, c, column[i], examples));
		else
			CHOIR_TRY(add(f, column[i], (size_t) examples * d->bytes[i]));
	}
	const head h = { examples, f->length, checksum(f->bytes, f->length) };
	CHOIR_TRY(chi_writer_write(f->writer, &h, sizeof h));
	return chi_writer_write(f->writer, f->bytes, f->length);
}

// One may have appeared meanwhile.
static choir_status check_name(chi_cache_file *f)
{
	choir_status status = find(f);
	if (status == CHOIR_OK && f->file)
		status = check_part(f);
	close_file(f);
	return status;
}

choir_status chi_cache_file_finish(chi_cache_file *f)
{
	const head end = { 0 };
	CHOIR_TRY(begin(f));
	choir_status status = chi_writer_write(f->writer, &end, sizeof end);
	if (status == CHOIR_OK)
		status = check_name(f);
	if (status == CHOIR_OK)
		status = chi_writer_commit(f->writer);
	else
		chi_writer_abort(f->writer);
	f->writer = NULL;
	CHOIR_TRY(status);
	return find(f);
}

static choir_status load(chi_cache_file *f, head *h)
{
	const uint64_t size = chi_file_size(f->file);
	if (f->at == sizeof(beginning))
		CHOIR_TRY(check_part(f));
	if (size - f->at < sizeof *h)
		return corrupt(f, f->at, "the file ends within an element");
	CHOIR_TRY(chi_file_read(f->file, f->at, h, sizeof *h));
	if (h->examples == 0)
		return size - f->at == sizeof *h ? CHOIR_END : corrupt(f, f->at, "data after the end");
	const uint64_t at = f->at + sizeof *h;
	if (h->bytes > size - at)
		return corrupt(f, f->at, "an element's size is larger than the rest of the file");
	if (!chi_grow(&f->bytes, &f->capacity, (size_t) h->bytes, 1))
		return choir_error_status();
	CHOIR_TRY(chi_file_read(f->file, at, f->bytes, (size_t) h->bytes));
	if (checksum(f->bytes, (size_t) h->bytes) != h->sum)
		return corrupt(f, at, "the element's checksum is wrong");
	f->length = (size_t) h->bytes;
	f->at = at + h->bytes;
	return CHOIR_OK;
}

static const unsigned char *take(chi_cache_file *f, size_t *at, size_t length)
{
	if (length > f->length - *at)
		return NULL;
	*at += length;
	return f->bytes + *at - length;
}

static choir_status take_ragged_values(chi_cache_file *f, const choir_column *c,
		chi_ragged_value *value, int64_t examples, size_t *at)
{
	chi_ragged_value none = { .data = NULL };
	for (int64_t k = 0; k < examples; k++) {
		choir_shape shape = c->shape;
		const unsigned char *dims = take(f, at, (size_t) shape.rank * sizeof(int64_t));
		size_t bytes;
		if (dims)
			memcpy(shape.dim, dims, (size_t) shape.rank * sizeof(int64_t));
		const bool fits = dims && chi_shape_fits(&c->shape, &shape) &&
				chi_shape_bytes(&shape, c->dtype, &bytes);
		const unsigned char *values = fits ? take(f, at, bytes) : NULL;
		if (!values)
			return corrupt(f, f->at - f->length + *at, "an example's shape is wrong");
		if (!value)
			continue;
		none = (chi_ragged_value){ .data = (void *) (uintptr_t) values, .shape = shape };
		CHOIR_TRY(chi_ragged_value_copy(&value[k], &none, c->dtype));
	}
	return CHOIR_OK;
}

choir_status chi_cache_file_read(
		chi_cache_file *f, const choir_dataset *d, void *const column[], int64_t *examples)
{
	head h;
	size_t at = 0, bytes;
	CHOIR_TRY(load(f, &h));
	if (h.examples < 0 || h.examples > chi_dataset_unit(d))
		return corrupt(f, f->at - f->length, "an element has a wrong number of examples");
	for (size_t i = 0; i < d->spec.n; i++) {
		const choir_column *c = &d->spec.column[i];
		if (chi_shape_varies(&c->shape)) {
			CHOIR_TRY(take_ragged_values(f, c, column[i], h.examples, &at));
			continue;
		}
		const unsigned char *from = chi_size_multiply((size_t) h.examples, d->bytes[i], &bytes)
				? take(f, &at, bytes)
				: NULL;
		if (!from)
			return corrupt(f, f->at - f->length + at, "an element has too few bytes");
		if (column[i])
			memcpy(column[i], from, bytes);
	}
	if (at != f->length)
		return corrupt(f, f->at - f->length + at, "an element has too many bytes");
	*examples = h.examples;
	return CHOIR_OK;
}
