// What is the same for all steps: ends and failures that stay, rewinding, NULL that flows
// through, the checks of columns, and views of what lies in memory.
#include "data/elements.h"

#include "base/alloc.h"
#include "base/status.h"
#include "data/dataset.h"
#include "test.h"

#include <string.h>

TEST(an_end_stays_until_the_rewind)
{
	number_source s = { .n = 2, .fail_at = -1 };
	choir_dataset *d = numbers_from(&s);
	pass p;
	for (int i = 0; i < 3; i++) {
		read_pass(d, 10, &p);
		assert_int_equal(p.status, CHOIR_END);
		assert_int_equal(p.n, i == 0 ? 2 : 0);
	}
	assert_int_equal(s.asked, 3); // the function is not asked again after its end
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	assert_numbers(d, NUMBERS(0, 1));
	choir_dataset_free(d);
}

TEST(a_failure_stays_until_the_rewind)
{
	number_source s = { .n = 5, .fail_at = 3, .message = "no more ink" };
	choir_dataset *d = numbers_from(&s);
	pass p;
	read_pass(d, 3, &p);
	assert_int_equal(p.status, CHOIR_OK);
	assert_next_fails(d, CHOIR_IO, "function dataset: example 3: no more ink");
	s.fail_at = -1;
	assert_next_fails(d, CHOIR_IO, "no more ink");
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	assert_numbers(d, NUMBERS(0, 1, 2, 3, 4));
	choir_dataset_free(d);
}

TEST(nothing_is_read_before_the_first_element)
{
	number_source s = { .n = 9, .fail_at = -1 };
	choir_dataset *d = choir_dataset_skip(numbers_from(&s), 2);
	d = choir_dataset_prefetch(choir_dataset_batch(choir_dataset_shuffle(d, 4, 1), 2), 2);
	assert_int_equal(chi_dataset_spec(d)->batch, 2);
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	assert_int_equal(s.asked, 0);
	choir_dataset_free(d);
}

// Every transform, with arguments that are fine.
static choir_dataset *apply(int i, choir_dataset *d)
{
	switch (i) {
	case 0:
		return choir_dataset_to_float(d, "number", 1);
	case 1:
		return choir_dataset_flatten(d, "number");
	case 2:
		return choir_dataset_take(d, 1);
	case 3:
		return choir_dataset_skip(d, 1);
	case 4:
		return choir_dataset_shard(d, 1, 0);
	case 5:
		return choir_dataset_shuffle(d, 1, 1);
	case 6:
		return choir_dataset_repeat(d, 1);
	case 7:
		return choir_dataset_batch(d, 1);
	case 8:
		return choir_dataset_prefetch(d, 1);
	default:
		return choir_dataset_zip(d, d ? choir_synthetic_digits_dataset_new(3, 1) : NULL);
	}
}
enum { TRANSFORMS = 10 };

TEST(null_flows_through_and_keeps_the_first_cause)
{
	for (int i = 0; i < TRANSFORMS; i++) {
		choir_fail(CHOIR_NOT_FOUND, "the cause");
		assert_refused(apply(i, NULL), CHOIR_NOT_FOUND, "cause");
		assert_refused(apply(i, NULL), CHOIR_INVALID, "NULL");
	}
	choir_fail(CHOIR_NOT_FOUND, "the cause");
	assert_null(choir_dataset_zip(NULL, numbers_in_memory(3)));
	assert_null(choir_dataset_zip(numbers_in_memory(3), NULL));
	assert_null(chi_dataset_spec(NULL));
	assert_int_equal(chi_dataset_rewind(NULL), CHOIR_NOT_FOUND);
	chi_element e = { .capacity = 1 };
	assert_int_equal(chi_dataset_next(NULL, &e), CHOIR_NOT_FOUND);
	assert_failure(CHOIR_NOT_FOUND, "cause");
	choir_dataset_free(NULL);
}

TEST(a_missing_column_lists_those_that_exist)
{
	assert_refused(choir_dataset_to_float(choir_synthetic_digits_dataset_new(1, 1), "picture", 1),
			CHOIR_NOT_FOUND, "to_float:*\"picture\"*\"image\"*\"label\"");
	assert_refused(choir_dataset_flatten(choir_synthetic_digits_dataset_new(1, 1), "x"),
			CHOIR_NOT_FOUND, "flatten:*\"x\"*\"image\"*\"label\"");
	assert_refused(choir_dataset_flatten(choir_synthetic_digits_dataset_new(1, 1), NULL),
			CHOIR_NOT_FOUND, "NULL");
}

