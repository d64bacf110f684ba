// CSV: what rows become, which columns there are and what they hold, missing values, and
// everything that can be wrong with a file, with the row and the byte where it is.
#include "data/elements.h"

#include "data/source/scratch.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char animals[] = "name,legs,weight\n"
							  "cat,4,4.5\n"
							  "hen,2,1.25\n"
							  "cat,4,5\n";

TEST(rows_become_examples)
{
	choir_dataset *d = csv_of_text(animals, NULL);
	const chi_spec *spec = chi_dataset_spec(d);
	assert_int_equal(spec->n, 3);
	assert_string_equal(spec->column[0].name, "name");
	assert_int_equal(spec->column[0].dtype, CHOIR_I32);
	assert_int_equal(spec->column[1].dtype, CHOIR_I64);
	assert_int_equal(spec->column[2].dtype, CHOIR_F64);
	assert_pass(d, "0 4 4.5\n1 2 1.25\n0 4 5\n");
}

TEST(texts_are_categories)
{
	choir_dataset *d = csv_of_text("a,b\nz,1\n\xc3\xa4,2\nx,3\nz,4\n\"x\",5\n", NULL);
	d = choir_dataset_take(choir_dataset_shuffle(d, 2, 1), 5); // transforms hand them on
	assert_int_equal(choir_dataset_categories(d, "a"), 3);
	assert_string_equal(choir_dataset_category(d, "a", 0), "x");
	assert_string_equal(choir_dataset_category(d, "a", 1), "z");
	assert_string_equal(choir_dataset_category(d, "a", 2), "\xc3\xa4");
	assert_null(choir_dataset_category(d, "a", 3));
	assert_null(choir_dataset_category(d, "a", -1));
	assert_int_equal(choir_dataset_categories(d, "b"), 0);
	assert_int_equal(choir_dataset_categories(d, "c"), 0);
	assert_null(choir_dataset_category(d, "b", 0));
	choir_dataset_free(d);
	// Texts behind numbers: all of them are categories.
	d = csv_of_text("a\n7\n1.5\nx\n7\n", NULL);
	assert_int_equal(choir_dataset_categories(d, "a"), 3);
	assert_pass(d, "1\n0\n2\n1\n");
	const choir_csv_column given = { .name = "name",
		.kind = CHOIR_CSV_CATEGORY,
		.categories = 2,
		.category = (const char *const[]){ "hen", "cat" } };
	assert_pass(CSV_OF(animals, .columns = 1, .column = &given), "1\n0\n1\n");
	const choir_csv_column number = { .name = "legs", .kind = CHOIR_CSV_CATEGORY };
	assert_pass(CSV_OF(animals, .columns = 1, .column = &number), "1\n0\n1\n");
}

static choir_status same_number(const choir_component in[], choir_component out[], void *user)
{
	(void) user;
	*(int32_t *) out[0].data = *(const int32_t *) in[0].data;
	return CHOIR_OK;
}

static const choir_column kind = { "kind", CHOIR_I32, { 0, { 0 } }, NULL };

static choir_dataset *open_kinds(const choir_component in[], void *user)
{
	(void) in;
	choir_dataset *d = CSV_OF("kind\ncat\nhen\n", .columns = 0);
	return user ? choir_dataset_map(d, CHOIR_OPTIONS(choir_map_options, .n = 1, .columns = &kind),
						  same_number, NULL)
				: d;
}

// What is announced has none: numbers of one file's texts need not be another's.
TEST(categories_cannot_be_announced)
{
	int32_t found;
	chi_element e = { .column = { &found }, .capacity = 1 };
	const choir_interleave_options o = { .size = sizeof o, .n = 1, .columns = &kind };
	choir_dataset *d = choir_dataset_flat_map(numbers_in_memory(1), &o, open_kinds, NULL);
	assert_next_fails(d, CHOIR_INVALID, "flat_map: element 0*categories");
	choir_dataset_free(d);
	d = choir_dataset_flat_map(numbers_in_memory(1), &o, open_kinds, &found);
	for (int32_t i = 0; i < 2; i++) {
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		assert_int_equal(found, i);
	}
	choir_dataset_free(d);
}

