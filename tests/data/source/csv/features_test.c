// Columns of a table as the numbers that a model takes: one-hot texts, dates, missing values with
// indicators; which are chosen by other_columns, and the same columns given one by one.
#include "data/elements.h"

#include "base/status.h"
#include "data/source/scratch.h"
#include "test.h"

#include <stdio.h>

static const char sales[] = "price,colour,note,sold,stock\n"
							"1.5,red,\"one\",2026-11-24,3\n"
							",blue,\"two\",1970-01-02,4\n"
							"2.5,red,\"three\",,5\n"
							"3.5,,\"four\",1970-01-03,6\n"
							"4.5,blue,\"five\",1970-01-04,7\n";
// Each text of a and b occurs twice.
static const char late[] = "a,b,stock\n1,x,1\n1,x,2\nz,\xff,3\nz,\xff,4\n";

TEST(one_hot_texts)
{
	static const choir_csv_column alone = { .name = "colour", .kind = CHOIR_CSV_ONE_HOT };
	choir_dataset *d =
			CSV_OF(sales, .columns = 1, .column = &alone, .missing = CHOIR_MISSING_DROP);
	assert_int_equal(chi_dataset_spec(d)->column[0].dtype, CHOIR_F32);
	assert_int_equal(chi_dataset_spec(d)->column[0].shape.rank, 1);
	assert_pass(d, "[0 1]\n[1 0]\n[0 1]\n[1 0]\n");
	const choir_csv_column given = { .name = "colour",
		.kind = CHOIR_CSV_ONE_HOT,
		.categories = 3,
		.category = (const char *const[]){ "red", "green", "blue" },
		.indicator = true };
	assert_pass(CSV_OF(sales, .columns = 1, .column = &given, .missing = CHOIR_MISSING_NAN),
			"[1 0 0 0]\n[0 0 1 0]\n[1 0 0 0]\n[0 0 0 1]\n[0 0 1 0]\n");
	assert_pass_fails(CSV_OF("colour\nred\npink\n", .columns = 1, .column = &given),
			"row 2, byte 11: column \"colour\": \"pink\" is not one of the column's categories: "
			"red, green, blue");
	const choir_csv_column many = { .name = "colour",
		.kind = CHOIR_CSV_CATEGORY,
		.categories = 8,
		.category = (const char *const[]){ "a", "b\n", "c", "d", "e", "f", "g", "h" } };
	assert_pass_fails(CSV_OF("colour\npink\n", .columns = 1, .column = &many),
			"categories: a, b\\x0a, c, d, e, f and 2 more");
	d = CSV_OF("colour\nred\npink\nblue\n", .columns = 1, .column = &given,
			.bad_record = CHOIR_BAD_RECORD_SKIP);
	assert_string_equal(pass_in_words(d), "[1 0 0 0]\n[0 0 1 0]\n");
	assert_int_equal(choir_dataset_skipped(d), 1);
	choir_dataset_free(d);
}

TEST(rows_without_a_required_value_are_dropped)
{
	static const choir_csv_column columns[] = { { .name = "price" },
		{ .name = "sold", .kind = CHOIR_CSV_DATE, .drop_missing = true } };
	choir_dataset *d =
			CSV_OF(sales, .columns = 2, .column = columns, .missing = CHOIR_MISSING_NAN);
	assert_string_equal(pass_in_words(d), "1.5 20781\nnan 1\n3.5 2\n4.5 3\n");
	assert_int_equal(choir_dataset_dropped(d), 1);
	choir_dataset_free(d);
}

TEST(rows_keep_an_optional_value_that_is_missing_or_wrong)
{
	choir_csv_column columns[] = { { .name = "x", .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_I64 },
		{ .name = "y", .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_F32, .optional = true },
		{ .name = "n", .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_I64, .optional = true },
		{ .name = "kind",
				.kind = CHOIR_CSV_CATEGORY,
				.categories = 2,
				.category = (const char *const[]){ "a", "b" },
				.optional = true } };
	static const char text[] = "x,y,n,kind\n1,2,3,b\n2,,NA,\n3,two,2.5,c\n,1,1,a\n4,5,6,a\n";
	choir_dataset *d =
			CSV_OF(text, .columns = 4, .column = columns, .missing = CHOIR_MISSING_DROP);
	chi_error_clear();
	assert_string_equal(pass_in_words(d), "1 2 3 1\n2 nan -1 -1\n3 nan -1 -1\n4 5 6 0\n");
	assert_int_equal(choir_dataset_dropped(d), 1);
	choir_dataset_free(d);
	assert_int_equal(choir_error_status(), CHOIR_OK);
	columns[3].categories = 0;
	d = CSV_OF("x,y,n,kind\n1,2,3,b\n1,2,3,\xff\n", .columns = 4, .column = columns);
	assert_pass(d, "1 2 3 0\n1 2 3 -1\n");
	columns[1].dtype = CHOIR_U8;
	assert_null(CSV_OF(text, .columns = 4, .column = columns));
	assert_text_holds(choir_error(), "column \"y\" is optional");
}

