// What a column mostly holds, other separators and decimal marks, and numbers that are not finite.
#include "data/elements.h"

#include "data/source/scratch.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static choir_csv_inferred column_of(choir_dataset *d, size_t i)
{
	choir_csv_inferred found;
	assert_true(choir_csv_dataset_column(d, i, &found));
	return found;
}

TEST(a_text_among_numbers_or_dates_is_named)
{
	static char text[8000];
	static const struct {
		const char *usual[2], *odd, *mostly;
		int every, others;
	} cases[] = {
		{ { "1", "2.5" }, "?", "numbers", 20, 10 },
		{ { "1", "2" }, "?", "numbers", 7, 28 },
		{ { "2020-01-01", "2020/02/29" }, "2021-02-30", "dates", 100, 2 },
		{ { "1,5", "266" }, "x", "numbers with a decimal comma", 20, 10 },
		{ { "a", "b" }, "1", NULL, 100, 0 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		size_t at = (size_t) snprintf(text, sizeof text, "a\n\n");
		for (int row = 1; row <= 200; row++)
			at += (size_t) snprintf(text + at, sizeof text - at, "\"%s\"\n",
					row % cases[i].every == 7 % cases[i].every ? cases[i].odd
															   : cases[i].usual[row % 2]);
		choir_dataset *d = csv_of_text(text, NULL);
		const choir_csv_inferred found = column_of(d, 0);
		assert_string_equal(found.holds, "text");
		assert_int_equal(found.values, 200);
		if (!cases[i].mostly) {
			assert_null(found.mostly);
		} else {
			assert_string_equal(found.mostly, cases[i].mostly);
			assert_int_equal(found.others, cases[i].others);
			assert_int_equal(found.other_row, 7);
			assert_string_equal(found.other, cases[i].odd);
		}
		choir_dataset_free(d);
	}
}

TEST(exceptions_are_of_their_field)
{
	static char text[4000];
	size_t at = (size_t) snprintf(text, sizeof text, "a,b\n");
	for (int i = 0; i < 50; i++)
		at += (size_t) snprintf(text + at, sizeof text - at, "\"1,5\",7\n2,7\n");
	choir_dataset *d = csv_of_text(text, NULL);
	assert_string_equal(column_of(d, 0).mostly, "numbers with a decimal comma");
	choir_dataset_free(d);
	at = (size_t) snprintf(text, sizeof text, "a\n");
	for (int i = 0; i < 100; i++)
		at += (size_t) snprintf(text + at, sizeof text - at, "%s\n", i < 50 ? "2020-01-01" : "3");
	d = csv_of_text(text, NULL);
	assert_null(column_of(d, 0).other);
	choir_dataset_free(d);
	for (int i = 0; i < 8; i++)
		snprintf(text + 5 + 5 * i, 6, "ääx");
	memcpy(text, "a\n1\ny", 5);
	d = csv_of_text(text, NULL); // 39 bytes end within a character
	assert_string_equal(column_of(d, 0).other, "yääxääxääxääxääxääxääxä");
	choir_dataset_free(d);
}

TEST(separators_are_found)
{
	static const struct {
		const char *text;
		char separator;
		const char *pass;
	} cases[] = {
		{ "a;b\n1;2\n", ';', "1 2\n" },
		{ "a\tb\n1\t2\n", '\t', "1 2\n" },
		{ "\"a,c\";b\n1;2\n", ';', "1 2\n" },
		{ "a,b\n1,2\n", ',', "1 2\n" },
		{ "a;b,c\n1,2\n", ',', "1 2\n" },
		{ "sep=|\r\na|b\r\n1|2\r\n", '|', "1 2\n" },
		{ "sep=,\na,b\n1,2\n", ',', "1 2\n" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		choir_dataset *d = CSV_OF(cases[i].text, .find_separator = true);
		assert_int_equal(choir_csv_dataset_separator(d), cases[i].separator);
		assert_pass(d, cases[i].pass);
	}
	static const char *const wrong[] = { "sep=\"\na\n1\n", "sep=.\na\n1\n", "sep=\r\na\n1\n" };
	for (size_t i = 0; i < 3; i++)
		assert_refused(CSV_OF(wrong[i], .find_separator = true), CHOIR_INVALID, "csv*separator '");
	scratch_text("s1.csv", "sep=;\na;b\n1;2\n");
	scratch_text("s2.csv", "sep=|\na|b\n1|2\n");
	assert_refused(choir_csv_dataset_new(scratch_path("s?.csv"),
						   CHOIR_OPTIONS(choir_csv_options, .find_separator = true)),
			CHOIR_CORRUPT, "s2.csv*another separator*s1.csv");
	choir_dataset *d = csv_of_text("a;b\n1\n", NULL);
	assert_int_equal(choir_csv_dataset_separator(d), ',');
	assert_pass(d, "1\n");
}

TEST(a_decimal_comma)
{
	assert_pass(CSV_OF("a;b;c\n1,5;-2e1;7\n,25;3;1.5\n", .separator = ';', .decimal = ','),
			"1.5 -20 1\n0.25 3 0\n");
	// Quoted, among commas.
	assert_pass(CSV_OF("a,b\n\"1,5\",2\n1,\"2,5\"\n", .decimal = ','), "1.5 2\n1 2.5\n");
	// A slow conversion.
	assert_pass(CSV_OF("a;b\n0,1000000000000000000000005;1\n", .separator = ';', .decimal = ','),
			"0.1 1\n");
	assert_refused(CSV_OF("a\n1\n", .decimal = ';'), CHOIR_INVALID, "decimal ';'*comma");
}

TEST(numbers_that_are_not_finite_are_bad)
{
	static const choir_csv_column a = {
		.name = "a", .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_F32
	};
	static const char *const wrong[] = { "inf", "1e60", "NAN", "\"-inf\"", "1e60 " };
	char text[80];
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		snprintf(text, sizeof text, "b,a\n1,2\n1,%s\n1,3\n", wrong[i]);
		assert_pass_fails(CSV_OF(text, .columns = 1, .column = &a, .finite = true),
				"row 2*column \"a\"*is not finite");
		assert_pass(CSV_OF(text, .columns = 1, .column = &a, .finite = true,
							.bad_record = CHOIR_BAD_RECORD_SKIP),
				"2\n3\n");
		choir_dataset *d = CSV_OF(text, .columns = 1, .column = &a);
		assert_non_null(strchr(pass_in_words(d), 'n'));
		choir_dataset_free(d);
	}
}

TEST(integers_may_have_a_point)
{
	static const choir_csv_column a = {
		.name = "a", .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_I64
	};
	assert_pass(CSV_OF("a\n1.0\n-2e1\n", .columns = 1, .column = &a), "1\n-20\n");
	assert_pass_fails(CSV_OF("a\n1.5\n", .columns = 1, .column = &a), "\"1.5\"*i64");
}

TEST_GROUP(NULL, scratch_leave)