TEST(columns_are_chosen_and_gathered)
{
	static const choir_csv_column weight = {
		.name = "weight", .output = "kg", .kind = CHOIR_CSV_NUMBER
	};
	choir_dataset *d = CSV_OF(animals, .columns = 1, .column = &weight);
	assert_string_equal(chi_dataset_spec(d)->column[0].name, "kg");
	assert_int_equal(chi_dataset_spec(d)->column[0].dtype, CHOIR_F32);
	assert_pass(d, "4.5\n1.25\n5\n");
	static const choir_csv_column both[] = { { .name = "weight", .output = "x" },
		{ .name = "name" }, { .name = "legs", .output = "x" } };
	assert_pass(CSV_OF(animals, .columns = 3, .column = both), "[4.5 4] 0\n[1.25 2] 1\n[5 4] 0\n");
	static const choir_csv_column name = { .name = "name", .output = "label" };
	d = CSV_OF(animals, .columns = 1, .column = &name, .other_columns = "input");
	choir_csv_inferred f;
	assert_true(choir_csv_dataset_column(d, 0, &f));
	assert_string_equal(f.output, "label");
	assert_string_equal(f.holds, "text");
	assert_true(choir_csv_dataset_column(d, 2, &f));
	assert_string_equal(f.name, "weight");
	assert_string_equal(f.output, "input");
	assert_string_equal(f.holds, "numbers");
	assert_false(choir_csv_dataset_column(d, 3, &f));
	assert_pass(d, "0 [4 4.5]\n1 [2 1.25]\n0 [4 5]\n");
	d = CSV_OF(animals, .other_columns = "all");
	assert_true(choir_csv_dataset_column(d, 0, &f));
	assert_null(f.output);
	assert_pass(d, "[4 4.5]\n[2 1.25]\n[4 5]\n");
}

TEST(every_dtype_is_read)
{
	static const choir_csv_column all[] = {
		{ .name = "a", .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_F32 },
		{ .name = "b", .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_F64 },
		{ .name = "c", .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_I32 },
		{ .name = "d", .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_I64 },
		{ .name = "e", .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_U8 },
		{ .name = "f", .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_BOOL },
	};
	assert_pass(CSV_OF("a,b,c,d,e,f\n.5,1e3,-2147483648,9007199254740992,255,1\ninf,-inf,1,2, 3 "
					   ",\"0\"\n-1e39,1e999,1,1,1,1\n",
						.columns = 6, .column = all),
			"0.5 1000 -2.14748365e+09 9.00719925e+15 255 1\ninf -inf 1 2 3 0\n-inf inf 1 1 1 1\n");
	static const struct {
		const char *row, *text;
	} wrong[] = { { "x,1,1,1,1,1", "column \"a\": \"x\"*f32" },
		{ "1,1,2147483648,1,1,1", "\"2147483648\"*i32" },
		{ "1,1,-2147483649,1,1,1", "column*\"-2147483649\"*i32" },
		{ "1,1,1,9223372036854775808,1,1", "i64" }, { "1,1,1,1.5,1,1", "\"1.5\"*i64" },
		{ "1,1,1,1,256,1", "u8" }, { "1,1,1,1,-1,1", "u8" }, { "1,1,1,1,1,2", "bool" },
		{ "1,1,1,inf,1,1", "i64" }, { "1,0x10,1,1,1,1", "f64" } };
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		char text[200];
		snprintf(text, sizeof text, "a,b,c,d,e,f\n1,1,1,1,1,1\n%s\n", wrong[i].row);
		assert_pass_fails(CSV_OF(text, .columns = 6, .column = all), wrong[i].text);
		assert_pass_fails(CSV_OF(text, .columns = 6, .column = all), "t.csv: row 2, byte ");
	}
}

