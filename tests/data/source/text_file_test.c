// Text: bytes, windows and lines, plain and compressed, and what is no text.
#include "data/elements.h"

#include "data/source/scratch.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef CHI_HAS_ZLIB
#include <zlib.h>
#endif

TEST(bytes_of_a_file)
{
	choir_dataset *d = choir_text_bytes_dataset_new(scratch_text("t.txt", "a\nb"), "byte");
	assert_int_equal(chi_dataset_spec(d)->examples, 3);
	assert_pass(d, "97\n10\n98\n");
	assert_pass(choir_text_bytes_dataset_new(scratch_text("t.txt", ""), "byte"), "");
	assert_refused(choir_text_bytes_dataset_new(NULL, "byte"), CHOIR_INVALID, "NULL");
	assert_refused(
			choir_text_bytes_dataset_new(scratch_path("none"), "byte"), CHOIR_NOT_FOUND, "none");
}

// Byte i of windows and targets, from the definition: targets are one further.
TEST(windows_of_a_file)
{
	enum { BYTES = 1000 };
	char text[BYTES + 1];
	for (int i = 0; i < BYTES; i++)
		text[i] = (char) ('!' + i % 89);
	text[BYTES] = '\0';
	const char *path = scratch_text("w.txt", text);
	static const int cases[][2] = { { 1, 0 }, { 10, 0 }, { 10, 1 }, { 10, 3 }, { 7, 200 },
		{ 999, 0 }, { 1000, 0 } };
	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
		const int context = cases[k][0], stride = cases[k][1] ? cases[k][1] : context;
		choir_dataset *d = choir_text_windows_dataset_new(path, context, cases[k][1]);
		unsigned char input[3 * BYTES], target[3 * BYTES];
		chi_element e = { .column = { input, target }, .capacity = 3 };
		int64_t n = 0;
		d = choir_dataset_batch(d, 3);
		while (chi_dataset_next(d, &e) == CHOIR_OK)
			for (int64_t i = 0; i < e.examples; i++, n++)
				for (int b = 0; b < context; b++) {
					assert_int_equal(input[i * context + b], text[n * stride + b]);
					assert_int_equal(target[i * context + b], text[n * stride + b + 1]);
				}
		int64_t expected = 0;
		while (expected * stride + context + 1 <= BYTES)
			expected++;
		assert_int_equal(n, expected);
		choir_dataset_free(d);
	}
	assert_refused(choir_text_windows_dataset_new(path, 0, 1), CHOIR_INVALID, "0*context");
	assert_refused(choir_text_windows_dataset_new(path, 1, -1), CHOIR_INVALID, "-1*stride");
	assert_refused(choir_text_windows_dataset_new(path, INT64_MAX, 0), CHOIR_INVALID, "less than");
}

TEST(lines_of_a_file)
{
	assert_pass(choir_text_lines_dataset_new(scratch_text("l.txt", "ab\r\n\nc\n\xc3\xa4"), "line",
						CHOIR_BAD_RECORD_ERROR),
			"[97 98]\n[]\n[99]\n[195 164]\n");
	assert_pass(choir_text_lines_dataset_new(
						scratch_text("l.txt", "a\r"), "line", CHOIR_BAD_RECORD_ERROR),
			"[97 13]\n");
	assert_pass(choir_text_lines_dataset_new(
						scratch_text("l.txt", ""), "line", CHOIR_BAD_RECORD_ERROR),
			"");
	const char *bad = scratch_text("l.txt", "a\n\xff\nb\n");
	choir_dataset *d = choir_text_lines_dataset_new(bad, "line", CHOIR_BAD_RECORD_ERROR);
	assert_non_null(strstr(pass_in_words(d), "l.txt: line 2, byte 2: not UTF-8"));
	choir_dataset_free(d);
	d = choir_dataset_prefetch(
			choir_text_lines_dataset_new(bad, "line", CHOIR_BAD_RECORD_ERROR), 100);
	assert_non_null(strstr(pass_in_words(d), "[97]\n! CHOIR_CORRUPT "));
	choir_dataset_free(d);
	d = choir_text_lines_dataset_new(bad, "line", CHOIR_BAD_RECORD_SKIP);
	assert_string_equal(pass_in_words(d), "[97]\n[98]\n");
	assert_int_equal(choir_dataset_skipped(d), 1);
	choir_dataset_free(d);
}

