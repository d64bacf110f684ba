// The source is always read as in its first pass, whichever pass fills the cache.
#include "data/dataset/cache_file.h"

#include <string.h>

#include "base/alloc.h"

typedef struct {
	choir_dataset base;
	bool whole;
	int64_t *sizes;
	int64_t kept, capacity;
	int64_t next;
	chi_cache_file *file;
} cache;

static bool grow(cache *c)
{
	choir_dataset *d = &c->base;
	const int64_t unit = chi_dataset_unit(d);
	int64_t capacity = c->capacity ? 2 * c->capacity : chi_block_examples(d) / unit + 1;
	size_t had = (size_t) c->capacity;
	if (d->spec.batch && !chi_grow(&c->sizes, &had, (size_t) capacity, sizeof *c->sizes))
		return false;
	if (!chi_row_buffer_grow(d, &c->base.rows, c->kept * unit, capacity * unit))
		return false;
	c->capacity = capacity;
	return true;
}

static choir_status keep_more(cache *c, int64_t want, int64_t *got)
{
	choir_dataset *d = &c->base;
	void *to[CHI_MAX_COLUMNS];
	const int64_t unit = chi_dataset_unit(d);
	if (c->kept == c->capacity && !grow(c))
		return choir_error_status();
	if (!d->spec.batch && want > c->capacity - c->kept)
		want = c->capacity - c->kept;
	chi_columns_move(d, c->base.rows.column, c->kept * unit, to);
	CHOIR_TRY(chi_dataset_read(d->from[0], to, want, got));
	if (d->spec.batch)
		c->sizes[c->kept] = *got;
	c->kept += d->spec.batch ? 1 : *got;
	return CHOIR_OK;
}

static choir_status memory_read(cache *c, void *const column[], int64_t want, int64_t *got)
{
	choir_dataset *d = &c->base;
	int64_t n = c->kept - c->next;
	if (n == 0) {
		if (c->whole)
			return CHOIR_END;
		choir_status status = keep_more(c, want, &n);
		c->whole = status == CHOIR_END;
		CHOIR_TRY(status);
	}
	if (d->spec.batch)
		*got = c->sizes[c->next];
	else
		*got = n < want ? n : want;
	CHOIR_TRY(chi_row_buffer_copy(d, column, &c->base.rows, c->next * chi_dataset_unit(d), *got));
	c->next += d->spec.batch ? 1 : *got;
	return CHOIR_OK;
}

static choir_status file_read(cache *c, void *const column[], int64_t want, int64_t *got)
{
	choir_dataset *d = &c->base;
	if (chi_cache_file_whole(c->file)) {
		CHOIR_TRY(chi_cache_file_read(c->file, d, column, got));
		return CHOIR_OK;
	}
	c->kept = 0;
	choir_status status = keep_more(c, d->spec.batch ? want : 1, got);
	if (status == CHOIR_END)
		CHOIR_TRY(chi_cache_file_finish(c->file));
	CHOIR_TRY(status);
	CHOIR_TRY(chi_cache_file_write(c->file, d, c->base.rows.column, *got));
	return chi_row_buffer_copy(d, column, &c->base.rows, 0, *got);
}

static choir_status cache_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	cache *c = (cache *) d;
	return c->file ? file_read(c, column, want, got) : memory_read(c, column, want, got);
}

static choir_status cache_rewind(choir_dataset *d)
{
	cache *c = (cache *) d;
	c->next = 0;
	if (c->file)
		CHOIR_TRY(chi_cache_file_rewind(c->file));
	if (c->whole || (c->file && chi_cache_file_whole(c->file)))
		return CHOIR_OK;
	c->kept = 0;
	return chi_dataset_begin(d->from[0], 0);
}

static choir_status cache_seek(choir_dataset *d, int64_t elements)
{
	cache *c = (cache *) d;
	if (!c->whole)
		return chi_dataset_read_over(d, 0, elements);
	c->next = elements < c->kept ? elements : c->kept;
	return c->next == elements ? CHOIR_OK : chi_dataset_too_short(d, c->next, elements);
}

static choir_status cache_share(choir_dataset *d, int64_t count, int64_t index)
{
	cache *c = (cache *) d;
	return c->file ? chi_cache_file_share(c->file, count, index) : CHOIR_OK;
}

static void cache_free(choir_dataset *d)
{
	cache *c = (cache *) d;
	chi_free(c->sizes);
	chi_cache_file_free(c->file);
}

static const chi_stage cache_stage = {
	.name = "cache",
	.read = cache_read,
	.rewind = cache_rewind,
	.free = cache_free,
	.seek = cache_seek,
	.share = cache_share,
};

choir_dataset *choir_dataset_cache(choir_dataset *from, const char *path)
{
	if (!chi_dataset_given(from, "cache"))
		return NULL;
	if (from->spec.endless)
		return chi_refuse(from, CHOIR_INVALID,
				"cache: the dataset repeats for ever, so the cache would never "
				"be complete; put repeat after cache");
	cache *c = chi_transform_new(&cache_stage, sizeof *c, from);
	if (!c)
		return NULL;
	if (path && !(c->file = chi_cache_file_new(path, &c->base)))
		return chi_dataset_discard(&c->base);
	return &c->base;
}
