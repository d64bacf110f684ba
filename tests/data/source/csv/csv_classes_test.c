// Labels of a classification: numbers are classes by their values.
#include "data/elements.h"

#include "data/source/scratch.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static const choir_csv_column label = { .name = "y", .kind = CHOIR_CSV_CLASS };

static choir_dataset *labels(const char *text)
{
	return CSV_OF(text, .columns = 1, .column = &label, .missing = CHOIR_MISSING_DROP);
}

// The classes' texts, in the order of their numbers.
static void assert_classes(choir_dataset *d, const char *holds, const char *const texts[])
{
	choir_csv_inferred found;
	size_t n = 0;
	assert_true(choir_csv_dataset_column(d, 0, &found));
	assert_string_equal(found.holds, holds);
	for (; texts[n]; n++)
		assert_string_equal(choir_dataset_category(d, "y", (int64_t) n), texts[n]);
	assert_int_equal(choir_dataset_categories(d, "y"), n);
}

TEST(numbers_from_0_stay_as_they_are)
{
	choir_dataset *d = labels("y\n2\n0\n1\n2\n");
	assert_int_equal(choir_dataset_column(d, 0)->dtype, CHOIR_I64);
	assert_classes(d, "whole numbers", (const char *const[]){ NULL });
	assert_pass(d, "2\n0\n1\n2\n");
}

TEST(other_numbers_are_classes_by_their_values)
{
	static const struct {
		const char *text, *holds, *classes[4], *pass;
	} cases[] = {
		{ "y\n30\n10\n9\n", "whole numbers", { "9", "10", "30" }, "2\n1\n0\n" },
		{ "y\n1\n-1\n\n-1\n", "whole numbers", { "-1", "1" }, "1\n0\n0\n" },
		{ "y\n01\n02\n10\n", "whole numbers", { "01", "02", "10" }, "0\n1\n2\n" },
		{ "y\n0.0\nNA\n1.0\n", "whole numbers", { "0.0", "1.0" }, "0\n1\n" },
		{ "y\n1.0\n10\n1\n", "whole numbers", { "1", "10" }, "0\n1\n0\n" },
		{ "y\n0.5\n-2\n0.50\n", "numbers", { "-2", "0.5" }, "1\n0\n1\n" },
		{ "y\n9007199254740993\n9007199254740992\n", "whole numbers",
				{ "9007199254740992", "9007199254740993" }, "1\n0\n" },
		{ "y\n1\n1.0\ninf\nNAN\nInf\n", "numbers", { "1", "Inf", "NAN" }, "0\n0\n1\n2\n1\n" },
		{ "y\nb\n10\n9\n", "text", { "10", "9", "b" }, "2\n0\n1\n" },
		{ "y\n1\n2.5\nb\n", "text", { "1", "2.5", "b" }, "0\n1\n2\n" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		choir_dataset *d = labels(cases[i].text);
		assert_classes(d, cases[i].holds, cases[i].classes);
		assert_pass(d, cases[i].pass);
	}
}

TEST(given_classes_are_found_by_their_values)
{
	choir_csv_column given = label;
	given.categories = 2;
	given.category = (const char *const[]){ "01", "10" };
	assert_pass(CSV_OF("y\n10.0\n1\n01\n", .columns = 1, .column = &given), "1\n0\n0\n");
	assert_pass_fails(
			CSV_OF("y\n1\n7\n", .columns = 1, .column = &given), "row 2*\"7\" is not one");
	given.category = (const char *const[]){ "a", "1" };
	assert_pass_fails(
			CSV_OF("y\na\n1\n1.0\n", .columns = 1, .column = &given), "row 3*\"1.0\" is not one");
}

TEST(many_numbers_stay_numbers)
{
	static char text[80000] = "y\n";
	size_t at = 2;
	for (int i = 0; i < 5000; i++)
		at += (size_t) snprintf(text + at, sizeof text - at, "%d.5\n", i);
	choir_dataset *d = labels(text);
	assert_int_equal(choir_dataset_column(d, 0)->dtype, CHOIR_F64);
	assert_classes(d, "numbers", (const char *const[]){ NULL });
	choir_dataset_free(d);
	snprintf(text + at, sizeof text - at, "x\n"); // all texts then
	d = labels(text);
	assert_int_equal(choir_dataset_categories(d, "y"), 5001);
	choir_dataset_free(d);
}

TEST(a_schema_hands_classes_on)
{
	choir_dataset *schema = labels("y\n5\n7\n"), *plain = labels("y\n1\n0\n");
	choir_dataset *d = CSV_OF("y\n7.0\n5\n", .columns = 1, .column = &label, .schema = schema);
	assert_pass(d, "1\n0\n");
	d = CSV_OF("y\n1\n0\n", .columns = 1, .column = &label, .schema = plain);
	assert_int_equal(choir_dataset_column(d, 0)->dtype, CHOIR_I64);
	assert_pass(d, "1\n0\n");
	choir_dataset_free(schema);
	choir_dataset_free(plain);
}

TEST(a_schema_of_other_kinds_does_not_decide)
{
	static const char words[] = "y,a\np,u\nq,v\n", numbers[] = "y,a\n10,u\n9,v\n";
	const choir_csv_column a = { .name = "a", .kind = CHOIR_CSV_CATEGORY };
	const choir_csv_column y = { .name = "y", .kind = CHOIR_CSV_CATEGORY };
	choir_dataset *schema = CSV_OF(words, .columns = 1, .column = &a);
	choir_dataset *d = CSV_OF(words, .columns = 1, .column = &label, .schema = schema);
	assert_pass(d, "0\n1\n");
	choir_dataset_free(schema);
	choir_dataset *const schemas[] = { csv_of_text(numbers, NULL),
		CSV_OF(numbers, .columns = 1, .column = &a), CSV_OF(numbers, .columns = 1, .column = &y),
		CSV_OF(numbers, .columns = 1, .column = &label) };
	for (size_t i = 0; i < 4; i++) {
		d = CSV_OF(numbers, .columns = 1, .column = &label, .schema = schemas[i]);
		assert_classes(d, "whole numbers", (const char *const[]){ "9", "10", NULL });
		assert_pass(d, "1\n0\n");
		d = CSV_OF(numbers, .columns = 1, .column = &y, .schema = schemas[i]);
		assert_classes(d, "whole numbers", (const char *const[]){ "10", "9", NULL });
		assert_pass(d, "0\n1\n");
	}
	for (size_t i = 0; i < 4; i++)
		choir_dataset_free(schemas[i]);
}

static choir_status read_classes(void *path)
{
	const choir_csv_options o = { .size = sizeof o,
		.columns = 1,
		.column = &label,
		.other_columns = "x",
		.other_categories = 9,
		.find_separator = true };
	choir_dataset *schema = choir_csv_dataset_new(path, &o);
	choir_csv_options again = o;
	again.schema = schema;
	choir_dataset *d = schema ? choir_csv_dataset_new(path, &again) : NULL;
	choir_dataset_free(schema);
	int32_t y;
	float x[4];
	return read_to_end(d, (chi_element){ .column = { &y, x }, .capacity = 1 });
}

TEST(every_allocation_may_fail)
{
	char path[256];
	snprintf(path, sizeof path, "%s", scratch_text("t.csv", "sep=;\ny;a\n7;1\n10;?\n7;1\n10;?\n"));
	assert_every_allocation(read_classes, path);
}

TEST_GROUP(NULL, scratch_leave)
