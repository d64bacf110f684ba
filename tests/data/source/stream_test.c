// Files much larger than what may be allocated for them: a pass of each source asks for less than
// a tenth of its file, all together. And large files that are cut while they are read
// (changing_test.c has other changes).
#include "data/elements.h"

#include "base/alloc.h"
#include "base/status.h"
#include "data/source/scratch.h"
#include "short.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MEGABYTES = SERIAL_STRIDE > 1 ? 6 : 12, FILE_BYTES = MEGABYTES << 20 };
enum { IMAGE = 784, EXAMPLES = FILE_BYTES / IMAGE };

static const char header_of_npy[] =
		"{'descr': '|u1', 'fortran_order': False, 'shape': (%d, %d), }";

static FILE *make(const char *path)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	return f;
}

// Images whose bytes follow from their number.
static void put_images(FILE *f)
{
	unsigned char image[IMAGE];
	for (int i = 0; i < EXAMPLES; i++) {
		memset(image, i % 251, sizeof image);
		assert_int_equal(fwrite(image, 1, sizeof image, f), sizeof image);
	}
	assert_int_equal(fclose(f), 0);
}

static void write_idx(const char *path)
{
	FILE *f = make(path);
	const unsigned char head[12] = { 0, 0, 8, 2, 0, 0, EXAMPLES >> 8, EXAMPLES & 255, 0, 0,
		IMAGE >> 8, IMAGE & 255 };
	assert_int_equal(fwrite(head, 1, sizeof head, f), sizeof head);
	put_images(f);
}

static void write_npy(const char *path)
{
	FILE *f = make(path);
	char text[128];
	const int n = snprintf(text, sizeof text, header_of_npy, (int) EXAMPLES, (int) IMAGE);
	fwrite("\x93NUMPY\1\0", 1, 8, f);
	fputc(n, f);
	fputc(0, f);
	fwrite(text, 1, (size_t) n, f);
	put_images(f);
}

static void write_fixed(const char *path)
{
	put_images(make(path));
}

static choir_dataset *open_fixed(const char *path)
{
	const choir_field field = { .name = "x", .dtype = CHOIR_U8, .shape = { 1, { IMAGE } } };
	return choir_fixed_length_record_dataset_new(path, 1, &field, NULL);
}

static void write_tfrecord(const char *path)
{
	unsigned char image[IMAGE];
	choir_tfrecord_writer *w = choir_tfrecord_writer_new(path, CHOIR_COMPRESSION_NONE);
	assert_non_null(w);
	for (int i = 0; i < EXAMPLES; i++) {
		memset(image, i % 251, sizeof image);
		const choir_column c = { "x", CHOIR_U8, CHOIR_SHAPE(IMAGE), image };
		assert_int_equal(choir_tfrecord_writer_write_example(w, 1, &c), CHOIR_OK);
	}
	assert_int_equal(choir_tfrecord_writer_finish(w), CHOIR_OK);
	choir_tfrecord_writer_free(w);
}

static void put_lines(const char *path, const char *first)
{
	FILE *f = make(path);
	fputs(first, f);
	for (int i = 0; ftell(f) < FILE_BYTES; i++)
		fprintf(f, "%d,%d.25,%d\n", i, i % 97, i % 251);
	assert_int_equal(fclose(f), 0);
}

static void write_csv(const char *path)
{
	put_lines(path, "a,b,c\n");
}

static void write_text(const char *path)
{
	put_lines(path, "");
}

static choir_dataset *open_windows(const char *path)
{
	return choir_text_windows_dataset_new(path, 100, 50);
}

static const struct {
	const char *name;
	void (*write)(const char *path);
	choir_dataset *(*open)(const char *path);
	int64_t min; // examples there must be
	bool promised; // how many there are is known before they are read
} sources[] = {
	{ "idx", write_idx, scratch_idx, EXAMPLES, true },
	{ "npy", write_npy, scratch_npy, EXAMPLES, true },
	{ "fixed", write_fixed, open_fixed, EXAMPLES, true },
	{ "tfrecord", write_tfrecord, scratch_records, EXAMPLES, false },
	{ "csv", write_csv, scratch_csv, FILE_BYTES / 20, false },
	{ "lines", write_text, scratch_lines, FILE_BYTES / 20, false },
	{ "bytes", write_text, scratch_bytes, FILE_BYTES, true },
	{ "windows", write_text, open_windows, FILE_BYTES / 50 - 2, true },
};
enum { SOURCES = sizeof sources / sizeof sources[0] };

