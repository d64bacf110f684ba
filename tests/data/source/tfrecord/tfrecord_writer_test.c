// Writing TFRecord files: the bytes of a plain one are those of other code; what is written is
// read back, compressed too; and a file appears whole or not at all.
#include "data/elements.h"
#include "data/source/tfrecord/protos.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/fs.h"
#include "base/file.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH "w.tfrecord"

static bytes load(const char *path)
{
	bytes b = { NULL, 0, 0 };
	char block[4096];
	size_t n;
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	while ((n = fread(block, 1, sizeof block, f)) > 0)
		put(&b, block, n);
	fclose(f);
	return b;
}

static choir_status write_numbers(choir_tfrecord_writer *w, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		const choir_column number = { "number", CHOIR_I64, CHOIR_SCALAR, &i };
		CHOIR_TRY(choir_tfrecord_writer_write_example(w, 1, &number));
	}
	return choir_tfrecord_writer_finish(w);
}

TEST(the_bytes_are_those_of_the_format)
{
	const float floats[2] = { 1.5f, -2 };
	const int64_t number = -7;
	const choir_column columns[] = { { "image", CHOIR_U8, CHOIR_SHAPE(3), "abc" },
		{ "label", CHOIR_I64, CHOIR_SCALAR, &number },
		{ "z", CHOIR_F32, CHOIR_SHAPE(2), floats } };
	choir_tfrecord_writer *w = choir_tfrecord_writer_new(PATH, CHOIR_COMPRESSION_AUTO);
	assert_int_equal(choir_tfrecord_writer_write_example(w, 3, columns), CHOIR_OK);
	assert_int_equal(choir_tfrecord_writer_write(w, "", 0), CHOIR_OK);
	assert_int_equal(choir_tfrecord_writer_write(w, "raw", 3), CHOIR_OK);
	assert_int_equal(access(PATH, F_OK), -1);
	assert_int_equal(choir_tfrecord_writer_finish(w), CHOIR_OK);
	assert_int_equal(choir_tfrecord_writer_write(w, "raw", 3), CHOIR_STATE);
	assert_failure(CHOIR_STATE, "tfrecord writer:*finished");
	assert_int_equal(choir_tfrecord_writer_finish(w), CHOIR_STATE);
	chi_error_clear();
	choir_tfrecord_writer_free(w);

	bytes features = { NULL, 0, 0 }, file = { NULL, 0, 0 };
	bytes a = bytes_list(1, "abc", 3), b = int64_list(1, &number), c = float_list(2, floats);
	put_entry(&features, "image", BYTES_LIST, &a);
	put_entry(&features, "label", INT64_LIST, &b);
	put_entry(&features, "z", FLOAT_LIST, &c);
	bytes e = example(&features);
	put_record_of(&file, &e);
	put_record(&file, NULL, 0);
	put_record(&file, "raw", 3);
	bytes written = load(PATH);
	assert_int_equal(written.n, file.n);
	assert_memory_equal(written.data, file.data, file.n);
	free(written.data);
	free(file.data);
	unlink(PATH);
}

TEST(what_is_written_is_read_back)
{
	static const struct {
		const char *path;
		choir_compression compression;
		unsigned char first[2];
	} cases[] = { { PATH, CHOIR_COMPRESSION_AUTO, { 19, 0 } },
#ifdef CHI_HAS_ZLIB
		{ "w.gz", CHOIR_COMPRESSION_AUTO, { 0x1f, 0x8b } },
		{ PATH, CHOIR_COMPRESSION_GZIP, { 0x1f, 0x8b } },
		{ PATH, CHOIR_COMPRESSION_ZLIB, { 0x78, 0x9c } },
#endif
		{ "w.gz", CHOIR_COMPRESSION_NONE, { 19, 0 } } };
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		choir_tfrecord_writer *w = choir_tfrecord_writer_new(cases[i].path, cases[i].compression);
		assert_int_equal(write_numbers(w, 4000), CHOIR_OK);
		choir_tfrecord_writer_free(w);
		bytes b = load(cases[i].path);
		assert_memory_equal(b.data, cases[i].first, 2);
		free(b.data);
		choir_dataset *d = choir_tfrecord_dataset_new(cases[i].path, NULL);
		pass p;
		read_pass(d, MAX_NUMBERS, &p);
		assert_int_equal(p.status, CHOIR_END);
		assert_int_equal(p.n, 4000);
		for (int64_t k = 0; k < p.n; k++)
			assert_int_equal(p.number[k], k);
		choir_dataset_free(d);
		unlink(cases[i].path);
	}
}

