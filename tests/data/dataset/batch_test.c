// Batches and repeats, and what happens where they meet.
#include "data/elements.h"

static void the_last_batch_may_be_short(void **state)
{
	(void) state;
	choir_dataset *d = choir_dataset_batch(numbers_as_stream(7), 3);
	assert_int_equal(chi_dataset_spec(d)->batch, 3);
	for (int i = 0; i < 2; i++) {
		assert_sizes(d, NUMBERS(3, 3, 1));
		assert_numbers(d, NUMBERS(0, 1, 2, 3, 4, 5, 6));
	}
	choir_dataset_free(d);
	d = choir_dataset_batch(numbers_in_memory(6), 8);
	assert_int_equal(chi_dataset_spec(d)->batch, 8);
	assert_int_equal(chi_dataset_spec(d)->examples, 6);
	assert_sizes(d, NUMBERS(6));
	choir_dataset_free(d);
	d = choir_dataset_batch(numbers_in_memory(0), 8);
	assert_sizes(d, 0, NULL);
	choir_dataset_free(d);
}

static void a_failure_hands_out_no_part_of_a_batch(void **state)
{
	(void) state;
	number_source s = { .n = 9, .fail_at = 5, .message = "torn" };
	choir_dataset *d = choir_dataset_batch(numbers_from(&s), 4);
	pass p;
	read_pass(d, 4, &p);
	assert_int_equal(p.status, CHOIR_OK);
	int64_t capacity[4];
	chi_element e = { .column = { capacity }, .capacity = 4, .examples = 77 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_IO);
	assert_int_equal(e.examples, 0);
	assert_failure(CHOIR_IO, "example 5: torn");
	choir_dataset_free(d);
}

static void wrong_sizes_are_refused(void **state)
{
	(void) state;
	assert_refused(choir_dataset_batch(numbers_in_memory(3), 0), CHOIR_INVALID,
			"batch: a size of 0 given, at least 1 needed");
	assert_refused(choir_dataset_batch(numbers_in_memory(3), -2), CHOIR_INVALID, "a size of -2");
	assert_refused(choir_dataset_batch(choir_dataset_batch(numbers_in_memory(3), 2), 2),
			CHOIR_INVALID, "batch: the dataset already comes in batches of 2");
	assert_refused(choir_dataset_batch(numbers_in_memory(3), INT64_MAX), CHOIR_INVALID,
			"9223372036854775807 examples of column \"number\"");
	choir_column deep = {
		.name = "deep", .dtype = CHOIR_U8, .shape = { 8, { 1, 1, 1, 1, 1, 1, 1, 1 } }
	};
	deep.data = "x";
	assert_refused(choir_dataset_batch(choir_memory_dataset_new(1, 1, &deep, false), 1),
			CHOIR_INVALID, "\"deep\" (rank 8");
}

static void repeat_goes_through_the_source_again(void **state)
{
	(void) state;
	choir_dataset *d = choir_dataset_repeat(numbers_in_memory(3), 2);
	assert_int_equal(chi_dataset_spec(d)->examples, 6);
	for (int i = 0; i < 2; i++)
		assert_numbers(d, NUMBERS(0, 1, 2, 0, 1, 2));
	choir_dataset_free(d);
	d = choir_dataset_repeat(numbers_as_stream(2), 3);
	assert_int_equal(chi_dataset_spec(d)->examples, CHOIR_NONE);
	assert_numbers(d, NUMBERS(0, 1, 0, 1, 0, 1));
	choir_dataset_free(d);
}

static void batches_go_over_repeats_and_repeats_keep_short_batches(void **state)
{
	(void) state;
	choir_dataset *d = choir_dataset_batch(choir_dataset_repeat(numbers_in_memory(5), 2), 3);
	assert_sizes(d, NUMBERS(3, 3, 3, 1));
	assert_numbers(d, NUMBERS(0, 1, 2, 3, 4, 0, 1, 2, 3, 4));
	choir_dataset_free(d);
	d = choir_dataset_repeat(choir_dataset_batch(numbers_in_memory(5), 3), 2);
	assert_int_equal(chi_dataset_spec(d)->examples, 10);
	assert_sizes(d, NUMBERS(3, 2, 3, 2));
	choir_dataset_free(d);
}

static void repeat_for_ever_has_no_end(void **state)
{
	(void) state;
	choir_dataset *d = choir_dataset_repeat(numbers_in_memory(3), CHOIR_NONE);
	assert_true(chi_dataset_spec(d)->endless);
	assert_int_equal(chi_dataset_spec(d)->examples, CHOIR_NONE);
	pass p;
	read_pass(d, 3000, &p);
	assert_int_equal(p.status, CHOIR_OK);
	for (int64_t i = 0; i < 3000; i++)
		assert_int_equal(p.number[i], i % 3);
	choir_dataset_free(d);
}

static void nothing_repeated_for_ever_is_nothing(void **state)
{
	(void) state;
	choir_dataset *d = choir_dataset_repeat(numbers_in_memory(0), CHOIR_NONE);
	assert_false(chi_dataset_spec(d)->endless);
	assert_numbers(d, 0, NULL);
	choir_dataset_free(d);
	d = choir_dataset_repeat(numbers_as_stream(0), CHOIR_NONE);
	assert_numbers(d, 0, NULL);
	choir_dataset_free(d);
}

static void wrong_times_are_refused(void **state)
{
	(void) state;
	assert_refused(choir_dataset_repeat(numbers_in_memory(3), 0), CHOIR_INVALID,
			"repeat: 0 times given, at least 1 or CHOIR_NONE");
	assert_refused(
			choir_dataset_repeat(numbers_in_memory(3), -2), CHOIR_INVALID, "repeat: -2 times");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_batch_may_be_short),
		cmocka_unit_test(a_failure_hands_out_no_part_of_a_batch),
		cmocka_unit_test(wrong_sizes_are_refused),
		cmocka_unit_test(repeat_goes_through_the_source_again),
		cmocka_unit_test(batches_go_over_repeats_and_repeats_keep_short_batches),
		cmocka_unit_test(repeat_for_ever_has_no_end),
		cmocka_unit_test(nothing_repeated_for_ever_is_nothing),
		cmocka_unit_test(wrong_times_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
