// Places that are remembered: going to a row, a record or a line of a file without reading what
// lies before, in the same program and in another one, with line ends in quotes, rows that are
// left out, several files; which places are kept; files that are not those they were.
#include "data/elements.h"

#include "base/status.h"
#include "choir/library.h"
#include "data/seek_index.h"
#include "data/source/scratch.h"
#include "data/dataset.h"
#include "short.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 9000, MAX_TEXT = 64 * ROWS };

static const choir_csv_column columns[] = {
	{ .name = "number", .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_I64 },
};

// Rows first to end - 1, each with a text of one or two lines; every fifth has a second one
// without a number before it, every seventh one with a wrong number.
static const char *write_rows(const char *name, int first, int end)
{
	static char text[MAX_TEXT];
	size_t at = (size_t) sprintf(text, "text,number\n");
	for (int i = first; i < end; i++) {
		if (i % 5 == 0)
			at += (size_t) sprintf(text + at, "gap,NA\n");
		if (i % 7 == 0)
			at += (size_t) sprintf(text + at, "\"w\"\"\n\",%dx\r\n", i);
		at += (size_t) sprintf(text + at, "\"a%s,\"\"%d\"\"\",%d\n", i % 3 ? "\n\n" : "", i, i);
		assert_true(at < sizeof text - 100);
	}
	return scratch_write(name, text, at);
}

static choir_dataset *open_rows(const char *path)
{
	choir_dataset *d = choir_csv_dataset_new(path,
			CHOIR_OPTIONS(choir_csv_options, .columns = 1, .column = columns,
					.missing = CHOIR_MISSING_DROP, .bad_record = CHOIR_BAD_RECORD_SKIP));
	if (!d)
		fail_msg("%s", choir_error());
	return d;
}

