// One file is open at a time.
#include "data/source/file_list.h"
#include "base/lock.h"
#include "data/dataset.h"

#include <string.h>

#include "base/alloc.h"
#include "data/component.h"

struct choir_files {
	chi_glob paths;
};

choir_files *choir_files_new(size_t n, const char *const patterns[])
{
	if (n == 0 || !patterns)
		return chi_fail_null(CHOIR_INVALID, "files: no names given; at least 1 needed");
	choir_files *f = chi_alloc(sizeof *f);
	choir_status status = CHOIR_OK;
	for (size_t i = 0; i < n && f && status == CHOIR_OK; i++)
		status = patterns[i] ? chi_glob_add(&f->paths, patterns[i])
							 : choir_fail(CHOIR_INVALID, "files: name %zu is NULL", i);
	if (status == CHOIR_OK)
		return f;
	choir_files_free(f);
	return NULL;
}

size_t choir_files_count(const choir_files *f)
{
	return f ? f->paths.n : 0;
}

const char *choir_files_path(const choir_files *f, size_t i)
{
	return i < choir_files_count(f) ? f->paths.path[i] : NULL;
}

void choir_files_free(choir_files *f)
{
	if (f)
		chi_glob_free(&f->paths);
	chi_free(f);
}

choir_status chi_files_paths(
		chi_glob *paths, const char *what, const char *path, const choir_files *files)
{
	if (!path == !files)
		return choir_fail(CHOIR_INVALID, "%s: %s; give one of them", what,
				path ? "both a path and files are given" : "neither a path nor files are given");
	choir_status status = path ? chi_glob_add(paths, path) : CHOIR_OK;
	for (size_t i = 0; i < choir_files_count(files) && status == CHOIR_OK; i++)
		status = chi_glob_add(paths, choir_files_path(files, i));
	if (status != CHOIR_OK)
		chi_glob_free(paths);
	return status;
}

// The dataset borrows the first source's names and categories.
typedef struct {
	choir_dataset base;
	choir_files *files;
	choir_file_fn *fn;
	void *user;
	size_t at, start, stride;
	bool open;
	choir_dataset *later;
	int64_t dropped, skipped;
} files_source;

static choir_dataset *open_file(const choir_files *files, size_t i, choir_file_fn *fn, void *user)
{
	const char *path = choir_files_path(files, i);
	chi_error before; // hidden from fn
	chi_error_save(&before);
	chi_error_clear();
	chi_mutex_check_none_held();
	choir_dataset *d = fn(path, user);
	if (d)
		chi_error_restore(&before);
	else if (choir_error_status() == CHOIR_OK)
		choir_fail(CHOIR_INVALID, "files dataset: %s: the function returned NULL", path);
	return d;
}

static choir_status check_same(const files_source *s, const choir_dataset *d, const char *path)
{
	const chi_spec *a = &s->base.spec, *b = &d->spec;
	if (b->batch != a->batch)
		return choir_fail(CHOIR_INVALID,
				"files dataset: %s: batches of %lld, the first file "
				"has %lld; all files need the same",
				path, (long long) b->batch, (long long) a->batch);
	const char *differs = chi_columns_differ(a, b);
	if (!differs)
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID,
			"files dataset: %s: %s differs from the first file; all files need the same columns",
			path, differs);
}

static choir_dataset *current(const files_source *s)
{
	return s->later ? s->later : s->base.from[0];
}

static void close_file(files_source *s)
{
	s->dropped += choir_dataset_dropped(s->later);
	s->skipped += choir_dataset_skipped(s->later);
	choir_dataset_free(s->later);
	s->later = NULL;
	s->open = false;
}

static choir_status open_file_at(files_source *s)
{
	if (s->at >= choir_files_count(s->files))
		return CHOIR_END;
	if (s->at > 0) {
		const char *path = choir_files_path(s->files, s->at);
		s->later = open_file(s->files, s->at, s->fn, s->user);
		CHOIR_TRY(chi_made(s->later));
		chi_dataset_set_outer(s->later, &s->base);
		CHOIR_TRY(check_same(s, s->later, path));
	}
	CHOIR_TRY(chi_dataset_begin(current(s), s->base.pass));
	s->open = true;
	return CHOIR_OK;
}

