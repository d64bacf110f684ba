// CSV: rows that are wrong or lack a value are left out and counted, whoever reads the file.
#include "data/elements.h"

#include "data/source/scratch.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

TEST(wrong_rows_can_be_skipped)
{
	static const char text[] = "a,b\n1,2\n3\n4,5,6\n7,\"8\n9,10\n";
	choir_dataset *d = CSV_OF(text, .bad_record = CHOIR_BAD_RECORD_SKIP);
	assert_string_equal(pass_in_words(d), "1 2\n9 10\n");
	assert_int_equal(choir_dataset_skipped(d), 3);
	choir_dataset_free(d);
	static const choir_csv_column a = { .name = "a", .kind = CHOIR_CSV_NUMBER };
	d = CSV_OF("a,b\nx,1\n2,2\n,3\n", .columns = 1, .column = &a,
			.bad_record = CHOIR_BAD_RECORD_SKIP);
	assert_string_equal(pass_in_words(d), "2\n");
	assert_int_equal(choir_dataset_skipped(d), 2);
	choir_dataset_free(d);
	// Those before a wrong one are handed out, in whatever blocks they are read.
	d = choir_dataset_prefetch(CSV_OF("a\n1\n2\nx\n", .infer_rows = 2), 100);
	assert_non_null(strstr(pass_in_words(d), "1\n2\n! CHOIR_CORRUPT "));
	choir_dataset_free(d);
	// Only the first rows are looked at: a text that comes later makes its row wrong.
	assert_pass_fails(
			CSV_OF("a\n1\n2\nx\n", .infer_rows = 2), "row 3, byte 6: column \"a\": \"x\"*i64");
	assert_pass(CSV_OF("a\n1\n2\nx\n", .infer_rows = 2, .bad_record = CHOIR_BAD_RECORD_SKIP),
			"1\n2\n");
}

static choir_dataset *open_named(const choir_component in[], void *user)
{
	(void) in;
	return choir_csv_dataset_new(user,
			CHOIR_OPTIONS(choir_csv_options, .bad_record = CHOIR_BAD_RECORD_SKIP,
					.missing = CHOIR_MISSING_DROP));
}

// One wrong row and two without a value in each file.
static choir_dataset *of_two(const char *path, bool flat, bool ahead)
{
	const choir_column columns[] = { { .name = "a", .dtype = CHOIR_I64 },
		{ .name = "b", .dtype = CHOIR_I64 } };
	const choir_interleave_options o = { .size = sizeof o,
		.n = 2,
		.columns = columns,
		.cycle_length = flat ? 0 : 2,
		.read_ahead = ahead };
	choir_dataset *d = choir_range_dataset_new("file", 0, 2, 1);
	return flat ? choir_dataset_flat_map(d, &o, open_named, (void *) (uintptr_t) path)
				: choir_dataset_interleave(d, &o, open_named, (void *) (uintptr_t) path);
}

static void assert_left_out(choir_dataset *d, int64_t skipped, int64_t dropped)
{
	if (choir_dataset_skipped(d) != skipped || choir_dataset_dropped(d) != dropped)
		fail_msg("%lld and %lld rows left out, not %lld and %lld",
				(long long) choir_dataset_skipped(d), (long long) choir_dataset_dropped(d),
				(long long) skipped, (long long) dropped);
}

// Of datasets that a step opens and closes, and of passes that are over, the rows stay counted.
TEST(rows_left_out_stay_counted)
{
	char path[256];
	snprintf(path, sizeof path, "%s", scratch_text("x.csv", "a,b\n1,2\n3\n4,NA\n5,6\n7,\n"));
	for (int way = 0; way < 4; way++) {
		choir_dataset *d = of_two(path, way % 2, way / 2);
		for (int twice = 0; twice < 2; twice++) { // each pass counts anew
			assert_string_equal(
					pass_in_words(d), way % 2 ? "1 2\n5 6\n1 2\n5 6\n" : "1 2\n1 2\n5 6\n5 6\n");
			assert_left_out(d, 2, 4);
			assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
			assert_left_out(d, 0, 0);
		}
		choir_dataset_free(d);
	}
	choir_dataset *d = choir_dataset_repeat(open_named(NULL, path), 3), *other;
	const char *const thrice = "1 2\n5 6\n1 2\n5 6\n1 2\n5 6\n";
	assert_string_equal(pass_in_words(d), thrice);
	assert_left_out(d, 3, 6);
	chi_seek_point mark[CHI_MAX_SEEK_POINTS];
	const size_t n = chi_dataset_seek_index(d, mark);
	for (int marks = 0; marks < 2; marks++) { // where passes begin is known, or is not
		other = choir_dataset_repeat(open_named(NULL, path), 3);
		assert_int_equal(chi_dataset_take_seek_index(other, marks ? n : 0, mark), CHOIR_OK);
		assert_int_equal(chi_dataset_seek(other, 0, 5), CHOIR_OK);
		assert_left_out(other, 2, 4);
		assert_string_equal(pass_in_words(other), "5 6\n");
		assert_left_out(other, 3, 6);
		choir_dataset_free(other);
	}
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	assert_left_out(d, 0, 0);
	choir_dataset_free(d);
	d = choir_dataset_repeat(of_two(path, true, false), 2);
	pass_in_words(d);
	assert_left_out(d, 4, 8);
	choir_dataset_free(d);
}

// A quote that has no other, and more behind it than a row can have: in the look at the rows too.
TEST(a_stray_quote_costs_its_own_line)
{
	enum { LINES = 66 };
	const char *path = scratch_text("stray.csv", "a\n1\n\"2\n");
	FILE *f = fopen(path, "r+b"); // the lines behind it are zeros that no disk holds
	assert_non_null(f);
	for (int i = 0; i < LINES; i++) {
		assert_int_equal(fseek(f, (i + 1L) << 20, SEEK_SET), 0);
		assert_int_equal(putc('\n', f), '\n');
	}
	assert_int_equal(fputs("7\n", f) >= 0 ? fclose(f) : -1, 0);
	choir_dataset *d = choir_csv_dataset_new(
			path, CHOIR_OPTIONS(choir_csv_options, .bad_record = CHOIR_BAD_RECORD_SKIP));
	assert_string_equal(pass_in_words(d), "1\n7\n");
	assert_int_equal(choir_dataset_skipped(d), 1 + LINES);
	choir_dataset_free(d);
}
TEST_GROUP(NULL, scratch_leave)