TEST(what_cannot_be_is_refused_and_changes_nothing)
{
	assert_null(choir_tfrecord_writer_new(NULL, CHOIR_COMPRESSION_AUTO));
	assert_failure(CHOIR_INVALID, "tfrecord writer:*NULL");
	assert_null(choir_tfrecord_writer_new(PATH, (choir_compression) 7));
	assert_failure(CHOIR_INVALID, "compression");
	assert_null(choir_tfrecord_writer_new("none/w.tfrecord", CHOIR_COMPRESSION_NONE));
	assert_failure(CHOIR_IO, "none/w.tfrecord");
	assert_int_equal(choir_tfrecord_writer_finish(NULL), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "tfrecord writer:*NULL");
	choir_tfrecord_writer_free(NULL);

	const int64_t number = 5;
	choir_tfrecord_writer *w = choir_tfrecord_writer_new(PATH, CHOIR_COMPRESSION_NONE);
	const choir_column no[] = { { "x", CHOIR_F64, CHOIR_SCALAR, &number },
		{ "x", CHOIR_I64, CHOIR_SCALAR, NULL }, { NULL, CHOIR_I64, CHOIR_SCALAR, &number },
		{ "x", CHOIR_I64, { 1, { CHOIR_NONE } }, &number } };
	static const char *const texts[] = { "tfrecord writer: record 0: column \"x\" is f64",
		"tfrecord writer: column \"x\": the data are NULL", "column 0 has no name",
		"every dimension of an example must be at least 1" };
	for (size_t i = 0; i < 4; i++) {
		assert_int_not_equal(choir_tfrecord_writer_write_example(w, 1, &no[i]), CHOIR_OK);
		assert_failure(i ? CHOIR_INVALID : CHOIR_UNSUPPORTED, texts[i]);
	}
	assert_int_equal(choir_tfrecord_writer_write_example(w, 0, no), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "0 columns");
	assert_int_equal(choir_tfrecord_writer_write(w, NULL, 1), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "record 0:*NULL");
	assert_int_equal(write_numbers(w, 3), CHOIR_OK);
	choir_tfrecord_writer_free(w);
	choir_dataset *d = choir_tfrecord_dataset_new(PATH, NULL);
	assert_numbers(d, NUMBERS(0, 1, 2));
	choir_dataset_free(d);
	// One that is not finished leaves the file that there is.
	w = choir_tfrecord_writer_new(PATH, CHOIR_COMPRESSION_NONE);
	assert_int_equal(choir_tfrecord_writer_write(w, "x", 1), CHOIR_OK);
	choir_tfrecord_writer_free(w);
	d = choir_tfrecord_dataset_new(PATH, NULL);
	assert_numbers(d, NUMBERS(0, 1, 2));
	choir_dataset_free(d);
	unlink(PATH);
}

// Every system call of writing in turn fails, and every allocation.
TEST(a_file_appears_whole_or_not_at_all)
{
	for (int way = 0; way < 4; way++) {
		const choir_compression compression =
				way % 2 ? CHOIR_COMPRESSION_GZIP : CHOIR_COMPRESSION_NONE;
		choir_status status = CHOIR_IO;
		for (int n = 1; status != CHOIR_OK; n++) {
			if (way < 2)
				chi_fs_fail(n, ENOSPC);
			else
				chi_alloc_fail((uint64_t) n, false);
			choir_tfrecord_writer *w = choir_tfrecord_writer_new(PATH, compression);
			status = w ? write_numbers(w, 3) : choir_error_status();
			if (w && status != CHOIR_OK)
				assert_int_not_equal(choir_tfrecord_writer_write(w, "x", 1), CHOIR_OK);
			chi_fs_fail(0, 0);
			chi_alloc_fail(0, false);
			choir_tfrecord_writer_free(w);
			if (status == CHOIR_OK || access(PATH, F_OK) == 0) {
				choir_dataset *d = choir_tfrecord_dataset_new(PATH, NULL);
				assert_numbers(d, NUMBERS(0, 1, 2));
				choir_dataset_free(d);
				unlink(PATH);
			}
			if (status != CHOIR_OK)
				assert_failure(status, status == CHOIR_NO_MEMORY ? "bytes" : PATH ":");
			assert_in_range(n, 1, 100);
		}
	}
}
