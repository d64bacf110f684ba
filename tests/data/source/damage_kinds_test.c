// Small files of every kind (of HDF5 in hdf5_test.c), plain and compressed, cut at every byte and
// changed in every byte in three ways. Whatever was done to a file: rows come, and behind them
// one failure or none, which names the file and where in it; in batches the same rows come, but
// of a failure's batch none; what has checksums gives only rows that were written; and what knows
// its length is not cut unnoticed. Also folders in the place of files, and patterns that no file
// has.
#include "data/elements.h"

#include "choir/library.h"
#include "data/source/tfrecord/protos.h"
#include "data/source/scratch.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ROWS = 5, MAX_BYTES = 1 << 14 };
static const int64_t numbers[ROWS] = { 3, 1, 4, 1, 5 };

// ---- Files.

static void write_idx(const char *path)
{
	static const unsigned char file[12 + 2 * ROWS] = { 0, 0, 8, 2, 0, 0, 0, ROWS, 0, 0, 0, 2, 3, 1,
		4, 1, 5, 9, 2, 6, 5, 3 };
	save_bytes(path, &(bytes){ .data = (unsigned char *) (uintptr_t) file, .n = sizeof file });
}

static void write_npy(const char *path)
{
	assert_int_equal(choir_npy_write(path, CHOIR_I64, CHOIR_SHAPE(ROWS), numbers), CHOIR_OK);
}

static void write_text(const char *path, const char *text)
{
	save_bytes(path, &(bytes){ .data = (unsigned char *) (uintptr_t) text, .n = strlen(text) });
}

static void write_csv(const char *path)
{
	write_text(path, "a,\"b\"\n1,x\r\n2,\"y\"\n-3,x\n\"4\",y\n5,\"x\"\n");
}

static void write_lines(const char *path)
{
	write_text(path, "ab\n\xc3\xa4q\r\n\n\xe2\x82\xac\n\xf0\x9f\x8e\xb5z");
}

static void write_fixed(const char *path)
{
	static const unsigned char file[3 * ROWS] = { 0, 1, 2, 1, 3, 4, 2, 5, 6, 1, 7, 8, 0, 9, 9 };
	save_bytes(path, &(bytes){ .data = (unsigned char *) (uintptr_t) file, .n = sizeof file });
}

static void write_records(const char *path, choir_compression compression)
{
	choir_tfrecord_writer *w = choir_tfrecord_writer_new(path, compression);
	assert_non_null(w);
	for (int i = 0; i < ROWS; i++) {
		const choir_column c = { .name = "x", .dtype = CHOIR_I64, .data = &numbers[i] };
		assert_int_equal(choir_tfrecord_writer_write_example(w, 1, &c), CHOIR_OK);
	}
	assert_int_equal(choir_tfrecord_writer_finish(w), CHOIR_OK);
	choir_tfrecord_writer_free(w);
}

static void write_plain_records(const char *path)
{
	write_records(path, CHOIR_COMPRESSION_NONE);
}

static void write_gzip_records(const char *path)
{
	write_records(path, CHOIR_COMPRESSION_GZIP);
}

static void write_zlib_records(const char *path)
{
	write_records(path, CHOIR_COMPRESSION_ZLIB);
}

// ---- Sources.

static choir_dataset *open_windows(const char *path)
{
	return choir_text_windows_dataset_new(path, 3, 2);
}

static choir_dataset *open_fixed_as(const char *path, choir_compression compression)
{
	static const choir_field fields[] = {
		{ .name = "label", .dtype = CHOIR_U8, .limit = 3 },
		{ .name = "pair", .dtype = CHOIR_U8, .shape = { 1, { 2 } } },
	};
	return choir_fixed_length_record_dataset_new(
			path, 2, fields, CHOIR_OPTIONS(choir_fixed_options, .compression = compression));
}

static choir_dataset *open_fixed(const char *path)
{
	return open_fixed_as(path, CHOIR_COMPRESSION_NONE);
}

