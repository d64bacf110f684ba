// take, skip and shard, over sources with random access and over streams, before and after batch.
#include "data/elements.h"
#include "test.h"

// Both kinds of source in turn.
static choir_dataset *source(int kind, int64_t n)
{
	return kind == 0 ? numbers_in_memory(n) : numbers_as_stream(n);
}

TEST(take_keeps_the_first)
{
	for (int kind = 0; kind < 2; kind++) {
		choir_dataset *d = choir_dataset_take(source(kind, 5), 3);
		for (int i = 0; i < 2; i++)
			assert_numbers(d, NUMBERS(0, 1, 2));
		choir_dataset_free(d);
		d = choir_dataset_take(source(kind, 2), 3);
		assert_numbers(d, NUMBERS(0, 1));
		choir_dataset_free(d);
		d = choir_dataset_take(source(kind, 2), 0);
		assert_numbers(d, 0, NULL);
		choir_dataset_free(d);
	}
}

TEST(skip_leaves_out_the_first)
{
	for (int kind = 0; kind < 2; kind++) {
		choir_dataset *d = choir_dataset_skip(source(kind, 5), 3);
		for (int i = 0; i < 2; i++)
			assert_numbers(d, NUMBERS(3, 4));
		choir_dataset_free(d);
		d = choir_dataset_skip(source(kind, 2), INT64_MAX);
		assert_numbers(d, 0, NULL);
		choir_dataset_free(d);
	}
}

TEST(shards_are_every_nth)
{
	for (int kind = 0; kind < 2; kind++) {
		choir_dataset *d = choir_dataset_shard(source(kind, 7), 3, 0);
		for (int i = 0; i < 2; i++)
			assert_numbers(d, NUMBERS(0, 3, 6));
		choir_dataset_free(d);
		d = choir_dataset_shard(source(kind, 7), 3, 2);
		assert_numbers(d, NUMBERS(2, 5));
		choir_dataset_free(d);
		d = choir_dataset_shard(source(kind, 0), 3, 2);
		assert_numbers(d, 0, NULL);
		choir_dataset_free(d);
	}
}

TEST(behind_batch_they_count_batches)
{
	for (int kind = 0; kind < 2; kind++) {
		choir_dataset *d = choir_dataset_batch(source(kind, 7), 2);
		d = choir_dataset_take(choir_dataset_skip(d, 1), 2);
		assert_numbers(d, NUMBERS(2, 3, 4, 5));
		assert_sizes(d, NUMBERS(2, 2));
		choir_dataset_free(d);
		d = choir_dataset_shard(choir_dataset_batch(source(kind, 7), 2), 2, 1);
		assert_numbers(d, NUMBERS(2, 3, 6));
		assert_sizes(d, NUMBERS(2, 1));
		choir_dataset_free(d);
	}
}

static int64_t examples(choir_dataset *d)
{
	assert_non_null(d);
	int64_t n = chi_dataset_spec(d)->examples;
	choir_dataset_free(d);
	return n;
}

static choir_dataset *batches(int64_t n, int64_t size)
{
	return choir_dataset_batch(numbers_in_memory(n), size);
}

TEST(known_counts_stay_known)
{
	assert_int_equal(examples(choir_dataset_take(numbers_in_memory(9), 4)), 4);
	assert_int_equal(examples(choir_dataset_take(numbers_in_memory(3), 4)), 3);
	assert_int_equal(examples(choir_dataset_skip(numbers_in_memory(9), 4)), 5);
	assert_int_equal(examples(choir_dataset_skip(numbers_in_memory(3), 4)), 0);
	assert_int_equal(examples(choir_dataset_shard(numbers_in_memory(9), 4, 0)), 3);
	assert_int_equal(examples(choir_dataset_shard(numbers_in_memory(9), 4, 3)), 2);
	assert_int_equal(examples(choir_dataset_take(batches(10, 4), 2)), 8);
	assert_int_equal(examples(choir_dataset_take(batches(10, 4), 3)), 10);
	assert_int_equal(examples(choir_dataset_skip(batches(10, 4), 2)), 2);
	assert_int_equal(examples(choir_dataset_shard(batches(10, 4), 2, 0)), 6);
	assert_int_equal(examples(choir_dataset_shard(batches(10, 4), 2, 1)), 4);
	assert_int_equal(examples(choir_dataset_take(numbers_as_stream(9), 4)), CHOIR_NONE);
	// Two passes of 4 4 2: nothing is known of the first four batches but that they end.
	choir_dataset *d = choir_dataset_take(choir_dataset_repeat(batches(10, 4), 2), 4);
	assert_int_equal(chi_dataset_spec(d)->examples, CHOIR_NONE);
	assert_sizes(d, NUMBERS(4, 4, 2, 4));
	choir_dataset_free(d);
	d = choir_dataset_take(choir_dataset_repeat(numbers_in_memory(3), CHOIR_FOREVER), 7);
	assert_int_equal(chi_dataset_spec(d)->examples, 7);
	assert_false(chi_dataset_spec(d)->endless);
	assert_numbers(d, NUMBERS(0, 1, 2, 0, 1, 2, 0));
	choir_dataset_free(d);
}

TEST(fewer_elements_than_shards_is_an_error_in_all)
{
	for (int64_t i = 0; i < 4; i++) {
		assert_refused(choir_dataset_shard(numbers_in_memory(3), 4, i), CHOIR_INVALID,
				"shard:*3 elements*4 shards");
		choir_dataset *d = choir_dataset_shard(numbers_as_stream(3), 4, i);
		pass p;
		read_pass(d, 10, &p);
		assert_int_equal(p.status, CHOIR_INVALID);
		assert_failure(CHOIR_INVALID, "shard:*3 elements*4 shards*1");
		choir_dataset_free(d);
	}
}

TEST(wrong_numbers_are_refused)
{
	assert_refused(
			choir_dataset_take(numbers_in_memory(3), -1), CHOIR_INVALID, "take:*-1 elements*0");
	assert_refused(
			choir_dataset_skip(numbers_in_memory(3), -4), CHOIR_INVALID, "skip:*-4 elements");
	assert_refused(
			choir_dataset_shard(numbers_in_memory(3), 0, 0), CHOIR_INVALID, "shard:*0 shards");
	assert_refused(
			choir_dataset_shard(numbers_in_memory(3), 2, 2), CHOIR_INVALID, "shard:*index 2*0*1");
	assert_refused(
			choir_dataset_shard(numbers_in_memory(3), 2, -1), CHOIR_INVALID, "shard:*index -1");
}

TEST(failures_come_through)
{
	for (int i = 0; i < 3; i++) {
		number_source s = { .n = 9, .fail_at = 1, .message = "torn" };
		choir_dataset *d = numbers_from(&s);
		d = i == 0		 ? choir_dataset_take(d, 5)
				: i == 1 ? choir_dataset_skip(d, 5)
						 : choir_dataset_shard(d, 2, 0);
		pass p;
		read_pass(d, 9, &p);
		assert_int_equal(p.status, CHOIR_IO);
		assert_failure(CHOIR_IO, "example 1:");
		choir_dataset_free(d);
	}
}