TEST(columns_are_checked)
{
	const char data[64] = { 0 };
	choir_column good[2] = { { "a", CHOIR_F32, { 0, { 0 } }, data },
		{ "b", CHOIR_U8, { 1, { 2 } }, data } };
	assert_refused(choir_memory_dataset_new(1, 0, good, false), CHOIR_INVALID, "0 columns*1*32");
	assert_refused(choir_memory_dataset_new(1, 33, good, false), CHOIR_INVALID, "33 columns");
	assert_refused(choir_memory_dataset_new(1, 2, NULL, false), CHOIR_INVALID, "dataset");
	choir_column c[2] = { good[0], good[1] };
	c[1].name = NULL;
	assert_refused(choir_memory_dataset_new(1, 2, c, false), CHOIR_INVALID, "column 1");
	c[1].name = "a";
	assert_refused(choir_memory_dataset_new(1, 2, c, false), CHOIR_INVALID, "column \"a\":");
	c[1] = good[1];
	c[1].shape.dim[0] = 0;
	assert_refused(choir_memory_dataset_new(1, 2, c, false), CHOIR_INVALID, "\"b\":*dimension");
	c[1].shape = (choir_shape){ 9, { 1 } };
	assert_refused(choir_memory_dataset_new(1, 2, c, false), CHOIR_INVALID, "\"b\":");
	c[1].shape = (choir_shape){ 2, { INT64_MAX, INT64_MAX } };
	assert_refused(choir_memory_dataset_new(1, 2, c, false), CHOIR_INVALID, "\"b\":*example");
	c[1] = good[1];
	c[1].dtype = (choir_dtype) 77;
	assert_refused(choir_memory_dataset_new(1, 2, c, false), CHOIR_INVALID, "\"b\":*dtype");
}

TEST(names_are_the_datasets_own)
{
	char name[] = "weight";
	const float data[1] = { 1 };
	choir_column c = { name, CHOIR_F32, { 0, { 0 } }, data };
	choir_dataset *d = choir_memory_dataset_new(1, 1, &c, false);
	memset(name, 'x', sizeof name - 1);
	assert_string_equal(chi_dataset_spec(d)->column[0].name, "weight");
	choir_dataset_free(d);
}

TEST(room_too_small_is_an_error)
{
	choir_dataset *d = choir_dataset_batch(numbers_in_memory(8), 4);
	int64_t capacity[2];
	chi_element e = { .column = { capacity }, .capacity = 2 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_INTERNAL);
	assert_failure(CHOIR_INTERNAL, "batch:*2 examples*4");
	choir_dataset_free(d);
}

