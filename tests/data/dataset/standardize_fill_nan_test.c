// Standardisation: moments by hand and over batches, what is applied, and wrong use.
#include "data/elements.h"
#include "test.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

static const float numbers[][2] = { { 1, 1e6f }, { 2, 1e6f }, { 3, 1e6f }, { 6, 1e6f } };
static const int64_t whole[] = { 1, 2, 3, 4 };

static choir_dataset *table(void)
{
	const choir_column c[] = { { .name = "x", .shape = { 1, { 2 } }, .data = numbers },
		{ .name = "n", .dtype = CHOIR_I64, .data = whole } };
	return choir_memory_dataset_new(4, 2, c, false);
}

TEST(moments_by_hand)
{
	choir_dataset *d = table();
	for (int batches = 0; batches < 2; batches++) {
		float mean[2], deviation[2];
		assert_int_equal(choir_dataset_moments(d, "x", 2, mean, deviation), CHOIR_OK);
		assert_true(mean[0] == 3 && mean[1] == 1e6f);
		assert_true(deviation[0] == 1.87082869f && deviation[1] == 0); // the root of 14 / 4
		if (!batches)
			d = choir_dataset_batch(d, 3);
	}
	choir_dataset_free(d);
}

// However the host rounds: thirds are made, their mean, and what is divided by.
TEST(the_hosts_rounding_does_not_matter)
{
	static const float x[] = { 1, 2, 4 };
	const choir_column c = { "x", CHOIR_F32, CHOIR_SCALAR, x };
	const int modes[] = { FE_TONEAREST, FE_UPWARD };
	float mean[2], deviation[2], applied[2];
	for (int i = 0; i < 2; i++) {
		chi_element e = { .column = { &applied[i] }, .capacity = 1 };
		choir_dataset *d =
				choir_dataset_to_float(choir_memory_dataset_new(3, 1, &c, false), "x", 1 / 3.0);
		fesetround(modes[i]);
		const choir_status status = choir_dataset_moments(d, "x", 1, &mean[i], &deviation[i]);
		const float by = 3;
		d = choir_dataset_standardize(d, "x", 1, mean, &by);
		const int after = fegetround();
		fesetround(FE_TONEAREST);
		assert_int_equal(status, CHOIR_OK);
		assert_int_equal(after, modes[i]);
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		choir_dataset_free(d);
	}
	assert_memory_equal(&mean[0], &mean[1], sizeof mean[0]);
	assert_memory_equal(&deviation[0], &deviation[1], sizeof deviation[0]);
	assert_memory_equal(&applied[0], &applied[1], sizeof applied[0]);
}

// Two examples of two pixels with two channels.
TEST(channels_have_moments_over_all_pixels)
{
	static const float pixels[] = { 1, 10, 3, 10, 5, 30, 7, 30 };
	const choir_column c = { .name = "x", .shape = { 2, { 2, 2 } }, .data = pixels };
	float mean[2], deviation[2], applied[4];
	choir_dataset *d = choir_memory_dataset_new(2, 1, &c, false);
	assert_int_equal(choir_dataset_moments(d, "x", 2, mean, deviation), CHOIR_OK);
	assert_true(mean[0] == 4 && mean[1] == 20);
	assert_true(deviation[0] == 2.23606798f && deviation[1] == 10); // the root of 20 / 4
	d = choir_dataset_standardize(d, "x", 2, mean, (const float[]){ 2, 10 });
	chi_element e = { .column = { applied }, .capacity = 1 };
	for (int i = 0; i < 2; i++) {
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		for (int k = 0; k < 4; k++)
			assert_true(applied[k] == (pixels[4 * i + k] - mean[k % 2]) / (k % 2 ? 10 : 2));
	}
	choir_dataset_free(d);
}

