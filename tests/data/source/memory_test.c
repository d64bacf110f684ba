// Sources that the program provides: memory, borrowed and copied, and functions.
#include "data/elements.h"

#include "base/error.h"

#include <string.h>

// A column of pairs and one of numbers, in the caller's memory.
static float pairs[3][2] = { { 1, 2 }, { 3, 4 }, { 5, 6 } };
static int32_t numbers[3] = { 7, 8, 9 };
static const choir_column both[2] = {
	{ .name = "pair", .dtype = CHOIR_F32, .shape = { 1, { 2 } }, .data = pairs },
	{ .name = "number", .dtype = CHOIR_I32, .data = numbers },
};

// spec: B24
static void memory_gives_its_examples_in_order(void **state)
{
	(void) state;
	for (int copy = 0; copy < 2; copy++) {
		choir_dataset *d = choir_memory_dataset_new(3, 2, both, copy);
		assert_int_equal(chi_dataset_spec(d)->examples, 3);
		assert_int_equal(chi_dataset_spec(d)->column[0].shape.dim[0], 2);
		assert_int_equal(chi_dataset_spec(d)->column[1].dtype, CHOIR_I32);
		for (int i = 0; i < 3; i++) {
			float pair[2];
			int32_t number;
			chi_element e = { .column = { pair, &number }, .capacity = 1 };
			assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
			assert_int_equal(e.examples, 1);
			assert_memory_equal(pair, pairs[i], sizeof pair);
			assert_int_equal(number, numbers[i]);
		}
		choir_dataset_free(d);
	}
}

// spec: B24
static void borrowed_memory_is_used_in_place_and_copied_is_not(void **state)
{
	(void) state;
	for (int copy = 0; copy < 2; copy++) {
		int32_t data[2] = { 1, 2 };
		choir_column c = { .name = "x", .dtype = CHOIR_I32, .data = data };
		choir_dataset *d = choir_memory_dataset_new(2, 1, &c, copy);
		data[1] = 50;
		const int32_t *seen = chi_dataset_peek(d, 0, 1, 1);
		assert_non_null(seen);
		assert_int_equal(*seen, copy ? 2 : 50);
		assert_int_equal(seen == data + 1, !copy);
		choir_dataset_free(d);
	}
}

static void memory_of_no_examples_is_empty(void **state)
{
	(void) state;
	choir_column c = { .name = "number", .dtype = CHOIR_I64 };
	for (int copy = 0; copy < 2; copy++) {
		choir_dataset *d = choir_memory_dataset_new(0, 1, &c, copy);
		assert_numbers(d, 0, NULL);
		choir_dataset_free(d);
	}
}

static void wrong_memory_is_refused(void **state)
{
	(void) state;
	choir_column c = both[1];
	assert_refused(choir_memory_dataset_new(-1, 1, &c, false), CHOIR_INVALID,
			"memory dataset: -1 examples given, 0 or more needed");
	assert_refused(choir_memory_dataset_new(INT64_MAX, 1, &c, true), CHOIR_INVALID,
			"column \"number\": 9223372036854775807 examples of 4 bytes");
	c.data = NULL;
	assert_refused(
			choir_memory_dataset_new(3, 1, &c, false), CHOIR_INVALID, "\"number\" has no data");
}

static void a_function_is_asked_by_position(void **state)
{
	(void) state;
	number_source s = { .n = 4, .fail_at = -1 };
	choir_dataset *d = choir_dataset_batch(numbers_from(&s), 3);
	assert_int_equal(chi_dataset_spec(d)->examples, CHOIR_NONE);
	for (int i = 0; i < 2; i++) {
		assert_numbers(d, NUMBERS(0, 1, 2, 3));
		assert_int_equal(s.asked, 5 * (i + 1));
	}
	choir_dataset_free(d);
}

static void a_functions_failure_names_the_example(void **state)
{
	(void) state;
	number_source s = { .n = 9, .fail_at = 4, .message = "sensor 2 is silent" };
	choir_dataset *d = numbers_from(&s);
	pass p;
	read_pass(d, 4, &p);
	assert_int_equal(p.status, CHOIR_OK);
	assert_next_fails(d, CHOIR_IO, "function dataset: example 4: sensor 2 is silent");
	choir_dataset_free(d);

	// One that says nothing is not given somebody else's words.
	s = (number_source){ .n = 9, .fail_at = 0 };
	d = numbers_from(&s);
	choir_fail(CHOIR_IO, "an older failure");
	assert_next_fails(d, CHOIR_IO, "example 0: the function returned CHOIR_IO");
	choir_dataset_free(d);
}

static void a_function_that_works_leaves_older_failures_alone(void **state)
{
	(void) state;
	choir_dataset *d = numbers_as_stream(3);
	choir_fail(CHOIR_CORRUPT, "an older failure");
	assert_numbers(d, NUMBERS(0, 1, 2));
	assert_failure(CHOIR_CORRUPT, "an older failure");
	choir_dataset_free(d);
}

static void a_function_is_needed(void **state)
{
	(void) state;
	assert_refused(choir_function_dataset_new(2, both, NULL, NULL), CHOIR_INVALID,
			"function dataset: the function is NULL");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_gives_its_examples_in_order),
		cmocka_unit_test(borrowed_memory_is_used_in_place_and_copied_is_not),
		cmocka_unit_test(memory_of_no_examples_is_empty),
		cmocka_unit_test(wrong_memory_is_refused),
		cmocka_unit_test(a_function_is_asked_by_position),
		cmocka_unit_test(a_functions_failure_names_the_example),
		cmocka_unit_test(a_function_that_works_leaves_older_failures_alone),
		cmocka_unit_test(a_function_is_needed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