static choir_dataset *open_packed_fixed(const char *path)
{
	return open_fixed_as(path, CHOIR_COMPRESSION_GZIP);
}

typedef struct {
	const char *name;
	void (*write)(const char *path);
	choir_dataset *(*open)(const char *path);
	const char *where; // what else a failure behind rows says
	bool packed; // by gzip, after it was written
	bool sums; // checksums of everything
	bool open_end; // what was cut off may not be missed
	bool pattern; // the path may be one
} kind;

static const kind kinds[] = {
	{ .name = "idx", .write = write_idx, .open = scratch_idx },
	{ .name = "idx.gz", .write = write_idx, .open = scratch_idx, .packed = true, .sums = true },
	{ .name = "npy", .write = write_npy, .open = scratch_npy },
	{ .name = "npy.gz", .write = write_npy, .open = scratch_npy, .packed = true, .sums = true },
	{ .name = "csv",
			.write = write_csv,
			.open = scratch_csv,
			.where = "row ",
			.open_end = true,
			.pattern = true },
	{ .name = "csv.gz", .write = write_csv, .open = scratch_csv, .packed = true, .sums = true },
	{ .name = "lines",
			.write = write_lines,
			.open = scratch_lines,
			.where = "line ",
			.open_end = true },
	{ .name = "lines.gz",
			.write = write_lines,
			.open = scratch_lines,
			.packed = true,
			.sums = true },
	{ .name = "bytes", .write = write_lines, .open = scratch_bytes, .open_end = true },
	{ .name = "bytes.gz",
			.write = write_lines,
			.open = scratch_bytes,
			.packed = true,
			.sums = true },
	{ .name = "windows", .write = write_lines, .open = open_windows, .open_end = true },
	{ .name = "fixed",
			.write = write_fixed,
			.open = open_fixed,
			.where = "record ",
			.open_end = true,
			.pattern = true },
	{ .name = "fixed.gz",
			.write = write_fixed,
			.open = open_packed_fixed,
			.packed = true,
			.sums = true,
			.pattern = true },
	{ .name = "tfrecord",
			.write = write_plain_records,
			.open = scratch_records,
			.where = "record ",
			.sums = true,
			.open_end = true,
			.pattern = true },
	{ .name = "tfrecord.gz", .write = write_gzip_records, .open = scratch_records, .sums = true },
	{ .name = "tfrecord.zz", .write = write_zlib_records, .open = scratch_records, .sums = true },
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static bool can_be(const kind *k)
{
	const char *end = strrchr(k->name, '.');
	return !end || choir_has_feature("zlib");
}

// ---- Damage.

static const kind *tried;
static char whole[4096]; // the rows that were written

static size_t lines_of(const char *text, const char *end)
{
	size_t n = 0;
	for (const char *p = text; p < end; p++)
		n += *p == '\n';
	return n;
}

// The failure at the end, or the text's end.
static const char *failure_of(const char *text)
{
	const char *p = text[0] == '!' ? text : strstr(text, "\n!");
	return !p ? text + strlen(text) : p + (*p == '\n');
}

static bool varies(const choir_dataset *d)
{
	return d && choir_shape_elements(&choir_dataset_column(d, 0)->shape) == CHOIR_NONE;
}

// Rows of whole batches only, and then the same failure.
static void check_batches(const char *path, const char *how, const char *single)
{
	const char *error = failure_of(single);
	const size_t rows = lines_of(single, error), left = *error ? rows - rows % 2 : rows;
	choir_dataset *d = tried->open(path);
	d = varies(d) ? choir_dataset_padded_batch(d, 2, NULL) : choir_dataset_batch(d, 2);
	const char *found = pass_in_words(d), *other = failure_of(found);
	if (lines_of(found, other) != left || strcmp(error, other) != 0)
		fail_msg("%s, %s: \"%s\", in batches \"%s\"", tried->name, how, single, found);
	choir_dataset_free(d);
}

static bool begins_as_gzip(const char *path)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	const bool begins = fgetc(f) == 0x1f && fgetc(f) == 0x8b;
	assert_int_equal(fclose(f), 0);
	return begins;
}

