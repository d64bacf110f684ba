// map and filter: the function's elements, in order however many threads call it; its failures;
// elements whose shape varies; batches.
#include "data/elements.h"
#include "data/varying.h"

#include "base/status.h"
#include "test.h"

#include <string.h>

static choir_status twice(const choir_component in[], choir_component out[], void *user)
{
	const int64_t *fail_at = user;
	const int64_t n = choir_shape_elements(&in[0].shape);
	for (int64_t i = 0; i < n; i++) {
		const int64_t number = ((const int64_t *) in[0].data)[i];
		if (fail_at && number == *fail_at)
			return choir_fail(CHOIR_IO, "no %lld today", (long long) number);
		((int64_t *) out[0].data)[i] = 2 * number;
	}
	return CHOIR_OK;
}

static choir_dataset *doubled(choir_dataset *d, int threads, int64_t *fail_at)
{
	return choir_dataset_map(
			d, CHOIR_OPTIONS(choir_map_options, .threads = threads), twice, fail_at);
}

TEST(order_is_kept_by_any_number_of_threads)
{
	for (int threads = 0; threads <= 7; threads++)
		for (int batch = 0; batch < 2; batch++) {
			choir_dataset *d = numbers_as_stream(500);
			d = doubled(batch ? choir_dataset_batch(d, 7) : d, threads, NULL);
			static pass p;
			for (int i = 0; i < 2; i++) {
				read_pass(d, MAX_NUMBERS, &p);
				assert_int_equal(p.status, CHOIR_END);
				assert_int_equal(p.n, 500);
				for (int64_t k = 0; k < 500; k++)
					assert_int_equal(p.number[k], 2 * k);
				assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
			}
			choir_dataset_free(d);
		}
}

TEST(a_failure_comes_in_its_turn)
{
	for (int threads = 1; threads <= 4; threads += 3) {
		int64_t fail_at = 130;
		choir_dataset *d =
				choir_dataset_batch(doubled(numbers_in_memory(300), threads, &fail_at), 10);
		pass p;
		read_pass(d, 130, &p);
		assert_int_equal(p.status, CHOIR_OK);
		assert_next_fails(d, CHOIR_IO, "map: element 130: no 130 today");
		fail_at = -1;
		assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
		read_pass(d, 300, &p);
		assert_int_equal(p.status, CHOIR_OK);
		choir_dataset_free(d);
	}
}

static choir_status say(const choir_component in[], choir_component out[], void *user)
{
	(void) in;
	(void) out;
	return *(choir_status *) user;
}

TEST(a_function_may_return_what_it_likes)
{
	choir_status status = CHOIR_CORRUPT;
	choir_dataset *d = choir_dataset_map(numbers_in_memory(3), NULL, say, &status);
	assert_next_fails(d, CHOIR_CORRUPT, "map: element 0: the function returned CHOIR_CORRUPT");
	status = CHOIR_END;
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	assert_next_fails(d, CHOIR_INVALID, "map: element 0: the function returned CHOIR_END");
	choir_dataset_free(d);
}

// A word becomes its first letters, as many as its number has, or one more than it may have.
static choir_status shorten(const choir_component in[], choir_component out[], void *user)
{
	const bool *wrong = user;
	choir_shape shape = in[0].shape;
	assert_int_equal(out[0].shape.dim[0], 0);
	if (shape.dim[0] > 0)
		shape.dim[0]--;
	if (*wrong)
		shape.rank = 2;
	CHOIR_TRY(choir_component_resize(&out[0], &shape));
	if (shape.dim[0] > 0)
		memcpy(out[0].data, in[0].data, (size_t) shape.dim[0]);
	((float *) out[1].data)[0] = (float) shape.dim[0];
	return choir_component_resize(&out[1], &shape) == CHOIR_INVALID ? CHOIR_OK : CHOIR_INTERNAL;
}

TEST(elements_may_change_and_vary)
{
	bool wrong = false;
	const choir_column columns[] = { { "start", CHOIR_U8, { 1, { CHOIR_NONE } }, NULL },
		{ "length", CHOIR_F32, CHOIR_SCALAR, NULL } };
	choir_dataset *d = choir_dataset_map(words_new(30),
			CHOIR_OPTIONS(choir_map_options, .n = 2, .columns = columns, .threads = 3), shorten,
			&wrong);
	assert_string_equal(choir_dataset_column(d, 0)->name, "start");
	chi_ragged_value word = { .data = NULL };
	float length;
	chi_element e = { .column = { &word, &length }, .capacity = 1 };
	for (int64_t i = 0; i < 30; i++) {
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		const int64_t expected = word_length(i) > 0 ? word_length(i) - 1 : 0;
		assert_int_equal(word.shape.dim[0], expected);
		assert_true(length == (float) expected);
		if (expected > 0)
			assert_int_equal(*(char *) word.data, 'a' + i % 26);
	}
	wrong = true;
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "map: element 0: column \"start\":*differs");
	chi_ragged_value_free(&word);
	choir_dataset_free(d);
}

