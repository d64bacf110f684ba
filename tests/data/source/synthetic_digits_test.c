// Drawn digits: the same on every machine and in any order, one of each in ten, and alike enough
// within a class that a very simple classifier tells them apart.
#include "data/elements.h"

#include "base/philox.h"
#include "data/source/synthetic_digits.h"
#include "test.h"

#include <string.h>

TEST(they_depend_on_seed_and_number_alone)
{
	static uint8_t image[50][784], label[50], other[784], digit;
	choir_dataset *d = choir_dataset_batch(choir_synthetic_digits_dataset_new(50, 9), 50);
	chi_element e = { .column = { image, label }, .capacity = 50 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	choir_dataset_free(d);
	for (int i = 0; i < 50; i += 7) {
		d = choir_dataset_skip(choir_synthetic_digits_dataset_new(1000, 9), i);
		chi_element o = { .column = { other, &digit }, .capacity = 1 };
		assert_int_equal(chi_dataset_next(d, &o), CHOIR_OK);
		assert_memory_equal(other, image[i], 784);
		assert_int_equal(digit, label[i]);
		choir_dataset_free(d);
	}
	d = choir_synthetic_digits_dataset_new(1, 10);
	chi_element o = { .column = { other, NULL }, .capacity = 1 };
	assert_int_equal(chi_dataset_next(d, &o), CHOIR_OK);
	assert_memory_not_equal(other, image[0], 784);
	choir_dataset_free(d);
}

// The bits of the first 1,000 digits of seed 1: what changes them changes every result that was
// ever written down.
TEST(their_bits_are_fixed)
{
	static uint8_t image[1000][784], label[1000];
	choir_dataset *d = choir_dataset_batch(choir_synthetic_digits_dataset_new(1000, 1), 1000);
	chi_element e = { .column = { image, label }, .capacity = 1000 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	uint64_t hash = UINT64_C(14695981039346656037);
	for (int i = 0; i < 1000; i++) {
		for (int j = 0; j < 784; j++)
			hash = (hash ^ image[i][j]) * UINT64_C(1099511628211);
		hash = (hash ^ label[i]) * UINT64_C(1099511628211);
	}
	if (hash != UINT64_C(0x44d974c8fb94875b))
		fail_msg("the hash is 0x%016llx", (unsigned long long) hash);
	choir_dataset_free(d);
}

TEST(each_digit_is_one_in_ten)
{
	static uint8_t label[1000];
	choir_dataset *d = choir_dataset_batch(choir_synthetic_digits_dataset_new(1000, 4), 1000);
	chi_element e = { .column = { NULL, label }, .capacity = 1000 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	int first[10] = { 0 };
	for (int i = 0; i < 1000; i += 10) {
		unsigned seen = 0;
		for (int j = 0; j < 10; j++)
			seen |= 1u << label[i + j];
		assert_int_equal(seen, 0x3ff);
		first[label[i]]++;
	}
	for (int i = 0; i < 10; i++)
		assert_in_range(first[i], 1, 25); // and the orders differ
	choir_dataset_free(d);
}

// There is ink in every image, and paper too.
TEST(they_are_ink_on_paper)
{
	uint8_t image[784];
	for (int i = 0; i < 500; i++) {
		chi_random_key key = { .seed = 3, .step = (uint64_t) i };
		chi_glyph_draw(i % 10, &key, image);
		int ink = 0, paper = 0;
		for (int j = 0; j < 784; j++) {
			ink += image[j] > 128;
			paper += image[j] < 32;
		}
		assert_in_range(ink, 8, 250);
		assert_in_range(paper, 450, 776);
	}
}

// Nearest mean image: learnt on 2,000, tested on 1,000.
TEST(they_can_be_told_apart)
{
	static uint8_t image[1000][784], label[1000];
	static double mean[10][784];
	choir_dataset *d = choir_dataset_batch(choir_synthetic_digits_dataset_new(3000, 8), 1000);
	chi_element e = { .column = { image, label }, .capacity = 1000 };
	for (int batch = 0; batch < 2; batch++) {
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		for (int i = 0; i < 1000; i++)
			for (int j = 0; j < 784; j++)
				mean[label[i]][j] += image[i][j] / 200.0;
	}
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	int right = 0;
	for (int i = 0; i < 1000; i++) {
		int best = 0;
		double nearest = 1e300;
		for (int c = 0; c < 10; c++) {
			double distance = 0;
			for (int j = 0; j < 784; j++)
				distance += (image[i][j] - mean[c][j]) * (image[i][j] - mean[c][j]);
			if (distance < nearest) {
				nearest = distance;
				best = c;
			}
		}
		right += best == label[i];
	}
	assert_in_range(right, 600, 990); // neither noise nor too easy
	choir_dataset_free(d);
}

TEST(wrong_counts_are_refused)
{
	assert_refused(
			choir_synthetic_digits_dataset_new(-1, 0), CHOIR_INVALID, "digits dataset:*-1*0");
	choir_dataset *d = choir_synthetic_digits_dataset_new(0, 0);
	chi_element e = { .capacity = 1 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_END);
	choir_dataset_free(d);
}