// Reads on; *examples counts. Memory for a batch is the test's own.
static choir_status read_on(choir_dataset *d, int64_t max, int64_t *examples)
{
	static const chi_element nothing = { .capacity = 64 };
	choir_status status = CHOIR_OK;
	static unsigned char capacity[CHI_MAX_COLUMNS][64 * 1024];
	while (*examples < max && status == CHOIR_OK) {
		chi_element e = nothing;
		for (size_t i = 0; i < choir_dataset_columns(d); i++)
			e.column[i] = capacity[i];
		status = chi_dataset_next(d, &e);
		*examples += status == CHOIR_OK ? e.examples : 0;
	}
	return status;
}

// Batches need examples of one size.
static choir_dataset *open_source(size_t i)
{
	choir_dataset *d = sources[i].open(scratch_path(sources[i].name));
	if (!d)
		fail_msg("%s: %s", sources[i].name, choir_error());
	return sources[i].open == scratch_lines ? d : choir_dataset_batch(d, 64);
}

static choir_dataset *make_source(size_t i)
{
	sources[i].write(scratch_path(sources[i].name));
	return open_source(i);
}

// One line after the other.
static choir_status read_lines(choir_dataset *d, int64_t max, int64_t *examples)
{
	chi_ragged_value cell = { .data = NULL };
	choir_status status = CHOIR_OK;
	while (*examples < max && status == CHOIR_OK) {
		chi_element e = { .column = { &cell }, .capacity = 1 };
		status = chi_dataset_next(d, &e);
		*examples += status == CHOIR_OK;
	}
	chi_ragged_value_free(&cell);
	return status;
}

static choir_status read_source(size_t i, choir_dataset *d, int64_t max, int64_t *examples)
{
	return sources[i].open == scratch_lines ? read_lines(d, max, examples)
											: read_on(d, max, examples);
}

TEST(a_large_file_is_read_in_little_memory)
{
	for (size_t i = 0; i < SOURCES; i++) {
		sources[i].write(scratch_path(sources[i].name));
		const uint64_t before = chi_alloc_bytes();
		choir_dataset *d = open_source(i);
		int64_t examples = 0;
		assert_int_equal(read_source(i, d, INT64_MAX, &examples), CHOIR_END);
		if (examples < sources[i].min)
			fail_msg("%s: %lld examples", sources[i].name, (long long) examples);
		const uint64_t asked = chi_alloc_bytes() - before;
		if (asked > FILE_BYTES / 10)
			fail_msg("%s: %llu bytes asked for", sources[i].name, (unsigned long long) asked);
		choir_dataset_free(d);
	}
}

// Half of the file is gone when an eighth of it has been read.
TEST(a_file_that_shrinks_is_an_end_or_a_failure)
{
	for (size_t i = 0; i < SOURCES; i++) {
		choir_dataset *d = make_source(i);
		int64_t examples = 0;
		assert_int_equal(read_source(i, d, sources[i].min / 8, &examples), CHOIR_OK);
		assert_int_equal(truncate(scratch_path(sources[i].name), FILE_BYTES / 2 + 5), 0);
		const choir_status status = read_source(i, d, INT64_MAX, &examples);
		if (sources[i].promised || status != CHOIR_END) {
			assert_int_equal(status, CHOIR_CORRUPT);
			if (!strstr(choir_error(), sources[i].name))
				fail_msg("%s: %s", sources[i].name, choir_error());
		}
		assert_true(examples < sources[i].min);
		chi_error_clear();
		choir_dataset_free(d);
	}
}

TEST_GROUP(NULL, scratch_leave)