static bool odd(const choir_component in[], void *user)
{
	(void) user;
	return ((const int64_t *) in[0].data)[0] % 2 != 0;
}

TEST(filter_keeps_what_passes)
{
	choir_dataset *d = choir_dataset_filter(numbers_in_memory(9), odd, NULL);
	assert_int_equal(choir_dataset_cardinality(d), CHOIR_UNKNOWN_CARDINALITY);
	assert_numbers(d, NUMBERS(1, 3, 5, 7));
	assert_numbers(d, NUMBERS(1, 3, 5, 7));
	choir_dataset_free(d);
	d = choir_dataset_filter(choir_dataset_batch(numbers_in_memory(8), 3), odd, NULL);
	assert_numbers(d, NUMBERS(3, 4, 5)); // batches as wholes
	choir_dataset_free(d);
	d = choir_dataset_filter(choir_dataset_take(numbers_in_memory(9), 1), odd, NULL);
	assert_numbers(d, 0, NULL);
	choir_dataset_free(d);
}

// spec: 2.11
TEST(what_a_distribution_finds_behind_them)
{
	choir_dataset *d =
			choir_dataset_filter(choir_dataset_batch(numbers_in_memory(9), 4), odd, NULL);
	assert_int_equal(chi_dataset_spec(d)->global, 4);
	d = doubled(d, 1, NULL);
	assert_int_equal(chi_dataset_spec(d)->global, CHOIR_NONE);
	choir_dataset_free(d);
	d = doubled(choir_dataset_batch_drop_remainder(numbers_in_memory(9), 4), 1, NULL);
	assert_int_equal(chi_dataset_spec(d)->global, 4);
	choir_dataset_free(d);
}

TEST(wrong_arguments_are_refused)
{
	assert_refused(
			choir_dataset_map(numbers_in_memory(1), NULL, NULL, NULL), CHOIR_INVALID, "map:*NULL");
	assert_refused(
			choir_dataset_filter(numbers_in_memory(1), NULL, NULL), CHOIR_INVALID, "filter:*NULL");
	assert_refused(doubled(numbers_in_memory(1), -1, NULL), CHOIR_INVALID, "map:*-1");
	choir_map_options o = { .size = 3 };
	assert_refused(
			choir_dataset_map(numbers_in_memory(1), &o, twice, NULL), CHOIR_INVALID, "map:*3");
	assert_refused(choir_dataset_map(
						   choir_dataset_padded_batch(words_new(3), 2, NULL), NULL, twice, NULL),
			CHOIR_UNSUPPORTED, "map:*\"word\"");
	const choir_column varies = { "text", CHOIR_U8, { 1, { CHOIR_NONE } }, NULL };
	assert_refused(
			choir_dataset_map(choir_dataset_batch(numbers_in_memory(3), 2),
					CHOIR_OPTIONS(choir_map_options, .n = 1, .columns = &varies), twice, NULL),
			CHOIR_UNSUPPORTED, "map:*\"text\"");
	assert_int_equal(choir_component_resize(NULL, NULL), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "component:*NULL");
}

static choir_status use_all(void *user)
{
	bool wrong = false;
	const choir_column columns[] = { { "start", CHOIR_U8, { 1, { CHOIR_NONE } }, NULL },
		{ "length", CHOIR_F32, CHOIR_SCALAR, NULL } };
	(void) user;
	choir_dataset *d = choir_dataset_map(words_new(30),
			CHOIR_OPTIONS(choir_map_options, .n = 2, .columns = columns), shorten, &wrong);
	chi_ragged_value word[4] = { { .data = NULL } };
	float length[4];
	const choir_status status = read_to_end(choir_dataset_padded_batch(d, 4, NULL),
			(chi_element){ .column = { word, length }, .capacity = 4 });
	for (int i = 0; i < 4; i++)
		chi_ragged_value_free(&word[i]);
	return status;
}

TEST(every_allocation_may_fail)
{
	assert_every_allocation(use_all, NULL);
}