static void check(const char *path, const char *how)
{
	char single[4096];
	choir_dataset *d = tried->open(path);
	snprintf(single, sizeof single, "%s", pass_in_words(d));
	choir_dataset_free(d);
	const char *error = failure_of(single), *name = strrchr(path, '/') + 1;
	const size_t rows = (size_t) (error - single);
	// What does not begin as gzip data do is no compressed file; only fixed is told what it is.
	const bool sums = tried->sums &&
			!(tried->packed && tried->open != open_packed_fixed && !begins_as_gzip(path));
	if (*error && (strchr(error, '\n') || !strstr(error, name)))
		fail_msg("%s, %s: \"%s\" does not name the file once", tried->name, how, error);
	if (*error && !strstr(error, "byte") && strcmp(how, "cut to 0 bytes") != 0)
		fail_msg("%s, %s: \"%s\" does not say at which byte", tried->name, how, error);
	if (*error && rows > 0 && tried->where && !strstr(error, tried->where))
		fail_msg("%s, %s: \"%s\" does not say where", tried->name, how, error);
	if (sums &&
			(strncmp(single, whole, rows) != 0 ||
					(!*error && !tried->open_end && strcmp(single, whole) != 0)))
		fail_msg("%s, %s: \"%s\" was never written", tried->name, how, single);
	if (!*error && !tried->open_end && (sums || !tried->sums) && strncmp(how, "cut", 3) == 0)
		fail_msg("%s, %s: read all the same", tried->name, how);
	check_batches(path, how, single);
}

static size_t read_file(const char *path, unsigned char to[MAX_BYTES])
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	const size_t n = fread(to, 1, MAX_BYTES, f);
	assert_int_equal(fclose(f), 0);
	assert_in_range(n, 1, MAX_BYTES - 1);
	return n;
}

TEST(rows_are_right_or_there_is_one_failure)
{
	static unsigned char content[MAX_BYTES];
	for (size_t i = 0; i < KINDS; i++) {
		tried = &kinds[i];
		if (!can_be(tried))
			continue;
		const char *path = scratch_path(tried->name);
		char name[32];
		tried->write(path);
		bytes b = { .data = content, .n = read_file(path, content) };
		if (tried->packed) {
			b = deflated(&b, 31);
			save_bytes(path, &b);
		}
		choir_dataset *d = tried->open(path);
		snprintf(whole, sizeof whole, "%s", pass_in_words(d));
		choir_dataset_free(d);
		assert_null(strchr(whole, '!'));
		assert_in_range(lines_of(whole, whole + strlen(whole)), ROWS, 100);
		snprintf(name, sizeof name, "t-%s", tried->name);
		damage(name, b.data, b.n, check);
		if (tried->packed)
			free(b.data);
	}
}

// ---- Folders and patterns.

TEST(folders_and_missing_files_are_refused)
{
	char directory[256], pattern[300];
	snprintf(directory, sizeof directory, "%s", scratch_path("empty"));
	snprintf(pattern, sizeof pattern, "%s/*", directory);
	assert_int_equal(mkdir(directory, 0777), 0);
	for (size_t i = 0; i < KINDS; i++) {
		if (!can_be(&kinds[i]))
			continue;
		tried = &kinds[i];
		choir_dataset *d = tried->open(directory);
		const char *found = pass_in_words(d);
		if (found[0] != '!' || !strstr(found, "empty"))
			fail_msg("%s of a directory: \"%s\"", tried->name, found);
		choir_dataset_free(d);
		assert_null(tried->open(scratch_path("none")));
		assert_failure(CHOIR_NOT_FOUND, "none");
		if (!tried->pattern)
			continue;
		assert_null(tried->open(pattern));
		assert_failure(CHOIR_NOT_FOUND, "empty/");
	}
	assert_null(choir_cifar10_dataset_new(directory, false));
	assert_failure(CHOIR_NOT_FOUND, "empty/data_batch_*.bin");
}

TEST_GROUP(NULL, scratch_leave)
