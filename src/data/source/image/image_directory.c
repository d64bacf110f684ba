// Files are listed first, for random access: a worker decodes only its replicas' images. Bad files
// are found at the start, so the number of examples is fixed.
#include "data/source/image/image.h"
#include "data/dataset.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/directory.h"
#include "base/file.h"
#include "base/log.h"
#include "base/options.h"
#include "base/text.h"
#include "data/source/csv/categories.h"

enum { MAX_FILE = 256 << 20, MAX_SIDE = 1 << 14, USUAL_SIDE = 224, NAME_SIZE = 256 };

typedef struct {
	choir_dataset base;
	chi_glob files;
	int32_t *label;
	size_t labels;
	size_t left_out;
	size_t others; // files of other formats, and directories in directories
	char other[NAME_SIZE]; // the first one
	chi_categories *classes;
	bool given;
	int64_t height, width;
	int channels;
	chi_image image;
	chi_resize_scratch resize;
	chi_scratch bytes;
} image_directory;

static const char what[] = "image directory dataset";

static choir_status read_file(image_directory *f, const char *path, chi_image_file *file)
{
	chi_file *open = chi_file_open(path);
	CHOIR_TRY(chi_made(open));
	choir_status status = CHOIR_OK;
	if (chi_file_size(open) > MAX_FILE)
		status = choir_fail(CHOIR_UNSUPPORTED, "%s: %" PRIu64 " bytes; needs at most %d",
				file->name, chi_file_size(open), MAX_FILE);
	else if (!chi_scratch_reserve(&f->bytes, (size_t) chi_file_size(open) + 1))
		status = CHOIR_NO_MEMORY;
	else
		status = chi_file_read(open, 0, f->bytes.memory, (size_t) chi_file_size(open));
	file->bytes = (const uint8_t *) f->bytes.memory;
	file->n = (size_t) chi_file_size(open);
	chi_file_close(open);
	return status;
}

static choir_status read_image(image_directory *f, const char *path)
{
	char name[NAME_SIZE];
	chi_image_file file = { .name = chi_text_clean(path, name, sizeof name) };
	CHOIR_TRY(read_file(f, path, &file));
	CHOIR_TRY(chi_image_decode(&file, &f->image));
	if (f->channels == 1)
		chi_image_to_grey(&f->image);
	return CHOIR_OK;
}

static choir_status directory_range(
		choir_dataset *d, void *const column[], int64_t first, int64_t count)
{
	image_directory *f = (image_directory *) d;
	uint8_t *to = column[0];
	chi_atomic64_store(&d->skipped, (uint64_t) f->left_out);
	for (int64_t i = 0; to && i < count; i++, to += d->bytes[0]) {
		CHOIR_TRY(read_image(f, f->files.path[first + i]));
		CHOIR_TRY(chi_image_cover(&f->image, f->height, f->width, &f->resize, to));
	}
	if (f->label && column[1])
		memcpy(column[1], f->label + first, (size_t) count * sizeof *f->label);
	return CHOIR_OK;
}

static void directory_free(choir_dataset *d)
{
	image_directory *f = (image_directory *) d;
	chi_glob_free(&f->files);
	chi_free(f->label);
	chi_categories_free(f->classes);
	chi_image_free(&f->image);
	chi_resize_scratch_free(&f->resize);
	chi_free(f->bytes.memory);
}

static const chi_stage directory_stage = {
	.name = what,
	.range = directory_range,
	.free = directory_free,
};

static bool is_image(const char *name)
{
	static const char *const suffix[] = { ".png", ".jpg", ".jpeg" };
	const char *dot = strrchr(name, '.');
	for (size_t i = 0; dot && name[0] != '.' && i < sizeof suffix / sizeof suffix[0]; i++)
		if (strcasecmp(dot, suffix[i]) == 0)
			return true;
	return false;
}

static void note_other(image_directory *f, const chi_directory *open, const char *name)
{
	char path[NAME_SIZE];
	if (name[0] == '.')
		return;
	if (f->others++ > 0)
		return;
	snprintf(path, sizeof path, "%s/%s", chi_directory_path(open), name);
	chi_text_clean(path, f->other, sizeof f->other);
}

static choir_status join(chi_text *path, const char *directory, const char *name)
{
	path->length = 0;
	chi_text_add(path, "%s/%s", directory, name);
	return path->failed ? CHOIR_NO_MEMORY : CHOIR_OK;
}