// A line that is longer than the buffer, and its neighbours.
TEST(long_lines)
{
	enum { LONG = 300000 };
	char *text = malloc(LONG + 10);
	assert_non_null(text);
	memset(text, 'x', LONG + 4);
	text[1] = text[LONG] = '\n';
	const char *path = scratch_write("long.txt", text, LONG + 4);
	free(text);
	choir_dataset *d = choir_text_lines_dataset_new(path, "line", CHOIR_BAD_RECORD_ERROR);
	chi_ragged_value cell = { 0 };
	chi_element e = { .column = { &cell }, .capacity = 1 };
	const int64_t lengths[] = { 1, LONG - 2, 3 };
	for (int i = 0; i < 3; i++) {
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		assert_int_equal(cell.shape.dim[0], lengths[i]);
	}
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_END);
	chi_ragged_value_free(&cell);
	choir_dataset_free(d);
}

TEST(compressed_text)
{
#ifdef CHI_HAS_ZLIB
	const char *path = scratch_path("t.gz");
	gzFile f = gzopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(gzputs(f, "abc\nd"), 5);
	assert_int_equal(gzclose(f), Z_OK);
	assert_pass(choir_text_bytes_dataset_new(path, "byte"), "97\n98\n99\n10\n100\n");
	assert_pass(choir_text_windows_dataset_new(path, 2, 0), "[97 98] [98 99]\n[99 10] [10 100]\n");
	assert_pass(choir_text_lines_dataset_new(path, "line", CHOIR_BAD_RECORD_ERROR),
			"[97 98 99]\n[100]\n");
#else
	skip();
#endif
}

TEST(made_examples)
{
	assert_pass(choir_range_dataset_new("i", 2, 9, 3), "2\n5\n8\n");
	assert_pass(choir_range_dataset_new("i", 2, 8, 3), "2\n5\n");
	assert_pass(choir_range_dataset_new("i", 3, 0, -2), "3\n1\n");
	assert_pass(choir_range_dataset_new("i", 3, 3, 1), "");
	assert_pass(choir_range_dataset_new("i", 3, 9, -1), "");
	assert_pass(choir_range_dataset_new("i", INT64_MAX - 1, INT64_MAX, 7), "9.22337204e+18\n");
	assert_refused(choir_range_dataset_new("i", 0, 1, 0), CHOIR_INVALID, "range dataset:*step 0");
	assert_refused(choir_range_dataset_new("i", INT64_MIN, 1, 1), CHOIR_INVALID,
			"range dataset:*-9223372036854775808 to 1*63");
	assert_refused(choir_range_dataset_new("i", 1, INT64_MIN, -1), CHOIR_INVALID,
			"range dataset:*1 to -9223372036854775808*63");
	const float x[] = { 1.5f, -2 };
	const uint8_t y = 7;
	choir_column c[] = { { .name = "x", .shape = { 1, { 2 } }, .data = x },
		{ .name = "y", .dtype = CHOIR_U8, .data = &y } };
	assert_pass(choir_constant_dataset_new(3, 2, c), "[1.5 -2] 7\n[1.5 -2] 7\n[1.5 -2] 7\n");
	assert_pass(choir_constant_dataset_new(0, 2, c), "");
	assert_pass(choir_dataset_take(choir_constant_dataset_new(CHOIR_FOREVER, 2, c), 1),
			"[1.5 -2] 7\n");
	assert_refused(choir_constant_dataset_new(-2, 2, c), CHOIR_INVALID, "-2*examples");
	c[1].data = NULL;
	assert_refused(choir_constant_dataset_new(1, 2, c), CHOIR_INVALID, "constant dataset:*\"y\"");
}

static choir_status read_bytes(void *path)
{
	unsigned char byte;
	return read_to_end(choir_text_bytes_dataset_new(path, "x"),
			(chi_element){ .column = { &byte }, .capacity = 1 });
}

static choir_status read_windows(void *path)
{
	unsigned char input[2], target[2];
	return read_to_end(choir_text_windows_dataset_new(path, 2, 1),
			(chi_element){ .column = { input, target }, .capacity = 1 });
}

static choir_status read_lines(void *path)
{
	chi_ragged_value line = { 0 };
	const choir_status status =
			read_to_end(choir_text_lines_dataset_new(path, "x", CHOIR_BAD_RECORD_ERROR),
					(chi_element){ .column = { &line }, .capacity = 1 });
	chi_ragged_value_free(&line);
	return status;
}

TEST(every_allocation_may_fail)
{
	char path[256];
	snprintf(path, sizeof path, "%s", scratch_text("t.txt", "abc\ndef\nghi"));
	assert_every_allocation(read_bytes, path);
	assert_every_allocation(read_windows, path);
	assert_every_allocation(read_lines, path);
}

TEST_GROUP(NULL, scratch_leave)