TEST(dates_are_days)
{
	static const choir_csv_column columns[] = {
		{ .name = "sold", .kind = CHOIR_CSV_DATE, .dtype = CHOIR_F64 }, { .name = "stock" }
	};
	assert_pass(CSV_OF(sales, .columns = 2, .column = columns, .missing = CHOIR_MISSING_NAN),
			"20781 3\n1 4\nnan 5\n2 6\n3 7\n");
	assert_pass_fails(CSV_OF("sold,stock\n1970-01-01T12:00,1\n1970-02-30,2\n", .columns = 2,
							  .column = columns),
			"row 2*\"sold\": \"1970-02-30\" is not a date of the form 2026-11-24");
	// Inferred columns stay categories.
	assert_pass(CSV_OF("sold\n1970-01-02\n1970-01-01\n", .columns = 0), "1\n0\n");
	assert_pass(CSV_OF("sold\n1970-01-02\nlast week\n", .columns = 0), "0\n1\n");
	assert_pass(CSV_OF("sold\n7\n1970-01-02\n", .columns = 0), "1\n0\n");
}

static const choir_csv_column stock = { .name = "stock", .output = "label" };

TEST(other_columns_are_gathered)
{
	choir_dataset *d = CSV_OF(sales, .columns = 1, .column = &stock, .other_columns = "x",
			.other_categories = 3, .other_dates = true, .indicators = true,
			.missing = CHOIR_MISSING_NAN);
	static const struct {
		const char *name, *holds;
		int64_t missing;
		choir_csv_kind kind;
		size_t categories;
		bool indicator, chosen;
	} found[] = {
		{ "price", "numbers", 1, CHOIR_CSV_NUMBER, 0, true, true },
		{ "colour", "text", 1, CHOIR_CSV_ONE_HOT, 2, true, true },
		{ "note", "text", 0, CHOIR_CSV_NUMBER, 0, false, false },
		{ "sold", "dates", 1, CHOIR_CSV_DATE, 0, true, true },
		{ "stock", "whole numbers", 0, CHOIR_CSV_NUMBER, 0, false, true },
	};
	choir_csv_inferred f;
	for (size_t i = 0; i < sizeof found / sizeof found[0]; i++) {
		assert_true(choir_csv_dataset_column(d, i, &f));
		assert_string_equal(f.name, found[i].name);
		assert_string_equal(f.holds, found[i].holds);
		assert_int_equal(f.missing, found[i].missing);
		assert_int_equal(f.kind, found[i].kind);
		assert_int_equal(f.categories, found[i].categories);
		assert_int_equal(f.indicator, found[i].indicator);
		assert_int_equal(f.output != NULL, found[i].chosen);
	}
	assert_false(choir_csv_dataset_column(d, 5, &f));
	assert_string_equal(choir_csv_dataset_category(d, 1, 0), "blue");
	assert_string_equal(choir_csv_dataset_category(d, 1, 1), "red");
	assert_null(choir_csv_dataset_category(d, 1, 2));
	assert_null(choir_csv_dataset_category(d, 0, 0));
	assert_null(choir_csv_dataset_category(d, 2, 0)); // left out
	assert_null(choir_csv_dataset_category(d, 5, 0));
	assert_null(choir_csv_dataset_category(NULL, 0, 0));
	assert_string_equal(pass_in_words(d),
			"3 [1.5 0 0 1 0 20781 0]\n4 [nan 1 1 0 0 1 0]\n5 [2.5 0 0 1 0 nan 1]\n"
			"6 [3.5 0 0 0 1 2 0]\n7 [4.5 0 1 0 0 3 0]\n");
	// The schema of the whole file, for a file with less.
	assert_pass(CSV_OF("price,colour,note,sold,stock\n7,red,x,1970-01-01,8\n", .columns = 1,
						.column = &stock, .other_columns = "x", .other_categories = 3,
						.other_dates = true, .indicators = true, .missing = CHOIR_MISSING_NAN,
						.schema = d),
			"8 [7 0 0 1 0 0 0]\n");
	choir_dataset_free(d);
}