// CHOIR_NONE: unlabelled.
static choir_status add_images(image_directory *f, const chi_directory *open, int32_t label)
{
	chi_glob names = { 0 };
	chi_text path = { 0 };
	const size_t before = f->files.n;
	choir_status status = chi_directory_list(open, &names);
	for (size_t i = 0; status == CHOIR_OK && i < names.n; i++) {
		if (!is_image(names.path[i])) {
			note_other(f, open, names.path[i]);
			continue;
		}
		status = join(&path, chi_directory_path(open), names.path[i]);
		if (status == CHOIR_OK)
			status = chi_glob_add_path(&f->files, path.data);
	}
	if (status == CHOIR_OK && label >= 0 &&
			!chi_grow(&f->label, &f->labels, f->files.n, sizeof *f->label))
		status = CHOIR_NO_MEMORY;
	for (size_t i = before; status == CHOIR_OK && label >= 0 && i < f->files.n; i++)
		f->label[i] = label;
	if (status == CHOIR_OK && label >= 0 && f->files.n == before)
		status = choir_fail(CHOIR_INVALID, "%s: has no PNG or JPEG file; needs one, as each class",
				chi_directory_path(open));
	chi_text_free(&path);
	chi_glob_free(&names);
	return status;
}

static choir_status no_class(const image_directory *f, const char *path)
{
	char known[NAME_SIZE] = "", name[64];
	size_t at = 0;
	for (size_t i = 0; i < chi_categories_count(f->classes); i++) {
		at = chi_text_append(known, sizeof known, at, i == 0 ? "" : ", ");
		at = chi_text_append(known, sizeof known, at,
				chi_text_clean(chi_categories_text(f->classes, i), name, sizeof name));
	}
	return choir_fail(CHOIR_INVALID, "%s: is no known class; known: %s", path, known);
}

static choir_status add_class(image_directory *f, const chi_directory *open, const char *name)
{
	const size_t bytes = strlen(name);
	if (!f->given)
		CHOIR_TRY(chi_categories_add(f->classes, name, bytes));
	const int32_t label = chi_categories_find(f->classes, name, bytes);
	return label < 0 ? no_class(f, chi_directory_path(open)) : add_images(f, open, label);
}

static choir_status add_entry(image_directory *f, const char *root, const char *name)
{
	chi_text path = { 0 };
	chi_error before;
	if (name[0] == '.')
		return CHOIR_OK;
	chi_error_save(&before);
	choir_status status = join(&path, root, name);
	chi_directory *open = status == CHOIR_OK ? chi_directory_open(path.data) : NULL;
	if (open)
		status = add_class(f, open, name);
	else if (status == CHOIR_OK && choir_error_status() == CHOIR_NOT_FOUND)
		chi_error_restore(&before);
	else
		status = choir_error_status();
	chi_directory_close(open);
	chi_text_free(&path);
	return status;
}

static choir_status list(image_directory *f, const char *path)
{
	chi_glob names = { 0 };
	chi_directory *root = chi_directory_open(path);
	CHOIR_TRY(chi_made(root));
	choir_status status = chi_directory_list(root, &names);
	for (size_t i = 0; status == CHOIR_OK && i < names.n; i++)
		status = add_entry(f, path, names.path[i]);
	if (status == CHOIR_OK && f->files.n == 0)
		status = add_images(f, root, CHOIR_NONE);
	if (status == CHOIR_OK && f->files.n == 0)
		status = choir_fail(CHOIR_INVALID,
				"%s: has no PNG or JPEG file; needs files, or a directory of files for each class",
				path);
	if (status == CHOIR_OK && f->others > 0)
		chi_log(CHOIR_LOG_WARNING,
				"%s: %zu files are left out, such as %s; only PNG and JPEG are read", path,
				f->others, f->other);
	chi_directory_close(root);
	chi_glob_free(&names);
	return status;
}

static choir_status leave_out_bad(image_directory *f)
{
	size_t kept = 0;
	chi_error before;
	chi_error_save(&before);
	for (size_t i = 0; i < f->files.n; i++) {
		const choir_status status = read_image(f, f->files.path[i]);
		if (status == CHOIR_NO_MEMORY)
			return status;
		if (status != CHOIR_OK)
			chi_log(CHOIR_LOG_WARNING, "left out: %s", choir_error());
		char *path = f->files.path[i];
		f->files.path[i] = f->files.path[kept];
		f->files.path[kept] = path;
		if (f->label)
			f->label[kept] = f->label[i];
		kept += status == CHOIR_OK;
	}
	chi_error_restore(&before);
	for (size_t i = kept; i < f->files.n; i++)
		chi_free(f->files.path[i]);
	f->left_out = f->files.n - kept;
	f->files.n = kept;
	return CHOIR_OK;
}