static void count(files_source *s)
{
	const int64_t dropped = s->dropped + choir_dataset_dropped(s->later);
	const int64_t skipped = s->skipped + choir_dataset_skipped(s->later);
	chi_atomic64_store(&s->base.dropped, (uint64_t) dropped);
	chi_atomic64_store(&s->base.skipped, (uint64_t) skipped);
}

static choir_status files_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	files_source *s = (files_source *) d;
	for (;;) {
		if (!s->open)
			CHOIR_TRY(open_file_at(s));
		const choir_status status = chi_dataset_read(current(s), column, want, got);
		count(s);
		if (status != CHOIR_END)
			return status;
		close_file(s);
		s->at += s->stride;
	}
}

static choir_status files_rewind(choir_dataset *d)
{
	files_source *s = (files_source *) d;
	close_file(s);
	s->at = s->start;
	s->dropped = s->skipped = 0;
	return CHOIR_OK;
}

// Reads only files of unknown length.
static choir_status files_seek(choir_dataset *d, int64_t elements)
{
	files_source *s = (files_source *) d;
	int64_t left = elements;
	for (;;) {
		const choir_status status = open_file_at(s);
		if (status != CHOIR_OK)
			return status == CHOIR_END ? chi_dataset_too_short(d, elements - left, elements)
									   : status;
		choir_dataset *file = current(s);
		int64_t there = file->elements;
		if (there != CHOIR_NONE) {
			there = left < there ? left : there;
			CHOIR_TRY(chi_dataset_pass_over(file, there));
		} else {
			CHOIR_TRY(chi_dataset_drop(file, left, &there));
		}
		left -= there;
		count(s);
		if (left == 0)
			return CHOIR_OK;
		close_file(s);
		s->at += s->stride;
	}
}

static choir_status files_shard(choir_dataset *d, int64_t shards, int64_t index)
{
	files_source *s = (files_source *) d;
	s->start += (size_t) index * s->stride;
	s->at = s->start;
	s->stride *= (size_t) shards;
	d->files = (d->files - index + shards - 1) / shards;
	return CHOIR_OK;
}

static const char *files_path(const choir_dataset *d, int64_t i)
{
	const files_source *s = (const files_source *) d;
	return choir_files_path(s->files, s->start + (size_t) i * s->stride);
}

static void files_free(choir_dataset *d)
{
	files_source *s = (files_source *) d;
	choir_dataset_free(s->later);
	choir_files_free(s->files);
}

static const chi_stage files_stage = {
	.name = "files dataset",
	.calls = true,
	.read = files_read,
	.rewind = files_rewind,
	.free = files_free,
	.seek = files_seek,
	.files = CHI_FILES_HERE,
	.shard_files = files_shard,
	.path = files_path,
};

choir_dataset *choir_files_dataset_new(choir_files *files, choir_file_fn *fn, void *user)
{
	if (!files || !fn) {
		if (!fn || choir_error_status() == CHOIR_OK)
			choir_fail(CHOIR_INVALID, "files dataset: the %s is NULL", fn ? "list" : "function");
		choir_files_free(files);
		return NULL;
	}
	choir_dataset *first = open_file(files, 0, fn, user);
	files_source *s = first ? chi_transform_new(&files_stage, sizeof *s, first) : NULL;
	if (!s) {
		choir_files_free(files);
		return NULL;
	}
	s->files = files;
	s->fn = fn;
	s->user = user;
	s->stride = 1;
	choir_dataset *d = &s->base;
	d->files = (int64_t) choir_files_count(files);
	if (choir_files_count(files) > 1) {
		d->elements = d->spec.examples = CHOIR_UNKNOWN_CARDINALITY;
		d->ragged = true;
	}
	return d;
}
