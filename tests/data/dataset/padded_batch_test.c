// padded_batch and windows: what is filled up and what is left, at the ends too.
#include "data/elements.h"
#include "data/varying.h"
#include "test.h"

#include <string.h>

static choir_status cut_short(const choir_component in[], choir_component out[], void *user)
{
	(void) user;
	const int64_t n = ((const int64_t *) in[0].data)[0];
	const choir_shape shape = { 2, { n % 3, 1 + n % 2 } };
	CHOIR_TRY(choir_component_resize(&out[0], &shape));
	for (int64_t i = 0; i < choir_shape_elements(&shape); i++)
		((float *) out[0].data)[i] = (float) (10 * n + i);
	return CHOIR_OK;
}

// Example n is a [n mod 3, 1 + n mod 2] of 10 n, 10 n + 1, ...
static choir_dataset *tables(int64_t n)
{
	static const choir_column column = { "table", CHOIR_F32, { 2, { CHOIR_NONE, CHOIR_NONE } },
		NULL };
	return choir_dataset_map(numbers_as_stream(n),
			CHOIR_OPTIONS(choir_map_options, .n = 1, .columns = &column), cut_short, NULL);
}

TEST(examples_grow_to_the_largest_of_their_batch)
{
	const double minus = -1;
	choir_dataset *d = choir_dataset_padded_batch(
			tables(5), 3, CHOIR_OPTIONS(choir_padded_batch_options, .padding_values = &minus));
	chi_ragged_value cell[3] = { { .data = NULL } };
	chi_element e = { .column = { cell }, .capacity = 3 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	assert_int_equal(e.examples, 3);
	static const float first[3][4] = { { -1, -1, -1, -1 }, { 10, 11, -1, -1 },
		{ 20, -1, 21, -1 } };
	for (int i = 0; i < 3; i++) { // [0, 1], [1, 2] and [2, 1] become [2, 2]
		assert_int_equal(cell[i].shape.dim[0], 2);
		assert_int_equal(cell[i].shape.dim[1], 2);
		assert_memory_equal(cell[i].data, first[i], sizeof first[i]);
	}
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	assert_int_equal(e.examples, 2);
	static const float second[2][2] = { { -1, -1 }, { 40, -1 } };
	for (int i = 0; i < 2; i++) { // [0, 2] and [1, 1] become [1, 2]
		assert_int_equal(cell[i].shape.dim[0], 1);
		assert_memory_equal(cell[i].data, second[i], sizeof second[i]);
	}
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_END);
	for (int i = 0; i < 3; i++)
		chi_ragged_value_free(&cell[i]);
	choir_dataset_free(d);
}

TEST(a_shape_that_is_given_makes_packed_batches)
{
	const choir_shape shapes[] = { { 1, { 4 } }, CHOIR_SCALAR };
	choir_dataset *d = choir_dataset_padded_batch(words_new(6), 4,
			CHOIR_OPTIONS(
					choir_padded_batch_options, .padded_shapes = shapes, .drop_remainder = true));
	assert_int_equal(choir_dataset_column(d, 0)->shape.dim[0], 4);
	assert_int_equal(choir_dataset_cardinality(d), 1);
	char word[4][4];
	int64_t number[4];
	chi_element e = { .column = { word, number }, .capacity = 4 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	for (int64_t i = 0; i < 4; i++)
		for (int64_t k = 0; k < 4; k++)
			assert_int_equal(word[i][k], k < word_length(i) ? 'a' + i : 0);
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_END); // the other two are left out
	choir_dataset_free(d);
}

TEST(what_cannot_be_padded_is_refused)
{
	const choir_shape small[] = { { 1, { 2 } }, CHOIR_SCALAR };
	choir_dataset *d = choir_dataset_padded_batch(
			words_new(6), 4, CHOIR_OPTIONS(choir_padded_batch_options, .padded_shapes = small));
	assert_non_null(d);
	assert_int_equal(chi_dataset_seek(d, 0, 1), CHOIR_INVALID); // word 2 has 4 letters
	assert_failure(CHOIR_INVALID, "padded_batch: batch 0:*example 2*\"word\"*4*axis 0");
	choir_dataset_free(d);
	const choir_shape other[] = { { 2, { 4, 1 } }, CHOIR_SCALAR };
	assert_refused(choir_dataset_padded_batch(words_new(6), 4,
						   CHOIR_OPTIONS(choir_padded_batch_options, .padded_shapes = other)),
			CHOIR_INVALID, "column \"word\":*shape");
	const double wrong[] = { 256, 0 };
	assert_refused(choir_dataset_padded_batch(words_new(6), 4,
						   CHOIR_OPTIONS(choir_padded_batch_options, .padding_values = wrong)),
			CHOIR_INVALID, "column \"word\":*256*u8");
	assert_refused(
			choir_dataset_padded_batch(words_new(6), 0, NULL), CHOIR_INVALID, "padded_batch:*0");
	d = choir_dataset_batch(words_new(6), 2);
	int64_t number[2];
	chi_ragged_value word[2] = { { .data = NULL } };
	chi_element e = { .column = { word, number }, .capacity = 2 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "batch: batch 0:*example 1*\"word\"");
	chi_ragged_value_free(&word[0]);
	chi_ragged_value_free(&word[1]);
	choir_dataset_free(d);
}

