// Values go from the file's block straight to the reader's rows.
#include "data/source/tfrecord/tfrecord.h"

#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "data/seek_index.h"
#include "data/dataset.h"
#include "tensor/tensor.h"

typedef struct {
	choir_dataset base;
	chi_record_files files;
	bool raw;
	chi_feature feature[CHI_MAX_COLUMNS];
	char *name[CHI_MAX_COLUMNS]; // owned; NULL: the column's
	chi_places places;
} tfrecord;

static choir_status open_next(chi_record_files *f)
{
	if (f->next_path == f->paths.n)
		return CHOIR_END;
	f->open = chi_records_open(f->paths.path[f->next_path], f->compression);
	CHOIR_TRY(chi_made(f->open));
	f->next_path++;
	return CHOIR_OK;
}

static void close_file(chi_record_files *f)
{
	chi_records_close(f->open);
	f->open = NULL;
}

choir_status chi_record_files_next(chi_record_files *f, const unsigned char **data, size_t *bytes)
{
	for (;;) {
		if (!f->open)
			CHOIR_TRY(open_next(f));
		const choir_status status = chi_records_next(f->open, data, bytes);
		if (status == CHOIR_OK)
			return CHOIR_OK;
		const bool skip = status == CHOIR_CORRUPT && f->skip;
		if (status != CHOIR_END && !skip)
			return status;
		f->skipped += skip;
		if (status == CHOIR_END || !chi_records_known_next(f->open))
			close_file(f);
	}
}

choir_status chi_record_files_bad(chi_record_files *f)
{
	const choir_status status = choir_error_status();
	if (!f->skip || (status != CHOIR_CORRUPT && status != CHOIR_NOT_FOUND))
		return chi_records_blame(f->open);
	f->skipped++;
	return CHOIR_OK;
}

static void rewind_files(chi_record_files *f)
{
	close_file(f);
	f->next_path = 0;
}

static choir_status read_one(tfrecord *t, void *const out[])
{
	for (;;) {
		const unsigned char *data;
		size_t bytes;
		CHOIR_TRY(chi_record_files_next(&t->files, &data, &bytes));
		const choir_status status = t->raw
				? chi_raw_read(data, bytes, &t->feature[0], out[0])
				: chi_example_read(data, bytes, t->base.spec.n, t->feature, out);
		if (status == CHOIR_OK)
			return CHOIR_OK;
		CHOIR_TRY(chi_record_files_bad(&t->files));
	}
}

static choir_status add_place(tfrecord *t)
{
	const chi_record_files *f = &t->files;
	chi_seek_point place = { .file = (int64_t) f->next_path - 1 };
	chi_records_where(f->open, &place.byte, &place.record);
	chi_atomic64_store(&t->base.skipped, (uint64_t) f->skipped);
	return chi_places_add(&t->base, &place);
}

static choir_status tfrecord_read(
		choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	tfrecord *t = (tfrecord *) d;
	void *out[CHI_MAX_COLUMNS];
	choir_status status = CHOIR_OK;
	while (status == CHOIR_OK && *got < want) {
		chi_columns_move(d, column, *got, out);
		status = read_one(t, out);
		*got += status == CHOIR_OK;
		if (status == CHOIR_OK && chi_places_due(&t->places))
			status = add_place(t);
	}
	chi_atomic64_store(&d->skipped, (uint64_t) t->files.skipped);
	return chi_dataset_got(d, status, *got);
}

static choir_status tfrecord_rewind(choir_dataset *d)
{
	tfrecord *t = (tfrecord *) d;
	rewind_files(&t->files);
	t->files.skipped = 0;
	chi_places_begin(&t->places);
	return CHOIR_OK;
}

static choir_status go_to(chi_record_files *f, const chi_seek_point *place)
{
	f->next_path = (size_t) place->file;
	f->skipped = place->skipped;
	CHOIR_TRY(open_next(f));
	return chi_records_jump(f->open, place->byte, place->record);
}

static choir_status tfrecord_seek(choir_dataset *d, int64_t elements)
{
	tfrecord *t = (tfrecord *) d;
	chi_seek_point place = { 0 };
	if (chi_places_find(d, elements, &place))
		CHOIR_TRY(go_to(&t->files, &place));
	return chi_dataset_read_over(d, place.elements, elements);
}

static uint64_t tfrecord_signature(const choir_dataset *d)
{
	return ((const tfrecord *) d)->files.skip;
}

static void free_files(chi_record_files *f)
{
	close_file(f);
	chi_glob_free(&f->paths);
}

static void tfrecord_free(choir_dataset *d)
{
	tfrecord *t = (tfrecord *) d;
	free_files(&t->files);
	chi_places_free(&t->places);
	for (size_t i = 0; i < d->spec.n; i++) {
		union {
			const void *borrowed;
			void *own;
		} missing = { t->feature[i].missing };
		chi_free(missing.own);
		chi_free(t->name[i]);
	}
}