TEST(how_rows_are_written)
{
	static const char *const texts[] = { "x", "x,y", "x\"y", "x\ny" };
	static const choir_csv_column a = {
		.name = "a", .kind = CHOIR_CSV_CATEGORY, .categories = 4, .category = texts
	};
	static const choir_csv_column b = { .name = "b", .kind = CHOIR_CSV_NUMBER };
	const choir_csv_column both[] = { a, b };
#define BOTH .columns = 2, .column = both
	assert_pass(CSV_OF("a,b\r\nx,1\r\n\"x\",2\r\n", BOTH), "0 1\n0 2\n");
	assert_pass(CSV_OF("\xef\xbb\xbf"
					   "a,b\nx,1",
						BOTH),
			"0 1\n");
	assert_pass(CSV_OF("a,b\n\n\nx,1\r\n\r\nx,2\n\n", BOTH), "0 1\n0 2\n");
	assert_pass(CSV_OF("a,b\n\"x,y\",1\n\"x\"\"y\",2\n\"x\ny\",\"3\"\n", BOTH), "1 1\n2 2\n3 3\n");
	assert_pass(CSV_OF("a,b\n x\t, 1 \n x ,2\t\n", BOTH), "0 1\n0 2\n");
	assert_pass(CSV_OF("\"a\",b\nx,1\r\nx,2\r", BOTH), "0 1\n0 2\n");
	assert_pass(CSV_OF("a;b\nx;1\n'x;y';2\n", .separator = ';', .quote = '\'', .columns = 1,
						.column = &b),
			"1\n2\n");
	assert_pass(CSV_OF("a\tb\nx\t1\n", .separator = '\t', BOTH), "0 1\n");
	assert_pass(CSV_OF("1,2\n3,4\n", .header = CHOIR_OFF), "1 2\n3 4\n");
	static const choir_csv_column second = { .name = "1" };
	assert_pass(
			CSV_OF("1,2\n3,4\n", .header = CHOIR_OFF, .columns = 1, .column = &second), "2\n4\n");
	assert_pass(csv_of_text("a,b\n", NULL), "");
}

TEST(missing_values)
{
	static const char text[] = "a,b,c\n1,NA,x\n2,2.5,\n3,nan,y\n4,4.5,x\n";
	assert_pass_fails(csv_of_text(text, NULL), "t.csv: row 1, byte 8: column \"b\" has no value");
	choir_dataset *d = CSV_OF(text, .missing = CHOIR_MISSING_DROP);
	choir_csv_inferred f;
	assert_true(choir_csv_dataset_column(d, 1, &f));
	assert_int_equal(f.missing, 2);
	assert_string_equal(pass_in_words(d), "4 4.5 0\n");
	assert_int_equal(choir_dataset_dropped(d), 3);
	assert_int_equal(choir_dataset_skipped(d), 0);
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	assert_int_equal(choir_dataset_dropped(d), 0);
	assert_pass(d, "4 4.5 0\n");
	static const choir_csv_column ab[] = { { .name = "a" }, { .name = "b" } };
	assert_pass(CSV_OF(text, .columns = 2, .column = ab, .missing = CHOIR_MISSING_NAN),
			"1 nan\n2 2.5\n3 nan\n4 4.5\n");
	assert_pass_fails(CSV_OF(text, .missing = CHOIR_MISSING_NAN),
			"row 2, byte 19: column \"c\" has no value");
	static const char *const own[] = { "-999", "?" };
	assert_pass(CSV_OF("a,b\n-999,1\n5,?\n6,7\n", .missing = CHOIR_MISSING_DROP,
						.missing_texts = 2, .missing_text = own),
			"6 7\n");
	// Columns that nobody chose may lack anything.
	static const choir_csv_column a = { .name = "a" };
	assert_pass(CSV_OF(text, .columns = 1, .column = &a), "1\n2\n3\n4\n");
}