static choir_status check_options(choir_image_directory_options *o, const char *directory,
		const choir_image_directory_options *given)
{
	if (chi_options_take("the options'", o, sizeof *o, given) != CHOIR_OK)
		return chi_error_prefix("%s", what);
	o->height = o->height ? o->height : USUAL_SIDE;
	o->width = o->width ? o->width : USUAL_SIDE;
	o->channels = o->channels ? o->channels : CHI_IMAGE_CHANNELS;
	if ((!directory && !o->schema) || (o->classes > 0 && !o->class_name))
		return choir_fail(CHOIR_INVALID, "%s: the %s NULL", what,
				directory ? "class names are" : "directory is");
	if (o->height < 1 || o->height > MAX_SIDE || o->width < 1 || o->width > MAX_SIDE)
		return choir_fail(CHOIR_INVALID,
				"%s: images of %lld x %lld pixels; needs 1 to %d on each side", what,
				(long long) o->height, (long long) o->width, MAX_SIDE);
	if (o->channels != 1 && o->channels != CHI_IMAGE_CHANNELS)
		return choir_fail(CHOIR_INVALID, "%s: %d channels; needs 1 or %d", what, o->channels,
				CHI_IMAGE_CHANNELS);
	return CHOIR_OK;
}

static choir_status copy_files(image_directory *f, const choir_dataset *schema)
{
	const image_directory *from = (const image_directory *) schema;
	if (schema->stage != &directory_stage)
		return choir_fail(CHOIR_INVALID, "%s: the schema is a %s; needs an %s", what,
				schema->stage->name, what);
	f->classes = chi_categories_copy(from->classes);
	f->label = from->label ? chi_alloc_array(from->files.n, sizeof *f->label) : NULL;
	if (!f->classes || (from->label && !f->label))
		return CHOIR_NO_MEMORY;
	for (size_t i = 0; i < from->files.n; i++)
		CHOIR_TRY(chi_glob_add_path(&f->files, from->files.path[i]));
	if (from->label)
		memcpy(f->label, from->label, from->files.n * sizeof *f->label);
	f->left_out = from->left_out;
	return CHOIR_OK;
}

static choir_status prepare(
		image_directory *f, const char *directory, const choir_image_directory_options *o)
{
	f->height = o->height;
	f->width = o->width;
	f->channels = o->channels;
	if (o->schema)
		return copy_files(f, o->schema);
	f->classes = chi_categories_new();
	CHOIR_TRY(chi_made(f->classes));
	f->given = o->classes > 0;
	for (size_t i = 0; i < o->classes; i++) {
		const char *name = o->class_name[i];
		if (!name || chi_categories_find(f->classes, name, strlen(name)) >= 0)
			return choir_fail(CHOIR_INVALID, "%s: class name %zu is %s; needs different names",
					what, i, name ? "there twice" : "NULL");
		CHOIR_TRY(chi_categories_add(f->classes, name, strlen(name)));
	}
	CHOIR_TRY(list(f, directory));
	return o->bad_record == CHOIR_BAD_RECORD_SKIP ? leave_out_bad(f) : CHOIR_OK;
}

// Owns f's members.
static choir_dataset *take_over(image_directory *f)
{
	const choir_column columns[] = {
		{ .name = "image",
				.dtype = CHOIR_U8,
				.shape = CHOIR_SHAPE(f->height, f->width, f->channels) },
		{ .name = "label", .dtype = CHOIR_I32 },
	};
	image_directory *made = chi_source_new(
			&directory_stage, sizeof *made, f->label ? 2 : 1, columns, (int64_t) f->files.n);
	if (!made) {
		directory_free(&f->base);
		return NULL;
	}
	f->base = made->base;
	*made = *f;
	made->base.random = true;
	chi_atomic64_store(&made->base.skipped, (uint64_t) made->left_out);
	if (made->label)
		made->base.spec.categories[1] = made->classes;
	return &made->base;
}

choir_dataset *choir_image_directory_dataset_new(
		const char *directory, const choir_image_directory_options *options)
{
	choir_image_directory_options o;
	image_directory f = { .left_out = 0 };
	if (check_options(&o, directory, options) != CHOIR_OK)
		return NULL;
	if (prepare(&f, directory, &o) == CHOIR_OK)
		return take_over(&f);
	directory_free(&f.base);
	return NULL;
}

const char *choir_image_directory_dataset_path(const choir_dataset *d, int64_t i)
{
	const image_directory *f =
			d && d->stage == &directory_stage ? (const image_directory *) d : NULL;
	return f && i >= 0 && i < d->elements ? f->files.path[i] : NULL;
}
