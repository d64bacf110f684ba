// Sources that the program provides: memory, borrowed and copied, and functions.
#include "data/elements.h"

#include "base/status.h"
#include "test.h"

#include <string.h>

// A column of pairs and one of numbers, in the caller's memory.
static float pairs[3][2] = { { 1, 2 }, { 3, 4 }, { 5, 6 } };
static int32_t numbers[3] = { 7, 8, 9 };
static const choir_column both[2] = {
	{ .name = "pair", .dtype = CHOIR_F32, .shape = { 1, { 2 } }, .data = pairs },
	{ .name = "number", .dtype = CHOIR_I32, .data = numbers },
};

// spec: B24
TEST(memory_gives_its_examples_in_order)
{
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
TEST(borrowed_memory_is_used_in_place_and_copied_is_not)
{
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

TEST(memory_of_no_examples_is_empty)
{
	choir_column c = { .name = "number", .dtype = CHOIR_I64 };
	for (int copy = 0; copy < 2; copy++) {
		choir_dataset *d = choir_memory_dataset_new(0, 1, &c, copy);
		assert_numbers(d, 0, NULL);
		choir_dataset_free(d);
	}
}

TEST(wrong_memory_is_refused)
{
	choir_column c = both[1];
	assert_refused(
			choir_memory_dataset_new(-1, 1, &c, false), CHOIR_INVALID, "memory dataset:*-1*0");
	assert_refused(choir_memory_dataset_new(INT64_MAX, 1, &c, true), CHOIR_INVALID,
			"column \"number\":*9223372036854775807*4 bytes");
	c.data = NULL;
	assert_refused(choir_memory_dataset_new(3, 1, &c, false), CHOIR_INVALID, "\"number\"");
}

TEST(a_function_is_asked_by_position)
{
	number_source s = { .n = 4, .fail_at = -1 };
	choir_dataset *d = choir_dataset_batch(numbers_from(&s), 3);
	assert_int_equal(chi_dataset_spec(d)->examples, CHOIR_NONE);
	for (int i = 0; i < 2; i++) {
		assert_numbers(d, NUMBERS(0, 1, 2, 3));
		assert_int_equal(s.asked, 5 * (i + 1));
	}
	choir_dataset_free(d);
}

TEST(a_functions_failure_names_the_example)
{
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

TEST(a_function_that_works_leaves_older_failures_alone)
{
	choir_dataset *d = numbers_as_stream(3);
	choir_fail(CHOIR_CORRUPT, "an older failure");
	assert_numbers(d, NUMBERS(0, 1, 2));
	assert_failure(CHOIR_CORRUPT, "failure");
	choir_dataset_free(d);
}

TEST(a_function_is_needed)
{
	assert_refused(choir_generator_dataset_new(2, both, NULL, NULL), CHOIR_INVALID,
			"function dataset:*NULL");
}

// ---- A function that can go to a place.

typedef struct {
	int64_t epoch, next, asked, sought;
	choir_status answer; // to a seek
} station;

static choir_status station_example(int64_t position, void *const out[], void *user)
{
	station *s = user;
	assert_int_equal(position, s->next);
	if (position == 6)
		return CHOIR_END;
	*(int64_t *) out[0] = 100 * s->epoch + position;
	s->next++;
	s->asked++;
	return CHOIR_OK;
}

static choir_status station_seek(int64_t epoch, int64_t position, void *user)
{
	station *s = user;
	s->epoch = epoch;
	s->next = position;
	s->sought++;
	return s->answer;
}

static choir_dataset *station_dataset(station *s)
{
	const choir_column c = { .name = "number", .dtype = CHOIR_I64 };
	return choir_seekable_generator_dataset_new(1, &c, station_example, station_seek, s);
}

TEST(a_function_goes_to_a_place_without_what_is_before)
{
	station s = { .answer = CHOIR_OK };
	choir_dataset *d = station_dataset(&s);
	assert_numbers(d, NUMBERS(0, 1, 2, 3, 4, 5));
	assert_numbers(d, NUMBERS(100, 101, 102, 103, 104, 105));
	assert_int_equal(s.sought, 2); // pass 0 begins where the function stands anyway
	s.asked = 0;
	assert_int_equal(chi_dataset_seek(d, 7, 4), CHOIR_OK);
	assert_int_equal(s.asked, 0);
	pass p;
	read_pass(d, MAX_NUMBERS, &p);
	assert_int_equal(p.n, 2);
	assert_int_equal(p.number[0], 704);
	assert_int_equal(p.number[1], 705);
	choir_dataset_free(d);
}

TEST(a_seek_that_fails_is_told)
{
	station s = { .answer = CHOIR_IO };
	choir_dataset *d = station_dataset(&s);
	assert_int_equal(chi_dataset_seek(d, 0, 3), CHOIR_IO);
	assert_failure(CHOIR_IO, "function dataset: example 0:*CHOIR_IO");
	s.answer = CHOIR_END;
	assert_int_equal(chi_dataset_rewind(d), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "function dataset: example 0:*returned");
	s.answer = CHOIR_OK;
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	assert_numbers(d, NUMBERS(200, 201, 202, 203, 204, 205));
	choir_dataset_free(d);
	const choir_column c = { .name = "number", .dtype = CHOIR_I64 };
	assert_refused(choir_seekable_generator_dataset_new(1, &c, station_example, NULL, NULL),
			CHOIR_INVALID, "NULL");
}