TEST(what_is_wrong)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "", "t.csv:*empty*header" },
		{ "\n\n", "empty*header" },
		{ "a,b\n1,2\n3\n", "t.csv: row 2, byte 8: 1 fields, the header has 2" },
		{ "a,b\n1,2,3\n", "row 1, byte 4: 3 fields, the header has 2" },
		{ "a,a\n1,2\n", "header, byte 0:*two*\"a\"" },
		{ "a,\n1,2\n", "row 1, byte 5: a value in a column without a name" },
		{ "a,,b\n1,2,3\n", "header, byte 0: column 2 has no name" },
		{ ",,b\n1,2,3\n", "header, byte 0: column 2 has no name" },
		{ ",\n1,2\n", "header, byte 0: column 2 has no name" },
		{ ",a\n1,2\n3\n", "row 2, byte 7: 1 fields, a row has 2" },
		{ "a,b\n1,2,3\n4,5\n", "row 1, byte 4: 3 fields, the header has 2" },
		{ "a,\xff\n1,2\n", "the name of column 2 is not UTF-8" },
		{ "a\nx\n\xc3(\n", "row 2, byte 4: column \"a\": \"\\xc3(\" is not UTF-8" },
		{ "a,b\n1,\"x\n", "row 1, byte 6: a quote that is not closed" },
		{ "a,b\n1,\"x\"y\n", "row 1, byte 9:*quote" },
		{ "a,b\n1,x\"y\n", "row 1, byte 7:*quote" },
		{ "a,b\n1,x\ry\n", "row 1, byte 7: a carriage return without" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_pass_fails(csv_of_text(cases[i].text, NULL), cases[i].error);
	assert_pass_fails(choir_csv_dataset_new(scratch_write("t.csv",
													"a\n1\n\0"
													"2\n",
													7),
							  NULL),
			"row 2, byte 4: a zero byte");
	assert_refused(
			choir_csv_dataset_new(scratch_path("none.csv"), NULL), CHOIR_NOT_FOUND, "none.csv");
	assert_refused(choir_csv_dataset_new(scratch_path("none-*.csv"), NULL), CHOIR_NOT_FOUND,
			"no file has this name");
}

TEST(what_is_misused)
{
	static const choir_csv_column no = { .name = "size" },
								  twice[] = { { .name = "legs" }, { .name = "legs" } },
								  mixed[] = { { .name = "legs",
													  .output = "x",
													  .kind = CHOIR_CSV_NUMBER },
									  { .name = "name", .output = "x" } },
								  half = {
									  .name = "legs", .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_F16
								  };
	assert_refused(CSV_OF(animals, .columns = 1, .column = &no), CHOIR_NOT_FOUND,
			".csv:*\"size\"*\"name\"*\"legs\"*\"weight\"");
	assert_refused(CSV_OF(animals, .columns = 2, .column = twice), CHOIR_INVALID, "listed");
	assert_refused(CSV_OF(animals, .columns = 2, .column = mixed), CHOIR_INVALID,
			"\"name\"*i32*\"x\"*f32");
	assert_refused(CSV_OF(animals, .columns = 1, .column = &half), CHOIR_UNSUPPORTED, "f16*dtype");
	assert_refused(CSV_OF(animals, .columns = 1), CHOIR_INVALID, "NULL");
	assert_refused(CSV_OF(animals, .separator = '"'), CHOIR_INVALID, "separator*quote");
	assert_refused(CSV_OF(animals, .separator = '.'), CHOIR_INVALID, "separator '.'");
	assert_refused(CSV_OF(animals, .infer_rows = -1), CHOIR_INVALID, "-1");
	assert_refused(
			CSV_OF("a,b\nx,\n", .other_columns = "y"), CHOIR_INVALID, ".csv:*input*\"a\"*\"b\"");
	assert_refused(choir_csv_dataset_new(NULL, NULL), CHOIR_INVALID, "neither");
	const choir_csv_options sizeless = { .size = 1 };
	assert_refused(choir_csv_dataset_new("x.csv", &sizeless), CHOIR_INVALID, "csv dataset:*1");
	char wide[400] = "";
	for (int i = 0; i < 40; i++)
		sprintf(wide + strlen(wide), "%sc%d", i ? "," : "", i);
	assert_refused(csv_of_text(wide, NULL), CHOIR_INVALID, "32 columns");
}

