// Opens data by kind, as the files hold them. Several files become one dataset.
#include "data/raw_data.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static choir_dataset *open_idx(const char *path, void *column)
{
	return choir_idx_dataset_new(path, column);
}

static choir_dataset *open_npy(const char *path, void *column)
{
	return choir_npy_dataset_new(path, column);
}

choir_dataset *data_open_array(const data_name *d, const char *path, char *column)
{
	choir_file_fn *open = d->kind == DATA_NPY ? open_npy : open_idx;
	if (access(path, F_OK) == 0 || strpbrk(path, "*?[") == NULL)
		return open(path, column);
	return choir_files_dataset_new(choir_files_new(1, &path), open, column);
}

static choir_dataset *open_arrays(const data_name *d)
{
	static char x[] = "x", y[] = "y";
	choir_dataset *inputs = data_open_array(d, d->path, x);
	return d->labels[0] == '\0' ? inputs
								: choir_dataset_zip(inputs, data_open_array(d, d->labels, y));
}

static choir_dataset *open_npz(const char *path, void *user)
{
	const data_name *d = user;
	return choir_npz_dataset_new(path, d->arrays, d->array);
}

static choir_dataset *open_hdf5(const char *path, void *user)
{
	const data_name *d = user;
	return choir_hdf5_dataset_new(path, d->arrays, d->array);
}

static choir_dataset *open_lines(const char *path, void *user)
{
	(void) user;
	return choir_text_lines_dataset_new(path, "line", CHOIR_BAD_RECORD_ERROR);
}

static choir_dataset *open_each(const data_name *d, choir_files *files)
{
	choir_file_fn *open = d->kind == DATA_NPZ ? open_npz
			: d->kind == DATA_HDF5			  ? open_hdf5
											  : open_lines;
	void *user = (void *) (uintptr_t) d;
	if (choir_files_count(files) > 1)
		return choir_files_dataset_new(files, open, user);
	choir_dataset *only = open(choir_files_path(files, 0), user);
	choir_files_free(files);
	return only;
}

static choir_dataset *open_csv(
		const data_name *name, const choir_files *files, choir_bad_record wrong)
{
	const table_format usual = { .separator = '\0' };
	missing_texts texts;
	choir_csv_options o = {
		.size = sizeof o, .files = files, .missing = CHOIR_MISSING_DROP, .bad_record = wrong
	};
	table_format_apply(name->format == NULL ? &usual : name->format, name->path, &o, &texts);
	choir_dataset *d = choir_csv_dataset_new(NULL, &o);
	o.other_columns = "numbers";
	return d != NULL || choir_error_status() != CHOIR_INVALID ? d
															  : choir_csv_dataset_new(NULL, &o);
}

static choir_dataset *open_fixed(const choir_files *files, int64_t bytes)
{
	const choir_field field = { .name = "record", .dtype = CHOIR_U8, .shape = CHOIR_SHAPE(bytes) };
	return choir_fixed_length_record_dataset_new(
			NULL, 1, &field, CHOIR_OPTIONS(choir_fixed_options, .files = files));
}

// With bad rows skipped, labels are not checked here.
static choir_dataset *cifar10_part(const char *directory, bool test, choir_bad_record wrong)
{
	static const choir_field fields[] = { { .name = "label", .dtype = CHOIR_U8 },
		{ .name = "image",
				.dtype = CHOIR_U8,
				.shape = { 3, { 32, 32, 3 } },
				.channels_first = true } };
	char path[PATH_SIZE + 32];
	if (wrong == CHOIR_BAD_RECORD_ERROR)
		return choir_cifar10_dataset_new(directory, test);
	snprintf(path, sizeof path, "%s/%s", directory, test ? "test_batch.bin" : "data_batch_*.bin");
	return choir_fixed_length_record_dataset_new(path, 2, fields, NULL);
}

static choir_dataset *open_cifar10(const char *directory, choir_bad_record wrong)
{
	choir_dataset *d = cifar10_part(directory, false, wrong);
	choir_dataset *test = d == NULL ? NULL : cifar10_part(directory, true, wrong);
	if (test != NULL)
		return choir_dataset_concatenate(d, test);
	if (d == NULL || choir_error_status() == CHOIR_NOT_FOUND)
		return d;
	choir_dataset_free(d);
	return NULL;
}

choir_dataset *data_open(const data_name *d, choir_bad_record wrong)
{
	if (d->kind == DATA_CIFAR10)
		return open_cifar10(d->path, wrong);
	if (d->kind == DATA_IMAGES)
		return choir_image_directory_dataset_new(
				d->path, CHOIR_OPTIONS(choir_image_directory_options, .bad_record = wrong));
	if (d->kind == DATA_IDX || d->kind == DATA_NPY)
		return open_arrays(d);
	choir_files *files = data_name_files(d);
	if (files == NULL || d->kind == DATA_NPZ || d->kind == DATA_HDF5 || d->kind == DATA_LINES)
		return files == NULL ? NULL : open_each(d, files);
	choir_dataset *all = d->kind == DATA_CSV ? open_csv(d, files, wrong)
			: d->kind == DATA_FIXED
			? open_fixed(files, d->number)
			: choir_tfrecord_dataset_new(
					  NULL, CHOIR_OPTIONS(choir_tfrecord_options, .files = files, .wrong = wrong));
	choir_files_free(files);
	return all;
}

const char *data_compression(const data_name *d)
{
	unsigned char head[2] = { 0 };
	choir_files *files = data_name_files(d);
	FILE *file = files == NULL ? NULL : fopen(choir_files_path(files, 0), "rb");
	if (file != NULL) {
		if (fread(head, 1, sizeof head, file) < sizeof head)
			head[0] = 0;
		fclose(file);
	}
	choir_files_free(files);
	if (head[0] == 0x1f && head[1] == 0x8b)
		return "gzip";
	// A zlib header is a multiple of 31. In a TFRecord file these bytes are the low bytes of a
	// length.
	const bool zlib = head[0] == 0x78 && (head[0] * 256 + head[1]) % 31 == 0;
	return zlib && d->kind == DATA_TFRECORD ? "zlib" : "none";
}