TEST(texts_with_many_values_are_left_out)
{
	assert_pass(CSV_OF(sales, .columns = 1, .column = &stock, .other_columns = "x",
						.other_categories = 2, .missing = CHOIR_MISSING_DROP),
			"3 [1.5 0 1]\n5 [2.5 0 1]\n7 [4.5 1 0]\n");
	assert_pass(CSV_OF(sales, .columns = 1, .column = &stock, .other_columns = "x",
						.other_categories = 1, .missing = CHOIR_MISSING_DROP),
			"3 [1.5]\n5 [2.5]\n6 [3.5]\n7 [4.5]\n");
	// A text of "note" occurs once.
	assert_pass(CSV_OF(sales, .columns = 1, .column = &stock, .other_columns = "x",
						.other_categories = SIZE_MAX, .missing = CHOIR_MISSING_DROP),
			"3 [1.5 0 1 0 0 1 0 0]\n5 [2.5 0 1 0 0 0 1 0]\n7 [4.5 1 0 1 0 0 0 0]\n");
	// Of text behind numbers, and of text that is not UTF-8.
	assert_pass(CSV_OF(late, .columns = 1, .column = &stock, .other_columns = "x",
						.other_categories = 2),
			"1 [1 0]\n2 [1 0]\n3 [0 1]\n4 [0 1]\n");
	assert_refused(CSV_OF(late, .columns = 1, .column = &stock, .other_columns = "x",
						   .other_categories = 1),
			CHOIR_INVALID, "no column of numbers is left as input*\"a\" holds text");
}

TEST(a_schema_with_another_limit_is_not_taken)
{
	static const char text[] = "a,stock\nx,1\ny,2\nx,3\ny,4\n";
	choir_dataset *schema = CSV_OF(
			text, .columns = 1, .column = &stock, .other_columns = "x", .other_categories = 2);
	assert_pass(CSV_OF("a,stock\ny,1\n", .columns = 1, .column = &stock, .other_columns = "x",
						.other_categories = 2, .schema = schema),
			"1 [0 1]\n");
	assert_pass(CSV_OF("a,stock\ny,1\n", .columns = 1, .column = &stock, .other_columns = "x",
						.other_categories = SIZE_MAX, .schema = schema),
			"1 [1]\n");
	choir_dataset_free(schema);
}

TEST(what_is_misused)
{
	const choir_csv_column wrong[] = {
		{ .name = "sold", .kind = CHOIR_CSV_DATE, .dtype = CHOIR_I64 },
		{ .name = "stock", .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_I64, .indicator = true },
		{ .name = "colour", .kind = CHOIR_CSV_CATEGORY, .indicator = true },
		{ .name = "price",
				.kind = CHOIR_CSV_NUMBER,
				.categories = 1,
				.category = (const char *const[]){ "x" } },
	};
	static const char *const errors[] = { "\"sold\": dtype i64 for dates*f32 or f64",
		"\"stock\": an indicator*f32", "\"colour\": an indicator*f32", "\"price\": 1 categories" };
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		assert_refused(CSV_OF(sales, .columns = 1, .column = &wrong[i]),
				i < 3 ? CHOIR_UNSUPPORTED : CHOIR_INVALID, errors[i]);
	static const choir_csv_column none = { .name = "a", .kind = CHOIR_CSV_ONE_HOT };
	assert_refused(CSV_OF("a,b\n,1\n", .columns = 1, .column = &none), CHOIR_INVALID,
			"\"a\" has no value; one-hot needs one");
}

static choir_status read_features(void *path)
{
	int64_t label;
	float x[16];
	return read_to_end(
			choir_csv_dataset_new(path,
					CHOIR_OPTIONS(choir_csv_options, .columns = 1, .column = &stock,
							.other_columns = "x", .other_categories = 3, .other_dates = true,
							.indicators = true, .missing = CHOIR_MISSING_NAN)),
			(chi_element){ .column = { &label, x }, .capacity = 1 });
}

TEST(every_allocation_may_fail)
{
	char path[256];
	snprintf(path, sizeof path, "%s", scratch_text("t.csv", sales));
	assert_every_allocation(read_features, path);
}

TEST_GROUP(NULL, scratch_leave)