TEST(several_files)
{
	scratch_text("part-2.csv", "a,b\n5,z\n");
	scratch_text("part-1.csv", "a,b\n1,y\n2,z");
	scratch_text("part-3.csv", "a,b\n");
	scratch_text("part-4.csv", "a,b\n6,x\n");
	choir_dataset *d = choir_csv_dataset_new(scratch_path("part-*.csv"), NULL);
	assert_int_equal(choir_dataset_categories(d, "b"), 3);
	assert_pass(d, "1 1\n2 2\n5 2\n6 0\n");
	d = choir_csv_dataset_new(scratch_path("part-*.csv"), NULL);
	assert_int_equal(chi_dataset_shard_files(d, 2, 1), CHOIR_OK);
	assert_pass(d, "5 2\n6 0\n");
	const char *names[] = { scratch_path("part-4.csv"), scratch_path("part-1.csv") };
	choir_files *files = choir_files_new(2, names);
	d = CSV_OF("", .files = files);
	assert_null(d);
	d = choir_csv_dataset_new(NULL, CHOIR_OPTIONS(choir_csv_options, .files = files));
	choir_files_free(files);
	assert_pass(d, "6 0\n1 1\n2 2\n");
	scratch_text("part-3.csv", "a,c\n");
	assert_refused(choir_csv_dataset_new(scratch_path("part-*.csv"), NULL), CHOIR_CORRUPT,
			"part-3.csv:*column 2*\"c\"");
	scratch_text("part-3.csv", "a\n");
	assert_refused(choir_csv_dataset_new(scratch_path("part-*.csv"), NULL), CHOIR_CORRUPT,
			"part-3.csv:*1 columns");
}

enum { WIDE = 6000, WIDE_TEXT = 3 * 16 * WIDE };

// Columns c0, c1, ... and "label" as the last; value k of row r is k + r / 2.
static const char *write_wide(void)
{
	char *text = malloc(WIDE_TEXT), *p = text;
	assert_non_null(text);
	for (int i = 0; i < WIDE; i++)
		p += sprintf(p, "c%d,", i);
	p += sprintf(p, "label\n");
	for (int r = 0; r < 2; r++) {
		for (int i = 0; i < WIDE; i++)
			p += sprintf(p, "%d.%c,", i, r ? '5' : '0');
		p += sprintf(p, "%d\n", r);
	}
	assert_true(p < text + WIDE_TEXT);
	const char *path = scratch_write("wide.csv", text, (size_t) (p - text));
	free(text);
	return path;
}

static void assert_wide(choir_dataset *d, int first, int step)
{
	static float x[WIDE];
	int64_t label;
	chi_element e = { .column = { &label, x }, .capacity = 1 };
	if (!d)
		fail_msg("%s", choir_error());
	const int n = (int) chi_dataset_spec(d)->column[1].shape.dim[0];
	assert_int_equal(n, (WIDE - first + step - 1) / step);
	for (int r = 0; r < 2; r++) {
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		assert_int_equal(label, r);
		for (int i = 0; i < n; i++)
			assert_true(x[i] == (float) (first + i * step) + (float) r / 2);
	}
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_END);
	choir_dataset_free(d);
}

TEST(thousands_of_columns)
{
	static choir_csv_column list[1 + WIDE];
	static char name[WIDE][16];
	const char *path = write_wide();
	list[0] = (choir_csv_column){ .name = "label" };
	assert_wide(choir_csv_dataset_new(path,
						CHOIR_OPTIONS(choir_csv_options, .columns = 1, .column = list,
								.other_columns = "x")),
			0, 1);
	size_t n = 1;
	for (int i = 1; i < WIDE; i += 2, n++) { // every second one, by its name
		snprintf(name[i], sizeof name[i], "c%d", i);
		list[n] = (choir_csv_column){
			.name = name[i], .output = "x", .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_F32
		};
	}
	assert_wide(choir_csv_dataset_new(
						path, CHOIR_OPTIONS(choir_csv_options, .columns = n, .column = list)),
			1, 2);
	assert_refused(choir_csv_dataset_new(path, NULL), CHOIR_INVALID, "32 columns");
	// Texts that are gathered keep their numbers, each column its own.
	static const choir_csv_column both[] = { { .name = "a", .output = "t" },
		{ .name = "b", .output = "t" } };
	choir_dataset *d = CSV_OF("a,b\nx,z\ny,z\ny,y\n", .columns = 2, .column = both);
	assert_int_equal(choir_dataset_categories(d, "t"), 0);
	assert_pass(d, "[0 1]\n[1 1]\n[1 0]\n");
}