TEST(columns_that_nobody_wants_are_left_out)
{
	choir_dataset *d =
			choir_dataset_to_float(choir_synthetic_digits_dataset_new(30, 5), "image", 1);
	d = choir_dataset_batch(choir_dataset_shuffle(d, 30, 1), 30);
	uint8_t label[30], count[10] = { 0 };
	chi_element e = { .column = { NULL, label }, .capacity = 30 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	for (int i = 0; i < 30; i++)
		count[label[i]]++;
	for (int i = 0; i < 10; i++)
		assert_int_equal(count[i], 3);
	choir_dataset_free(d);
}

TEST(peek_shows_what_lies_in_memory)
{
	const int64_t data[6] = { 5, 6, 7, 8, 9, 10 };
	choir_column c = { "number", CHOIR_I64, { 0, { 0 } }, data };
	choir_dataset *d = choir_dataset_skip(choir_memory_dataset_new(6, 1, &c, false), 2);
	d = choir_dataset_batch(choir_dataset_take(choir_dataset_flatten(d, "number"), 3), 2);
	assert_ptr_equal(chi_dataset_peek(d, 0, 0, 3), data + 2);
	assert_ptr_equal(chi_dataset_peek(d, 0, 2, 1), data + 4);
	assert_null(chi_dataset_peek(d, 0, 2, 2));
	assert_null(chi_dataset_peek(d, 0, INT64_MAX, INT64_MAX));
	assert_null(chi_dataset_peek(d, 0, -1, 1));
	assert_null(chi_dataset_peek(d, 1, 0, 1));
	assert_null(chi_dataset_peek(NULL, 0, 0, 1));
	choir_dataset_free(d);
	d = choir_dataset_shuffle(numbers_in_memory(4), 4, 1);
	assert_null(chi_dataset_peek(d, 0, 0, 1)); // not in this order
	choir_dataset_free(d);
}

TEST(a_cancelled_chain_stops_and_can_be_rewound)
{
	choir_dataset *d = choir_dataset_batch(choir_dataset_take(numbers_as_stream(10), 5), 2);
	chi_dataset_cancel(d);
	assert_next_fails(d, CHOIR_CANCELLED, "cancelled");
	// A begin is none of whoever cancelled: repeat begins its source on the thread that reads.
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	assert_next_fails(d, CHOIR_CANCELLED, "cancelled");
	chi_dataset_cancel(d->from[0]); // by a second one
	chi_dataset_uncancel(d);
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	assert_next_fails(d, CHOIR_CANCELLED, "take: cancelled");
	chi_dataset_uncancel(d->from[0]);
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	assert_numbers(d, NUMBERS(0, 1, 2, 3, 4));
	choir_dataset_free(d);
}

// Builds a chain of everything, reads it twice and counts; false: something failed.
static bool use_everything(void)
{
	choir_dataset *d =
			choir_dataset_zip(choir_synthetic_digits_dataset_new(40, 3), numbers_as_stream(40));
	d = choir_dataset_flatten(choir_dataset_to_float(d, "image", 0.5), "image");
	d = choir_dataset_shard(choir_dataset_take(choir_dataset_skip(d, 4), 32), 2, 1);
	d = choir_dataset_repeat(choir_dataset_shuffle(d, 6, 9), 2);
	d = choir_dataset_prefetch(choir_dataset_shuffle(choir_dataset_batch(d, 5), 2, 4), 2);
	d = choir_dataset_to_float(d, "number", 1);
	static float image[5 * 784], number[5];
	static uint8_t label[5];
	chi_element e = { .column = { image, label, number }, .capacity = 5 };
	int64_t n = 0;
	choir_status status = d ? CHOIR_OK : choir_error_status();
	for (int i = 0; i < 2 && status == CHOIR_OK; i++) {
		while ((status = chi_dataset_next(d, &e)) == CHOIR_OK)
			n += e.examples;
		if (status == CHOIR_END)
			status = chi_dataset_rewind(d);
	}
	choir_dataset_free(d);
	if (status == CHOIR_OK)
		assert_int_equal(n, 64);
	else
		assert_failure(CHOIR_NO_MEMORY, "bytes");
	return status == CHOIR_OK;
}

TEST(every_allocation_may_fail)
{
	int failed = 0;
	for (int persistent = 0; persistent < 2; persistent++)
		for (uint64_t n = 1;; n++) {
			chi_alloc_fail(n, persistent);
			bool worked = use_everything();
			bool hit = chi_alloc_failed();
			chi_alloc_fail(0, false);
			if (!hit) {
				assert_true(worked);
				break;
			}
			assert_false(worked);
			failed++;
		}
	assert_true(failed > 40);
}

TEST(a_steady_pass_allocates_nothing)
{
	choir_dataset *d = choir_dataset_to_float(
			choir_dataset_shuffle(numbers_as_stream(50), 9, 1), "number", 1);
	d = choir_dataset_prefetch(choir_dataset_batch(d, 4), 2);
	float number[4];
	chi_element e = { .column = { number }, .capacity = 4 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	uint64_t before = chi_alloc_count();
	for (int i = 0; i < 3; i++) {
		while (chi_dataset_next(d, &e) == CHOIR_OK)
			;
		assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	}
	assert_int_equal(chi_alloc_count(), before);
	choir_dataset_free(d);
}

// Steps call those below them: a chain that would need more stack than there is is refused.
TEST(chains_are_of_limited_depth)
{
	choir_dataset *d = numbers_as_stream(3);
	for (int i = 0; i < CHI_MAX_STAGES; i++)
		d = choir_dataset_repeat(d, 1);
	assert_numbers(d, NUMBERS(0, 1, 2));
	assert_refused(choir_dataset_take(d, 1), CHOIR_INVALID, "take:*2000 stages");
	for (int zip = 0; zip < 2; zip++) {
		d = numbers_as_stream(3);
		for (int i = 0; i < CHI_MAX_STAGES; i++)
			d = choir_dataset_take(d, 2);
		choir_dataset *first = choir_range_dataset_new("other", 0, 3, 1);
		assert_refused(zip ? choir_dataset_zip(first, d)
						   : choir_dataset_concatenate(numbers_as_stream(1), d),
				CHOIR_INVALID, "2000");
		if (!zip)
			choir_dataset_free(first);
	}
	d = numbers_as_stream(1);
	for (int i = 0; i < 200000; i++)
		d = choir_dataset_take(d, 1);
	assert_null(d);
}
