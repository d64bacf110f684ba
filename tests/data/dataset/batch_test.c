// Batches and repeats, and what happens where they meet.
#include "data/elements.h"
#include "test.h"

TEST(the_last_batch_may_be_short)
{
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

TEST(a_failure_hands_out_no_part_of_a_batch)
{
	number_source s = { .n = 9, .fail_at = 5, .message = "torn" };
	choir_dataset *d = choir_dataset_batch(numbers_from(&s), 4);
	pass p;
	read_pass(d, 4, &p);
	assert_int_equal(p.status, CHOIR_OK);
	int64_t capacity[4];
	chi_element e = { .column = { capacity }, .capacity = 4, .examples = 77 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_IO);
	assert_int_equal(e.examples, 0);
	assert_failure(CHOIR_IO, "example 5:");
	choir_dataset_free(d);
}

TEST(wrong_sizes_are_refused)
{
	assert_refused(choir_dataset_batch(numbers_in_memory(3), 0), CHOIR_INVALID, "batch:*0*1");
	assert_refused(choir_dataset_batch(numbers_in_memory(3), -2), CHOIR_INVALID, "batch:*-2*1");
	assert_refused(choir_dataset_batch(choir_dataset_batch(numbers_in_memory(3), 2), 2),
			CHOIR_INVALID, "batch:*2");
	assert_refused(choir_dataset_batch(numbers_in_memory(3), INT64_MAX), CHOIR_INVALID,
			"9223372036854775807*\"number\"");
	choir_column deep = {
		.name = "deep", .dtype = CHOIR_U8, .shape = { 8, { 1, 1, 1, 1, 1, 1, 1, 1 } }
	};
	deep.data = "x";
	assert_refused(choir_dataset_batch(choir_memory_dataset_new(1, 1, &deep, false), 1),
			CHOIR_INVALID, "\"deep\"*rank 8");
}

TEST(repeat_goes_through_the_source_again)
{
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

TEST(batches_go_over_repeats_and_repeats_keep_short_batches)
{
	choir_dataset *d = choir_dataset_batch(choir_dataset_repeat(numbers_in_memory(5), 2), 3);
	assert_sizes(d, NUMBERS(3, 3, 3, 1));
	assert_numbers(d, NUMBERS(0, 1, 2, 3, 4, 0, 1, 2, 3, 4));
	choir_dataset_free(d);
	d = choir_dataset_repeat(choir_dataset_batch(numbers_in_memory(5), 3), 2);
	assert_int_equal(chi_dataset_spec(d)->examples, 10);
	assert_sizes(d, NUMBERS(3, 2, 3, 2));
	choir_dataset_free(d);
}

TEST(repeat_for_ever_has_no_end)
{
	choir_dataset *d = choir_dataset_repeat(numbers_in_memory(3), CHOIR_FOREVER);
	assert_true(chi_dataset_spec(d)->endless);
	assert_int_equal(chi_dataset_spec(d)->examples, CHOIR_NONE);
	pass p;
	read_pass(d, 3000, &p);
	assert_int_equal(p.status, CHOIR_OK);
	for (int64_t i = 0; i < 3000; i++)
		assert_int_equal(p.number[i], i % 3);
	choir_dataset_free(d);
}

TEST(nothing_repeated_for_ever_is_nothing)
{
	choir_dataset *d = choir_dataset_repeat(numbers_in_memory(0), CHOIR_FOREVER);
	assert_false(chi_dataset_spec(d)->endless);
	assert_numbers(d, 0, NULL);
	choir_dataset_free(d);
	d = choir_dataset_repeat(numbers_as_stream(0), CHOIR_FOREVER);
	assert_numbers(d, 0, NULL);
	choir_dataset_free(d);
}

TEST(wrong_times_are_refused)
{
	assert_refused(choir_dataset_repeat(numbers_in_memory(3), 0), CHOIR_INVALID,
			"repeat:*0*1*CHOIR_FOREVER");
	assert_refused(choir_dataset_repeat(numbers_in_memory(3), -2), CHOIR_INVALID, "repeat:*-2");
}