// Rows across the borders of the buffer, fields with quotes longer than it.
TEST(large_files)
{
	enum { ROWS = 60000, LONG = 700000 };
	char *text = malloc(ROWS * 40 + 2 * LONG), *p = text;
	assert_non_null(text);
	p += sprintf(p, "a,b,c\n");
	for (int i = 0; i < ROWS; i++) {
		p += sprintf(p, "%d,\"%d.5\",%d%s", i, i, i % 7, i % 3 ? "\n" : "\r\n");
		if (i == ROWS / 2) {
			p += sprintf(p, "-1,\"");
			memset(p, '1', LONG);
			p += LONG;
			p += sprintf(p, "\",1\n");
		}
	}
	const char *path = scratch_write("large.csv", text, (size_t) (p - text));
	free(text);
	static const choir_csv_column ac[] = { { .name = "a" }, { .name = "c" } };
	choir_dataset *d = choir_csv_dataset_new(
			path, CHOIR_OPTIONS(choir_csv_options, .columns = 2, .column = ac));
	int64_t a, c, n = 0, expected = 0;
	chi_element e = { .column = { &a, &c }, .capacity = 1 };
	while (chi_dataset_next(d, &e) == CHOIR_OK) {
		const bool extra = n++ == ROWS / 2 + 1;
		assert_int_equal(a, extra ? -1 : expected);
		assert_int_equal(c, extra ? 1 : expected % 7);
		expected += !extra;
	}
	assert_int_equal(n, ROWS + 1);
	choir_dataset_free(d);
}

static void use_damaged(const char *path, const char *how)
{
	choir_dataset *d = choir_csv_dataset_new(path, NULL);
	const char *found = pass_in_words(d);
	const char *error = strchr(found, '!');
	if (error && (!strstr(error, "t.csv: ") || !strstr(error, "byte ")) &&
			strcmp(how, "cut to 0 bytes") != 0)
		fail_msg("%s: no file and byte in \"%s\"", how, error);
	choir_dataset_free(d);
}

TEST(damaged_files)
{
	static const char text[] = "a,\"b\"\r\n1,\"x\"\n\"-2.5\",y\n3,\"\"\"z\"\n";
	damage("t.csv", text, sizeof text - 1, use_damaged);
	assert_refused(
			csv_of_text(text, CHOIR_OPTIONS(choir_csv_options, .columns = 1, .column = NULL)),
			CHOIR_INVALID, "NULL");
}

// As pandas and R write them, and with spaces or separators that others put.
TEST(what_other_programs_write)
{
	assert_pass(csv_of_text(",a,b\n0,5,6\n1,7,8\n", NULL), "5 6\n7 8\n");
	assert_pass(csv_of_text("\"\",\"a\",\"b\"\n\"x\",5,6\n\"y\",7,8\n", NULL), "5 6\n7 8\n");
	assert_pass(csv_of_text("a,b\nx,5,6\n\ny,7,8\nz,9,10\n", NULL), "5 6\n7 8\n9 10\n");
	assert_pass(csv_of_text("a,b\n5,6,\n7,8,\n9,10\n", NULL), "5 6\n7 8\n9 10\n");
	assert_pass(csv_of_text("a,b,\r\n5,6,\r\n7,8\r\n", NULL), "5 6\n7 8\n");
	assert_pass(csv_of_text(",a,b,\n0,5,6,\n1,7,8,", NULL), "5 6\n7 8\n");
	assert_pass(csv_of_text("a, \"b\" ,c\n1, \"x,y\",2\n3,\t\"z\" ,4\n", NULL), "1 0 2\n3 1 4\n");
	assert_pass_fails(csv_of_text("a,b\nx,5,6\ny,7,8\nz,9\n", NULL), "2 fields, a row has 3");
	assert_pass(
			CSV_OF("a,b\nx,5,6\ny,7,8\nz,9\n", .bad_record = CHOIR_BAD_RECORD_SKIP), "5 6\n7 8\n");
	assert_pass(CSV_OF("a\t\"b\"\n1\t \"x\"\n", .separator = '\t'), "1 0\n");
	// One number too large does not make a column one of texts.
	assert_pass(csv_of_text("a\n1.5\n1e400\n-1e400\n", NULL), "1.5\ninf\n-inf\n");
	scratch_text("r-1.csv", "a,b\nx,5,6\ny,7,8\n");
	scratch_text("r-2.csv", "a,b\nz,9,10\n");
	assert_pass(choir_csv_dataset_new(scratch_path("r-*.csv"), NULL), "5 6\n7 8\n9 10\n");
	scratch_text("r-1.csv", "a,b\n5,6\n");
	scratch_text("r-2.csv", ",a,b\nz,9,10\n");
	assert_refused(choir_csv_dataset_new(scratch_path("r-*.csv"), NULL), CHOIR_CORRUPT, "column");
}