static const chi_stage tfrecord_stage = {
	.name = "tfrecord dataset",
	.read = tfrecord_read,
	.rewind = tfrecord_rewind,
	.free = tfrecord_free,
	.seek = tfrecord_seek,
	.seek_index = chi_places_index,
	.fits = chi_places_fit,
	.signature = tfrecord_signature,
	.files = CHI_FILES_HERE,
	.shard_files = chi_paths_shard,
	.path = chi_paths_at,
};

static bool set_feature(tfrecord *t, size_t i, const choir_feature *asked)
{
	const choir_column *c = &t->base.spec.column[i];
	chi_feature *f = &t->feature[i];
	f->name = c->name;
	if (asked && asked->as) {
		t->name[i] = chi_strdup(asked->name);
		f->name = t->name[i];
		if (!f->name)
			return false;
	}
	f->name_bytes = strlen(f->name);
	f->dtype = c->dtype;
	f->bytes = t->base.bytes[i];
	f->elements = f->bytes / chi_dtype_size(c->dtype);
	f->pad = asked && asked->pad;
	if (!asked || !asked->missing)
		return true;
	void *missing = chi_alloc(f->bytes);
	if (missing)
		memcpy(missing, asked->missing, f->bytes);
	f->missing = missing;
	return missing != NULL;
}

static void mark_shared(tfrecord *t)
{
	for (size_t i = 0; i < t->base.spec.n; i++)
		for (size_t j = 0; j < i; j++)
			if (strcmp(t->feature[i].name, t->feature[j].name) == 0)
				t->feature[i].shared = t->feature[j].shared = true;
}

static choir_dataset *make(chi_record_files *files, const choir_tfrecord_options *o)
{
	size_t n;
	choir_column columns[CHI_MAX_COLUMNS];
	chi_text names = { NULL, 0, 0, false };
	tfrecord *t = NULL;
	if (chi_record_columns(files, o, &n, columns, &names) == CHOIR_OK)
		t = chi_source_new(&tfrecord_stage, sizeof *t, n, columns, CHOIR_UNKNOWN_CARDINALITY);
	chi_text_free(&names);
	if (!t)
		return NULL;
	rewind_files(files);
	files->skipped = 0;
	t->base.files = (int64_t) files->paths.n;
	t->files = *files;
	chi_places_init(&t->places, &t->base);
	t->base.paths = &t->files.paths;
	t->raw = o->raw;
	for (size_t i = 0; i < n; i++)
		if (!set_feature(t, i, o->n ? &o->features[i] : NULL)) {
			*files = (chi_record_files){ .open = NULL };
			choir_dataset_free(&t->base);
			return NULL;
		}
	*files = (chi_record_files){ .open = NULL };
	mark_shared(t);
	return &t->base;
}

static choir_status check_options(choir_tfrecord_options *o, const choir_tfrecord_options *given)
{
	const char *what = tfrecord_stage.name;
	if (chi_options_take("the options'", o, sizeof *o, given) != CHOIR_OK)
		return chi_error_prefix("%s", what);
	if ((unsigned) o->compression > CHOIR_COMPRESSION_ZLIB)
		return choir_fail(CHOIR_INVALID, "%s: the compression is unknown", what);
	if ((unsigned) o->wrong > CHOIR_BAD_RECORD_SKIP)
		return choir_fail(CHOIR_INVALID,
				"%s: the option wrong is neither CHOIR_BAD_RECORD_ERROR nor CHOIR_BAD_RECORD_SKIP",
				what);
	if (o->n > CHI_MAX_COLUMNS || (o->n > 0 && !o->features) || (o->raw && o->n > 1))
		return choir_fail(CHOIR_INVALID, "%s: %zu features given; 0 to %d needed", what,
				o->features ? o->n : 0, o->raw ? 1 : (int) CHI_MAX_COLUMNS);
	for (size_t i = 0; i < o->n; i++)
		if (!o->features[i].name)
			return choir_fail(CHOIR_INVALID, "%s: feature %zu has no name", what, i);
	return CHOIR_OK;
}

choir_dataset *choir_tfrecord_dataset_new(const char *path, const choir_tfrecord_options *options)
{
	choir_tfrecord_options o;
	chi_record_files f = { .open = NULL };
	if (check_options(&o, options) != CHOIR_OK ||
			chi_files_paths(&f.paths, tfrecord_stage.name, path, o.files) != CHOIR_OK)
		return NULL;
	f.compression = o.compression;
	f.skip = o.wrong == CHOIR_BAD_RECORD_SKIP;
	choir_dataset *d = make(&f, &o);
	free_files(&f);
	return d;
}