TEST(it_is_applied)
{
	const float mean[] = { 3, 999999 }, deviation[] = { 0.5f, 0 };
	choir_dataset *d = choir_dataset_standardize(table(), "x", 2, mean, deviation);
	for (int turn = 0; turn < 2; turn++) {
		float x[3][2];
		chi_element e = { .column = { x }, .capacity = 3 };
		if (turn)
			d = choir_dataset_batch(d, 3);
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		assert_true(x[0][0] == -4 && x[0][1] == 1);
		if (turn)
			assert_true(x[2][0] == 0 && x[2][1] == 1);
		assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	}
	choir_dataset_free(d);
}

// Moments leave NaN out, and means can replace it.
TEST(missing_numbers)
{
	static const float some[][3] = { { 1, NAN, NAN }, { NAN, 4, NAN }, { 5, 8, NAN } };
	const choir_column c = { .name = "x", .shape = { 1, { 3 } }, .data = some };
	float mean[3], deviation[3], x[3][3];
	choir_dataset *d = choir_memory_dataset_new(3, 1, &c, false);
	assert_int_equal(choir_dataset_moments(d, "x", 3, mean, deviation), CHOIR_OK);
	assert_true(mean[0] == 3 && mean[1] == 6 && mean[2] == 0);
	assert_true(deviation[0] == 2 && deviation[1] == 2 && deviation[2] == 0);
	d = choir_dataset_batch(choir_dataset_fill_nan(d, "x", 3, mean), 3);
	chi_element e = { .column = { x }, .capacity = 3 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	static const float filled[][3] = { { 1, 6, 0 }, { 3, 4, 0 }, { 5, 8, 0 } };
	assert_memory_equal(x, filled, sizeof filled);
	choir_dataset_free(d);
	assert_refused(
			choir_dataset_fill_nan(table(), "x", 1, mean), CHOIR_INVALID, "fill_nan: 1*numbers");
	assert_refused(choir_dataset_fill_nan(table(), "n", 1, mean), CHOIR_UNSUPPORTED, "\"n\"*f32");
	assert_refused(choir_dataset_fill_nan(table(), "x", 2, NULL), CHOIR_INVALID, "NULL");
}

TEST(it_is_misused)
{
	float m[2], s[2];
	choir_dataset *d = table();
	assert_int_equal(choir_dataset_moments(d, "y", 2, m, s), CHOIR_NOT_FOUND);
	assert_failure(CHOIR_NOT_FOUND, "moments:*\"y\"*\"x\"*\"n\"");
	assert_int_equal(choir_dataset_moments(d, "n", 1, m, s), CHOIR_UNSUPPORTED);
	assert_failure(CHOIR_UNSUPPORTED, "\"n\"*i64*f32");
	assert_int_equal(choir_dataset_moments(d, "x", 3, m, s), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "moments:*3*\"x\"*2");
	assert_int_equal(choir_dataset_moments(d, "x", 2, NULL, s), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "moments:*NULL");
	assert_int_equal(choir_dataset_moments(NULL, "x", 2, m, s), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "NULL");
	d = choir_dataset_take(d, 0);
	assert_int_equal(choir_dataset_moments(d, "x", 2, m, s), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "examples");
	choir_dataset_free(d);
	d = choir_dataset_repeat(table(), CHOIR_FOREVER);
	assert_int_equal(choir_dataset_moments(d, "x", 2, m, s), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "for ever");
	choir_dataset_free(d);
	assert_refused(choir_dataset_standardize(table(), "x", 1, m, s), CHOIR_INVALID, "1*numbers");
	assert_refused(choir_dataset_standardize(table(), "x", 2, m, NULL), CHOIR_INVALID, "NULL");
}

static choir_status use_all(void *user)
{
	float mean[2] = { 0 }, deviation[2] = { 0 };
	(void) user;
	choir_dataset *d = table();
	const choir_status status =
			d ? choir_dataset_moments(d, "x", 2, mean, deviation) : choir_error_status();
	if (status == CHOIR_OK)
		d = choir_dataset_standardize(d, "x", 2, mean, deviation);
	const bool made = d != NULL;
	choir_dataset_free(d);
	return status != CHOIR_OK || made ? status : choir_error_status();
}

TEST(every_allocation_may_fail)
{
	assert_every_allocation(use_all, NULL);
}