static int64_t read_one(choir_dataset *d)
{
	int64_t number = -1;
	chi_element e = { .column = { &number }, .capacity = 1 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	return number;
}

static void read_rows(choir_dataset *d, int64_t from, int64_t to)
{
	for (int64_t i = from; i < to; i++)
		assert_int_equal(read_one(d), i);
}

// What was left out before row at, which is counted when it is read.
static void assert_left_out(const choir_dataset *d, int64_t at)
{
	assert_int_equal(choir_dataset_dropped(d), at / 5 + 1);
	assert_int_equal(choir_dataset_skipped(d), at / 7 + 1);
}

static void check_files(const char *path)
{
	choir_dataset *d = open_rows(path);
	read_rows(d, 0, ROWS);
	for (int64_t at = ROWS - 1; at > 0; at -= 317) { // in the same program
		assert_int_equal(chi_dataset_seek(d, 1, at), CHOIR_OK);
		assert_int_equal(read_one(d), at);
		assert_left_out(d, at);
	}
	for (int64_t at = 0; at < ROWS; at += 1111) { // in another
		chi_seek_point mark[CHI_MAX_SEEK_POINTS];
		choir_dataset *other = open_rows(path);
		assert_int_equal(chi_dataset_seek(d, 0, 0), CHOIR_OK);
		read_rows(d, 0, at);
		const size_t n = chi_dataset_seek_index(d, mark);
		assert_in_range(n, 1, CHI_MAX_SEEK_POINTS);
		assert_int_equal(chi_dataset_take_seek_index(other, n, mark), CHOIR_OK);
		assert_int_equal(chi_dataset_seek(other, 0, at), CHOIR_OK);
		read_rows(other, at, ROWS);
		assert_left_out(other, ROWS - 1);
		int64_t number;
		chi_element e = { .column = { &number }, .capacity = 1 };
		assert_int_equal(chi_dataset_next(other, &e), CHOIR_END);
		choir_dataset_free(other);
	}
	assert_int_equal(chi_dataset_seek(d, 2, ROWS + 1), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "9000*9001");
	choir_dataset_free(d);
}

// spec: D30
TEST(rows_are_found_again)
{
	check_files(write_rows("one.csv", 0, ROWS));
	write_rows("part-0.csv", 0, 1);
	write_rows("part-1.csv", 1, 4000);
	write_rows("part-2.csv", 4000, 4000);
	write_rows("part-3.csv", 4000, ROWS);
	check_files(scratch_path("part-*.csv"));
}

TEST(compressed_files_are_unpacked_up_to_there)
{
	char command[600];
	if (!choir_has_feature("zlib"))
		skip();
	snprintf(command, sizeof command, "gzip -f '%s'", write_rows("one.csv", 0, ROWS));
	assert_int_equal(system(command), 0);
	check_files(scratch_path("one.csv.gz"));
}

// Damages all bytes of a file before at, so that who reads them fails.
static void damage_before(const char *path, long at)
{
	FILE *f = fopen(path, "r+b");
	assert_non_null(f);
	assert_int_equal(fseek(f, 12, SEEK_SET), 0); // the header is read, to be compared
	for (long i = 12; i < at - 1; i++) // not the line end
		assert_int_equal(fputc('x', f), 'x');
	assert_int_equal(fclose(f), 0);
}

static choir_dataset *open_strictly(const char *path)
{
	return choir_csv_dataset_new(
			path, CHOIR_OPTIONS(choir_csv_options, .columns = 1, .column = columns));
}

static const char *write_plain(const char *name, int n)
{
	static char text[32 * ROWS];
	size_t at = (size_t) sprintf(text, "text,number\n");
	for (int i = 0; i < n; i++)
		at += (size_t) sprintf(text + at, "t,%d\n", i);
	return scratch_write(name, text, at);
}

// What lies before is not even looked at: it would be refused.
TEST(what_lies_before_is_not_read)
{
	const char *path = write_plain("plain.csv", ROWS);
	choir_dataset *d = open_strictly(path), *other = open_strictly(path);
	chi_seek_point mark[CHI_MAX_SEEK_POINTS];
	read_rows(d, 0, 6000);
	const size_t n = chi_dataset_seek_index(d, mark);
	damage_before(path, (long) mark[n - 1].byte);
	assert_int_equal(mark[n - 1].elements, 5 * CHI_SEEK_POINT_EVERY);
	assert_int_equal(chi_dataset_seek(d, 3, 5500), CHOIR_OK);
	assert_int_equal(read_one(d), 5500);
	assert_int_equal(chi_dataset_take_seek_index(other, n, mark), CHOIR_OK);
	assert_int_equal(chi_dataset_seek(other, 0, 5500), CHOIR_OK);
	assert_int_equal(read_one(other), 5500);
	choir_dataset_free(other);
	other = open_strictly(path);
	assert_int_equal(chi_dataset_seek(other, 0, 5500), CHOIR_CORRUPT); // without marks it is
	choir_dataset_free(other);
	choir_dataset_free(d);
}

TEST(marks_of_other_files_are_not_used)
{
	const char *path = write_plain("a.csv", 5000), *shorter = write_plain("b.csv", 4000);
	choir_dataset *d = open_strictly(path), *other = open_strictly(shorter);
	chi_seek_point mark[CHI_MAX_SEEK_POINTS];
	read_rows(d, 0, 5000);
	const size_t n = chi_dataset_seek_index(d, mark);
	for (size_t i = 0; i < n; i++)
		mark[i].byte = 3; // which would be noticed
	assert_int_equal(chi_dataset_take_seek_index(other, n, mark), CHOIR_OK);
	assert_int_equal(chi_dataset_seek(other, 0, 3000), CHOIR_OK);
	assert_int_equal(read_one(other), 3000);
	choir_dataset_free(other);
	// The same name, but no row begins there.
	other = open_strictly(path);
	assert_int_equal(chi_dataset_take_seek_index(other, n, mark), CHOIR_OK);
	assert_int_equal(chi_dataset_seek(other, 0, 3000), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "a.csv:*byte 3");
	choir_dataset_free(other);
	// A file that has become shorter.
	for (size_t i = 0; i < n; i++)
		mark[i].byte = 1 << 20;
	other = open_strictly(path);
	assert_int_equal(chi_dataset_take_seek_index(other, n, mark), CHOIR_OK);
	assert_int_equal(chi_dataset_seek(other, 0, 3000), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "1048576");
	// Numbers that no source wrote.
	for (int field = 0; field < 6; field++) {
		chi_seek_point wrong = mark[0];
		int64_t *const numbers[] = { &wrong.elements, &wrong.file, &wrong.byte, &wrong.record,
			&wrong.dropped, &wrong.skipped };
		*numbers[field] = -1;
		choir_dataset *third = open_strictly(path);
		assert_int_equal(chi_dataset_take_seek_index(third, 1, &wrong), CHOIR_OK);
		assert_int_equal(chi_dataset_seek(third, 0, 3000), CHOIR_OK);
		assert_int_equal(read_one(third), 3000);
		choir_dataset_free(third);
	}
	choir_dataset_free(other);
	choir_dataset_free(d);
}

// ---- Records and lines.

// Records of numbers as text, of lengths that differ.
static const char *write_records(const char *name, int first, int end)
{
	static char path[600];
	snprintf(path, sizeof path, "%s", scratch_path(name));
	choir_tfrecord_writer *w = choir_tfrecord_writer_new(path, CHOIR_COMPRESSION_NONE);
	assert_non_null(w);
	for (int64_t i = first; i < end; i++) {
		const choir_column c = { .name = "number", .dtype = CHOIR_I64, .data = &i };
		assert_int_equal(choir_tfrecord_writer_write_example(w, 1, &c), CHOIR_OK);
		if (i % 7 == 0) // left out: no number
			assert_int_equal(choir_tfrecord_writer_write(w, "x", 1), CHOIR_OK);
	}
	assert_int_equal(choir_tfrecord_writer_finish(w), CHOIR_OK);
	choir_tfrecord_writer_free(w);
	return path;
}

static choir_dataset *open_records(const char *path)
{
	choir_dataset *d = choir_tfrecord_dataset_new(
			path, CHOIR_OPTIONS(choir_tfrecord_options, .wrong = CHOIR_BAD_RECORD_SKIP));
	if (!d)
		fail_msg("%s", choir_error());
	return d;
}

// The number that a line of text is.
static choir_status line_number(const choir_component in[], choir_component out[], void *user)
{
	char text[32] = "";
	(void) user;
	memcpy(text, in[0].data, (size_t) choir_shape_elements(&in[0].shape));
	*(int64_t *) out[0].data = strtoll(text, NULL, 10);
	return CHOIR_OK;
}

static choir_dataset *open_lines(const char *path)
{
	static const choir_column number = { .name = "number", .dtype = CHOIR_I64 };
	choir_dataset *d = choir_dataset_map(
			choir_text_lines_dataset_new(path, "line", CHOIR_BAD_RECORD_SKIP),
			CHOIR_OPTIONS(choir_map_options, .n = 1, .columns = &number), line_number, NULL);
	if (!d)
		fail_msg("%s", choir_error());
	return d;
}

// Some with CR, some after a line that is not UTF-8, the last one without an end.
static const char *write_lines(const char *name, int n)
{
	static char text[32 * ROWS];
	size_t at = 0;
	for (int i = 0; i < n; i++)
		at += (size_t) sprintf(text + at, "%s%d%s", i % 7 == 0 ? "\xff\n" : "", i,
				i + 1 == n			 ? ""
						: i % 3 == 0 ? "\r\n"
									 : "\n");
	return scratch_write(name, text, at);
}

typedef choir_dataset *open_fn(const char *path);

// At every place: what comes there, and how many were left out, also by another program.
static void check_places_of(open_fn *open, const char *path)
{
	choir_dataset *d = open(path);
	read_rows(d, 0, ROWS);
	for (int64_t at = ROWS; at > 0; at -= 523 * SERIAL_STRIDE) {
		chi_seek_point mark[CHI_MAX_SEEK_POINTS];
		choir_dataset *other = open(path);
		assert_int_equal(chi_dataset_seek(d, 1, at), CHOIR_OK);
		if (at < ROWS)
			assert_int_equal(read_one(d), at);
		const size_t n = chi_dataset_seek_index(d, mark);
		assert_in_range(n, 1, CHI_MAX_SEEK_POINTS);
		assert_int_equal(chi_dataset_take_seek_index(other, n, mark), CHOIR_OK);
		assert_int_equal(chi_dataset_seek(other, 0, at), CHOIR_OK);
		read_rows(other, at, ROWS);
		int64_t number;
		chi_element e = { .column = { &number }, .capacity = 1 };
		assert_int_equal(chi_dataset_next(other, &e), CHOIR_END);
		assert_int_equal(choir_dataset_skipped(other), ROWS / 7 + 1);
		choir_dataset_free(other);
	}
	assert_int_equal(chi_dataset_seek(d, 2, ROWS + 1), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "9000*9001");
	choir_dataset_free(d);
}

// spec: D30
TEST(records_are_found_again)
{
	char command[700];
	check_places_of(open_records, write_records("one.tfrecord", 0, ROWS));
	write_records("rec-0", 0, 1);
	write_records("rec-1", 1, 4096);
	write_records("rec-2", 4096, 4096);
	write_records("rec-3", 4096, ROWS);
	check_places_of(open_records, scratch_path("rec-*"));
	if (!choir_has_feature("zlib"))
		return;
	snprintf(command, sizeof command, "gzip -f '%s'", write_records("two.tfrecord", 0, ROWS));
	assert_int_equal(system(command), 0);
	check_places_of(open_records, scratch_path("two.tfrecord.gz"));
}

// spec: D30
TEST(lines_are_found_again)
{
	char command[700];
	check_places_of(open_lines, write_lines("one.txt", ROWS));
	if (!choir_has_feature("zlib"))
		return;
	snprintf(command, sizeof command, "gzip -f '%s'", write_lines("two.txt", ROWS));
	assert_int_equal(system(command), 0);
	check_places_of(open_lines, scratch_path("two.txt.gz"));
}

// The file is damaged before the place, and found sound; and no place is where none can be.
static void check_not_read(open_fn *open, const char *path, const char *wrong)
{
	chi_seek_point mark[CHI_MAX_SEEK_POINTS];
	choir_dataset *d = open(path);
	read_rows(d, 0, 6000);
	const size_t n = chi_dataset_seek_index(d, mark);
	damage_before(path, (long) mark[n - 1].byte);
	choir_dataset *other = open(path);
	assert_int_equal(chi_dataset_take_seek_index(other, n, mark), CHOIR_OK);
	assert_int_equal(chi_dataset_seek(other, 0, 5500), CHOIR_OK);
	read_rows(other, 5500, ROWS);
	choir_dataset_free(other);
	other = open(path);
	for (size_t i = 0; i < n; i++)
		mark[i].byte += 2;
	assert_int_equal(chi_dataset_take_seek_index(other, n, mark), CHOIR_OK);
	assert_int_equal(chi_dataset_seek(other, 0, 5500), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, wrong);
	assert_int_equal(chi_dataset_seek(other, 1, 0), CHOIR_OK); // that pass only
	choir_dataset_free(other);
	other = open(path);
	for (size_t i = 0; i < n; i++)
		mark[i].byte = 1 << 24; // behind the file's end
	assert_int_equal(chi_dataset_take_seek_index(other, n, mark), CHOIR_OK);
	assert_int_equal(chi_dataset_seek(other, 0, 5500), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, wrong);
	choir_dataset_free(other);
	choir_dataset_free(d);
}

TEST(what_lies_before_records_and_lines_is_not_read)
{
	check_not_read(
			open_lines, write_lines("plain.txt", ROWS), "plain.txt: no line begins at byte");
	choir_dataset *d;
	// The first record says what the columns are, so it stays; behind it is no record.
	const char *path = write_records("plain.tfrecord", 0, ROWS);
	d = open_records(path);
	chi_seek_point mark[CHI_MAX_SEEK_POINTS];
	read_rows(d, 0, 6000);
	const size_t n = chi_dataset_seek_index(d, mark);
	FILE *f = fopen(path, "r+b");
	assert_non_null(f);
	assert_int_equal(fseek(f, 200, SEEK_SET), 0);
	for (long i = 200; i < (long) mark[n - 1].byte; i++)
		assert_int_equal(fputc('x', f), 'x');
	assert_int_equal(fclose(f), 0);
	choir_dataset *other = open_records(path);
	assert_int_equal(chi_dataset_take_seek_index(other, n, mark), CHOIR_OK);
	assert_int_equal(chi_dataset_seek(other, 0, 5500), CHOIR_OK);
	read_rows(other, 5500, ROWS);
	choir_dataset_free(other);
	for (int way = 0; way < 2; way++) {
		other = open_records(path);
		for (size_t i = 0; i < n; i++)
			mark[i].byte = way ? 1 << 24 : mark[i].byte + 2;
		assert_int_equal(chi_dataset_take_seek_index(other, n, mark), CHOIR_OK);
		assert_int_equal(chi_dataset_seek(other, 0, 5500), CHOIR_INVALID);
		assert_failure(CHOIR_INVALID, "plain.tfrecord:*begins");
		choir_dataset_free(other);
	}
	choir_dataset_free(d);
}

// ---- Chains.

static choir_dataset *open_both(const char *left, const char *right)
{
	static const choir_csv_column other = {
		.name = "number", .output = "other", .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_I64
	};
	choir_dataset *d = choir_csv_dataset_new(
			right, CHOIR_OPTIONS(choir_csv_options, .columns = 1, .column = &other));
	d = choir_dataset_zip(open_strictly(left), choir_dataset_skip(d, 3000));
	d = choir_dataset_prefetch(d, 7);
	if (!d)
		fail_msg("%s", choir_error());
	return d;
}

TEST(each_source_of_a_chain_has_its_own)
{
	const char *left = write_plain("left.csv", 6000), *right = write_plain("right.csv", 9000);
	choir_dataset *d = open_both(left, right), *other = open_both(left, right);
	int64_t pair[2];
	chi_element e = { .column = { &pair[0], &pair[1] }, .capacity = 1 };
	for (int i = 0; i < 5000; i++)
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	chi_seek_point mark[CHI_MAX_SEEK_POINTS];
	const size_t n = chi_dataset_seek_index(d, mark);
	assert_int_equal(chi_dataset_take_seek_index(other, n, mark), CHOIR_OK);
	damage_before(left, 2500);
	damage_before(right, 25000);
	for (int64_t at = 2100; at < 6000; at += 1300) {
		assert_int_equal(chi_dataset_seek(other, 0, at), CHOIR_OK);
		assert_int_equal(chi_dataset_next(other, &e), CHOIR_OK);
		assert_int_equal(pair[0], at);
		assert_int_equal(pair[1], at + 3000);
	}
	choir_dataset_free(d);
	choir_dataset_free(other);
}

TEST(close_ones_are_chosen)
{
	chi_seek_index m = { .n = 0 };
	chi_seek_point found, chosen[CHI_MAX_SEEK_POINTS];
	chi_seek_index_init(&m);
	assert_false(chi_seek_index_find(&m, INT64_MAX, &found));
	assert_int_equal(chi_seek_index_choose(&m, 10, chosen, CHI_MAX_SEEK_POINTS), 0);
	int64_t at = 0, max = 0;
	for (int i = 0; i < 200000; i++) { // thinned out some times
		at = chi_seek_index_next(&m, at);
		assert_int_equal(
				chi_seek_index_add(&m, &(chi_seek_point){ .elements = at, .byte = 2 * at }),
				CHOIR_OK);
		max = m.n > (size_t) max ? (int64_t) m.n : max;
	}
	assert_in_range(max, 1000, 1 << 15);
	for (size_t i = 1; i < m.n; i++)
		assert_int_equal(m.point[i].elements - m.point[i - 1].elements, m.every);
	assert_true(chi_seek_index_find(&m, 1000 * m.every + 1, &found));
	assert_int_equal(found.elements, 1000 * m.every);
	assert_int_equal(found.byte, 2000 * m.every);
	const size_t n = chi_seek_index_choose(&m, 500 * m.every, chosen, CHI_MAX_SEEK_POINTS);
	assert_in_range(n, 9, CHI_MAX_SEEK_POINTS);
	for (size_t i = 1; i < n; i++)
		assert_true(chosen[i - 1].elements < chosen[i].elements);
	assert_int_equal(chosen[n - 1].elements, at - at % m.every); // the last of all
	assert_int_equal(chosen[n - 3].elements, 500 * m.every);
	assert_int_equal(chosen[n - 4].elements, 499 * m.every);
	assert_int_equal(chosen[n - 5].elements, 497 * m.every);
	const size_t before = m.n; // once more is the same
	assert_int_equal(chi_seek_index_add(&m, &found), CHOIR_OK);
	assert_int_equal(m.n, before);
	chi_seek_index_free(&m);
}

static choir_status use_marks(void *user)
{
	chi_seek_point mark[CHI_MAX_SEEK_POINTS];
	choir_dataset *d = open_strictly(user), *other = d ? open_strictly(user) : NULL;
	int64_t number;
	chi_element e = { .column = { &number }, .capacity = 1 };
	choir_status status = other ? chi_dataset_seek(d, 0, 3000) : choir_error_status();
	if (status == CHOIR_OK)
		status = chi_dataset_take_seek_index(other, chi_dataset_seek_index(d, mark), mark);
	if (status == CHOIR_OK)
		status = chi_dataset_seek(other, 0, 2500);
	if (status == CHOIR_OK)
		status = chi_dataset_next(other, &e);
	assert_true(status != CHOIR_OK || number == 2500);
	choir_dataset_free(d);
	choir_dataset_free(other);
	return status;
}

TEST(every_allocation_may_fail)
{
	char path[256];
	snprintf(path, sizeof path, "%s", write_plain("plain.csv", 4000));
	assert_every_allocation(use_marks, path);
}

TEST_GROUP(NULL, scratch_leave)
