// Opens data files by the kind in their name: a prefix like csv: or a suffix like .csv.
#include "data/open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KINDS_TEXT "csv:, npy:, npz:, idx:, tfrecord:, text:, hdf5:"
const char named_file_help[] =
		"file to read: a name with a known suffix, or\n" KINDS_TEXT "\nbefore it; "
		"cifar10:DIR; or fixed:BYTES:FILE for records\nof BYTES bytes (required)";

static choir_dataset *open_idx(const named_file *f)
{
	return choir_idx_dataset_new(f->path, "x");
}

static choir_dataset *open_npy(const named_file *f)
{
	return choir_npy_dataset_new(f->path, "x");
}

static choir_dataset *open_npz(const named_file *f)
{
	return choir_npz_dataset_new(f->path, f->arrays.n, f->arrays.name);
}

static choir_dataset *open_csv(const named_file *f)
{
	choir_dataset *d = choir_csv_dataset_new(
			f->path, CHOIR_OPTIONS(choir_csv_options, .missing = CHOIR_MISSING_DROP));
	if (d != NULL || choir_error_status() != CHOIR_INVALID)
		return d;
	return choir_csv_dataset_new(f->path,
			CHOIR_OPTIONS(
					choir_csv_options, .missing = CHOIR_MISSING_DROP, .other_columns = "numbers"));
}

static choir_dataset *open_tfrecord(const named_file *f)
{
	return choir_tfrecord_dataset_new(f->path, NULL);
}

static choir_dataset *open_lines(const named_file *f)
{
	return choir_text_lines_dataset_new(f->path, "line", CHOIR_BAD_RECORD_ERROR);
}

static choir_dataset *open_hdf5(const named_file *f)
{
	return choir_hdf5_dataset_new(f->path, f->arrays.n, f->arrays.name);
}

static choir_dataset *open_cifar10(const named_file *f)
{
	return choir_cifar10_dataset_new(f->path, false);
}

static choir_dataset *open_fixed(const named_file *f)
{
	const choir_field field = {
		.name = "record", .dtype = CHOIR_U8, .shape = CHOIR_SHAPE(f->record)
	};
	return choir_fixed_length_record_dataset_new(f->path, 1, &field, NULL);
}

static const struct {
	const char *kind, *ends; // ends: suffix of the names
	choir_dataset *(*open)(const named_file *f);
} kinds[] = {
	{ "csv", ".csv", open_csv },
	{ "npy", ".npy", open_npy },
	{ "npz", ".npz", open_npz },
	{ "idx", "ubyte", open_idx },
	{ "idx", ".idx", open_idx },
	{ "tfrecord", ".tfrecord", open_tfrecord },
	{ "tfrecord", ".tfrecords", open_tfrecord },
	{ "text", ".txt", open_lines },
	{ "hdf5", ".h5", open_hdf5 },
	{ "hdf5", ".hdf5", open_hdf5 },
	{ "cifar10", NULL, open_cifar10 },
	{ "fixed", NULL, open_fixed },
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static bool ends_with(const char *name, size_t n, const char *end)
{
	const size_t k = end == NULL ? 0 : strlen(end);
	return k != 0 && n >= k && memcmp(name + n - k, end, k) == 0;
}

static choir_status take_record(named_file *f, const char *name)
{
	char *end;
	f->record = strtoll(f->path, &end, 10);
	if (f->record < 1 || f->path[0] < '0' || f->path[0] > '9' || end[0] != ':' || end[1] == '\0')
		return choir_fail(CHOIR_INVALID, "\"%s\": needs fixed:BYTES:FILE", name);
	f->path = end + 1;
	return CHOIR_OK;
}

// The kind in the prefix of a name; KINDS: none.
static size_t kind_before(const char *name)
{
	size_t i = 0;
	for (; i < KINDS; i++) {
		const size_t k = strlen(kinds[i].kind);
		if (strncmp(name, kinds[i].kind, k) == 0 && name[k] == ':' && name[k + 1] != '\0')
			break;
	}
	return i;
}

static size_t kind_by_end(const char *file)
{
	size_t i = 0, n = strlen(file);
	if (ends_with(file, n, ".gz"))
		n -= 3;
	while (i < KINDS && !ends_with(file, n, kinds[i].ends))
		i++;
	return i;
}

choir_status named_file_set(named_file *f, const char *name)
{
	size_t i = kind_before(name);
	const bool before = i < KINDS;
	const char *rest = before ? name + strlen(kinds[i].kind) + 1 : name;
	CHOIR_TRY(array_names_set(&f->arrays, rest));
	if (!before)
		i = kind_by_end(f->arrays.file);
	if (i == KINDS)
		return choir_fail(CHOIR_INVALID,
				"\"%s\": unknown kind of file; write " KINDS_TEXT
				", cifar10: or fixed:BYTES: before it",
				name);
	f->kind = kinds[i].kind;
	f->path = f->arrays.n > 0 ? f->arrays.file : rest;
	f->record = 0;
	if (f->arrays.n > 0 && kinds[i].open != open_npz && kinds[i].open != open_hdf5)
		return choir_fail(CHOIR_INVALID,
				"\"%s\": has no arrays to select with #; npz: and hdf5: have", name);
	return strcmp(f->kind, "fixed") == 0 ? take_record(f, name) : CHOIR_OK;
}

choir_dataset *named_file_open(const named_file *f)
{
	size_t i = 0;
	while (strcmp(kinds[i].kind, f->kind) != 0)
		i++;
	return kinds[i].open(f);
}

choir_files *named_file_list(const named_file *f)
{
	char pattern[4096];
	const char *path = f->path;
	if (strcmp(f->kind, "cifar10") == 0) {
		snprintf(pattern, sizeof pattern, "%s/data_batch_*.bin", f->path);
		path = pattern;
	}
	return choir_files_new(1, &path);
}

const char *named_file_compression(const named_file *f)
{
	unsigned char head[2] = { 0 };
	choir_files *files = named_file_list(f);
	FILE *file = files == NULL ? NULL : fopen(choir_files_path(files, 0), "rb");
	if (file != NULL) {
		if (fread(head, 1, sizeof head, file) < sizeof head)
			head[0] = 0;
		fclose(file);
	}
	choir_files_free(files);
	if (head[0] == 0x1f && head[1] == 0x8b)
		return "gzip";
	// A zlib header is a multiple of 31; in a TFRecord file these bytes are the low bytes of a
	// length.
	const bool zlib = head[0] == 0x78 && (head[0] * 256 + head[1]) % 31 == 0;
	return zlib && strcmp(f->kind, "tfrecord") == 0 ? "zlib" : "none";
}