static choir_dataset *windows(int64_t n, int64_t length, int64_t shift, int64_t stride)
{
	return choir_dataset_window(numbers_as_stream(n),
			CHOIR_OPTIONS(choir_window_options, .length = length, .shift = shift, .stride = stride,
					.drop_remainder = true));
}

// The windows one after another, flat.
static void assert_windows(choir_dataset *d, int64_t length, int64_t n, const int64_t expected[])
{
	int64_t found[8];
	chi_element e = { .column = { found }, .capacity = 1 };
	assert_non_null(d);
	assert_int_equal(choir_dataset_column(d, 0)->shape.dim[0], length);
	for (int64_t at = 0; at < n; at += length) {
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		assert_memory_equal(found, expected + at, (size_t) length * sizeof found[0]);
	}
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_END);
	assert_int_equal(chi_dataset_seek(d, 1, n / length - 1), CHOIR_OK);
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	assert_memory_equal(found, expected + n - length, (size_t) length * sizeof found[0]);
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_END);
	choir_dataset_free(d);
}

TEST(windows_hold_neighbours)
{
	assert_windows(windows(7, 3, 0, 0), 3, NUMBERS(0, 1, 2, 3, 4, 5));
	assert_windows(windows(5, 3, 1, 1), 3, NUMBERS(0, 1, 2, 1, 2, 3, 2, 3, 4));
	assert_windows(windows(9, 2, 3, 2), 2, NUMBERS(0, 2, 3, 5, 6, 8));
	assert_windows(windows(12, 2, 5, 1), 2, NUMBERS(0, 1, 5, 6, 10, 11));
	choir_dataset *d = choir_dataset_batch(choir_dataset_window(numbers_in_memory(9),
												   CHOIR_OPTIONS(choir_window_options, .length = 2,
														   .shift = 2, .drop_remainder = true)),
			3);
	assert_int_equal(choir_dataset_cardinality(d), 2);
	int64_t found[6];
	chi_element e = { .column = { found }, .capacity = 3 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	assert_int_equal(found[5], 5);
	choir_dataset_free(d);
}

TEST(short_windows_at_the_end_may_be_kept)
{
	choir_dataset *d = choir_dataset_window(
			numbers_in_memory(5), CHOIR_OPTIONS(choir_window_options, .length = 3, .shift = 2));
	assert_int_equal(choir_dataset_cardinality(d), 3);
	assert_int_equal(choir_dataset_column(d, 0)->shape.dim[0], CHOIR_NONE);
	chi_ragged_value cell = { .data = NULL };
	chi_element e = { .column = { &cell }, .capacity = 1 };
	static const int64_t expected[][3] = { { 0, 1, 2 }, { 2, 3, 4 }, { 4 } };
	static const int64_t lengths[] = { 3, 3, 1 };
	for (int i = 0; i < 3; i++) {
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		assert_int_equal(cell.shape.dim[0], lengths[i]);
		assert_memory_equal(cell.data, expected[i], (size_t) lengths[i] * sizeof(int64_t));
	}
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_END);
	chi_ragged_value_free(&cell);
	choir_dataset_free(d);
	assert_refused(
			choir_dataset_window(numbers_in_memory(5), NULL), CHOIR_INVALID, "window:*length 0");
	assert_refused(
			choir_dataset_window(numbers_in_memory(5), &(choir_window_options){ .size = 4 }),
			CHOIR_INVALID, "window:*4");
	assert_refused(
			choir_dataset_window(words_new(5), CHOIR_OPTIONS(choir_window_options, .length = 2)),
			CHOIR_UNSUPPORTED, "window:*\"word\"");
	assert_refused(choir_dataset_window(
						   numbers_in_memory(5), CHOIR_OPTIONS(choir_window_options, .length = 0)),
			CHOIR_INVALID, "window:*length 0");
	assert_refused(choir_dataset_window(numbers_in_memory(5),
						   CHOIR_OPTIONS(choir_window_options, .length = INT64_MAX, .stride = 9)),
			CHOIR_INVALID, "window:*stride");
}
