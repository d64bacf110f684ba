// zip: columns side by side, and every way in which two datasets do not fit.
#include "data/elements.h"

#include "base/status.h"
#include "test.h"

// A column "square" (i64) of n squares, in memory or as a stream.
static choir_status square(int64_t position, void *const out[], void *user)
{
	if (position == (int64_t) (intptr_t) user)
		return CHOIR_END;
	*(int64_t *) out[0] = position * position;
	return CHOIR_OK;
}

static choir_dataset *squares(int kind, int64_t n)
{
	static int64_t data[100];
	choir_column c = { .name = "square", .dtype = CHOIR_I64, .data = data };
	for (int64_t i = 0; i < 100; i++)
		data[i] = i * i;
	return kind == 0 ? choir_memory_dataset_new(n, 1, &c, false)
					 : choir_generator_dataset_new(1, &c, square, (void *) (intptr_t) n);
}

static choir_dataset *numbers(int kind, int64_t n)
{
	return kind == 0 ? numbers_in_memory(n) : numbers_as_stream(n);
}

static void check_pass(choir_dataset *d, int64_t n)
{
	int64_t number[4], root[4], at = 0;
	chi_element e = { .column = { number, root }, .capacity = 4 };
	while (chi_dataset_next(d, &e) == CHOIR_OK)
		for (int64_t i = 0; i < e.examples; i++, at++) {
			assert_int_equal(number[i], at);
			assert_int_equal(root[i], at * at);
		}
	assert_int_equal(choir_error_status(), CHOIR_OK);
	assert_int_equal(at, n);
}

TEST(columns_stand_side_by_side)
{
	for (int kinds = 0; kinds < 4; kinds++)
		for (int batch = 0; batch < 3; batch++) {
			choir_dataset *a = numbers(kinds & 1, 10), *b = squares(kinds >> 1, 10);
			if (batch == 1) {
				a = choir_dataset_batch(a, 4);
				b = choir_dataset_batch(b, 4);
			}
			choir_dataset *d = choir_dataset_zip(a, b);
			if (batch == 2)
				d = choir_dataset_batch(d, 3);
			const chi_spec *spec = chi_dataset_spec(d);
			assert_int_equal(spec->n, 2);
			assert_string_equal(spec->column[0].name, "number");
			assert_string_equal(spec->column[1].name, "square");
			assert_int_equal(spec->examples, kinds == 3 ? CHOIR_NONE : 10);
			for (int i = 0; i < 2; i++) {
				check_pass(d, 10);
				assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
			}
			choir_dataset_free(d);
		}
}

TEST(known_lengths_are_compared_at_once)
{
	assert_refused(choir_dataset_zip(numbers_in_memory(60), squares(0, 10)), CHOIR_INVALID,
			"zip:*60*\"number\"*10*\"square\"");
	assert_refused(choir_dataset_zip(choir_dataset_repeat(numbers_in_memory(6), CHOIR_FOREVER),
						   squares(0, 10)),
			CHOIR_INVALID, "zip:*10*\"square\"*\"number\"");
	assert_refused(choir_dataset_zip(numbers_in_memory(6),
						   choir_dataset_repeat(squares(0, 10), CHOIR_FOREVER)),
			CHOIR_INVALID, "zip:*6*\"number\"*\"square\"");
}

TEST(other_lengths_are_compared_at_the_end)
{
	static const struct {
		int64_t a, b;
		const char *text;
	} cases[] = {
		{ 5, 3, "zip: \"square\" ends after 3 examples, but \"number\" has at least 4" },
		{ 3, 5, "zip: \"number\" ends after 3 examples, but \"square\" has at least 4" },
		{ 0, 1, "zip: \"number\" ends after 0 examples, but \"square\" has at least 1" },
		{ 1, 0, "zip: \"square\" ends after 0 examples, but \"number\" has at least 1" },
		{ 4, 2, "zip: \"square\" ends after 2 examples" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (int batch = 0; batch < 3; batch++) {
			choir_dataset *a = numbers(1, cases[i].a), *b = squares((int) i % 2, cases[i].b);
			if (batch == 1) {
				a = choir_dataset_batch(a, 2);
				b = choir_dataset_batch(b, 2);
			}
			choir_dataset *d = choir_dataset_zip(a, b);
			if (batch == 2)
				d = choir_dataset_batch(d, 4);
			int64_t capacity[2][4];
			chi_element e = { .column = { capacity[0], capacity[1] }, .capacity = 4 };
			choir_status status;
			while ((status = chi_dataset_next(d, &e)) == CHOIR_OK)
				;
			assert_int_equal(status, CHOIR_INVALID);
			assert_failure(CHOIR_INVALID, cases[i].text);
			choir_dataset_free(d);
		}
}

TEST(what_cannot_stand_side_by_side_is_refused)
{
	assert_refused(choir_dataset_zip(numbers_in_memory(3), numbers_as_stream(3)), CHOIR_INVALID,
			"zip:*\"number\"");
	assert_refused(choir_dataset_zip(choir_dataset_batch(numbers_in_memory(3), 2), squares(0, 3)),
			CHOIR_INVALID, "zip:*\"number\"*2*\"square\"*0");
	choir_dataset *d = numbers_in_memory(3);
	assert_refused(choir_dataset_zip(d, d), CHOIR_INVALID, "zip:*dataset");
	char name[20][4];
	choir_column many[20];
	for (int i = 0; i < 20; i++) {
		name[i][0] = (char) ('a' + i);
		name[i][1] = '\0';
		many[i] = (choir_column){ .name = name[i], .dtype = CHOIR_U8, .data = "x" };
	}
	choir_dataset *a = choir_memory_dataset_new(1, 20, many, false);
	for (int i = 0; i < 20; i++)
		name[i][0] = (char) ('A' + i);
	assert_refused(choir_dataset_zip(a, choir_memory_dataset_new(1, 20, many, false)),
			CHOIR_INVALID, "zip:*20 columns*32");
}

TEST(failures_of_both_sides_come_through)
{
	for (int side = 0; side < 2; side++) {
		number_source s = { .n = 9, .fail_at = 2, .message = "torn" };
		choir_dataset *a = numbers_from(&s), *b = squares(1, 9);
		choir_dataset *d = side ? choir_dataset_zip(b, a) : choir_dataset_zip(a, b);
		int64_t capacity[2][4];
		chi_element e = { .column = { capacity[0], capacity[1] }, .capacity = 4 };
		d = choir_dataset_batch(d, 4);
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_IO);
		assert_failure(CHOIR_IO, "example 2:");
		choir_dataset_free(d);
	}
}