// What another dataset found, of the same files or of others: they are not looked at.
TEST(a_schema_is_taken)
{
	choir_csv_inferred found;
	choir_dataset *a = csv_of_text("a,b,c\n1,x,1\n2,y,2\nNA,z,2.5\n", NULL);
	choir_dataset *d = CSV_OF("a,b,c\n1,z,7.5\n3,x,8\n", .schema = a);
	assert_true(choir_csv_dataset_column(d, 0, &found));
	assert_string_equal(found.holds, "whole numbers");
	assert_int_equal(found.missing, 1);
	assert_int_equal(choir_dataset_categories(d, "b"), 3); // of its own it has two
	assert_pass(d, "1 2 7.5\n3 0 8\n");
	assert_pass(CSV_OF("a,b,c\n5,y,1\n", .other_columns = "x", .schema = a), "[5 1]\n");
	assert_pass_fails(CSV_OF("a,b,c\n1,x,7\n1.5,x,8\n", .schema = a), "i64");
	assert_pass_fails(CSV_OF("a,b,c\n1,new,7\n", .schema = a), "\"new\"*categories");
	assert_refused(CSV_OF("a,b,d\n1,x,7\n", .schema = a), CHOIR_INVALID, "column 3*\"d\"*\"c\"");
	assert_refused(CSV_OF("a,b\n1,x\n", .schema = a), CHOIR_INVALID, "2 columns*3");
	// Categories that it did not collect: the file says.
	choir_csv_column number = { .name = "a", .kind = CHOIR_CSV_CATEGORY };
	assert_pass(CSV_OF("a,b,c\n9,x,7\n8,x,7\n", .columns = 1, .column = &number, .schema = a),
			"1\n0\n");
	number.kind = CHOIR_CSV_NUMBER;
	choir_dataset *given = CSV_OF("a\n1\n", .columns = 1, .column = &number);
	assert_refused(CSV_OF("a\n1\n", .schema = given), CHOIR_INVALID, "inferred");
	choir_dataset_free(given);
	given = numbers_in_memory(1);
	assert_refused(CSV_OF("a\n1\n", .schema = given), CHOIR_INVALID, "dataset");
	choir_dataset_free(given);
	choir_dataset_free(a);
}

static choir_status read_small(void *path)
{
	int32_t a, b;
	return read_to_end(choir_csv_dataset_new(path, NULL),
			(chi_element){ .column = { &a, &b }, .capacity = 1 });
}

static choir_status read_with_schema(void *path)
{
	int32_t a, b;
	choir_dataset *schema = choir_csv_dataset_new(path, NULL);
	choir_dataset *d = schema == NULL
			? NULL
			: choir_csv_dataset_new(path, CHOIR_OPTIONS(choir_csv_options, .schema = schema));
	choir_dataset_free(schema);
	return read_to_end(d, (chi_element){ .column = { &a, &b }, .capacity = 1 });
}

TEST(every_allocation_may_fail)
{
	char path[256];
	snprintf(path, sizeof path, "%s", scratch_text("t.csv", "a,b\n1,x\n2,\"y\"\"\"\nz,y\n"));
	assert_every_allocation(read_small, path);
	assert_every_allocation(read_with_schema, path);
}

TEST_GROUP(NULL, scratch_leave)
