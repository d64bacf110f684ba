// interleave and flat_map in TensorFlow's order, concatenate, unbatch, the cache in memory and
// in a file: what comes when, what is read, what is refused.
#include "data/elements.h"
#include "data/varying.h"

#include "base/status.h"
#include "base/hash.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static choir_status times_ten(const choir_component in[], choir_component out[], void *user)
{
	((int64_t *) out[0].data)[0] = ((const int64_t *) in[0].data)[0] + *(int64_t *) user;
	return CHOIR_OK;
}

// Element n becomes n examples: 10 n, 10 n + 1, ...
static int64_t tens[] = { 0, 10, 20, 30, 40, 50, 60 };
static choir_dataset *ten(const choir_component in[], void *user)
{
	(void) user;
	const int64_t n = ((const int64_t *) in[0].data)[0];
	return choir_dataset_map(numbers_as_stream(n), NULL, times_ten, &tens[n]);
}

static choir_dataset *mixed(choir_dataset *d, int64_t cycle, int64_t block, bool ahead)
{
	return choir_dataset_interleave(d,
			CHOIR_OPTIONS(choir_interleave_options, .cycle_length = cycle, .block_length = block,
					.read_ahead = ahead),
			ten, NULL);
}

TEST(datasets_take_turns)
{
	for (int ahead = 0; ahead < 2; ahead++) {
		choir_dataset *d = mixed(numbers_in_memory(5), 2, 1, ahead);
		// Place 0: datasets 0, 2, 4; place 1: 1 and 3. An end leaves the turn to the other place.
		assert_numbers(d, NUMBERS(10, 20, 21, 30, 31, 40, 32, 41, 42, 43));
		choir_dataset_free(d);
		d = mixed(choir_dataset_skip(numbers_in_memory(5), 2), 3, 2, ahead);
		assert_numbers(d, NUMBERS(20, 21, 30, 31, 40, 41, 32, 42, 43));
		choir_dataset_free(d);
		d = choir_dataset_flat_map(numbers_in_memory(4),
				CHOIR_OPTIONS(choir_interleave_options, .read_ahead = ahead), ten, NULL);
		assert_numbers(d, NUMBERS(10, 20, 21, 30, 31, 32));
		assert_numbers(d, NUMBERS(10, 20, 21, 30, 31, 32));
		choir_dataset_free(d);
	}
	choir_dataset *d = mixed(numbers_in_memory(0), 3, 1, false);
	assert_numbers(d, 0, NULL);
	choir_dataset_free(d);
}

// A dataset that is cancelled while it opens one.
static choir_dataset *ten_cancelled(const choir_component in[], void *user)
{
	chi_dataset_cancel(*(choir_dataset **) user);
	return ten(in, NULL);
}

TEST(cancelling_reaches_the_datasets_that_are_open)
{
	for (int ahead = 0; ahead < 2; ahead++) {
		choir_dataset *d = NULL;
		d = choir_dataset_interleave(choir_dataset_skip(numbers_in_memory(4), 1),
				CHOIR_OPTIONS(choir_interleave_options, .cycle_length = 2, .read_ahead = ahead),
				ten_cancelled, &d);
		assert_next_fails(d, CHOIR_CANCELLED, "interleave: ");
		chi_dataset_uncancel(d);
		assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
		assert_next_fails(d, CHOIR_CANCELLED, ahead ? "prefetch: cancelled" : "map: cancelled");
		choir_dataset_free(d);
	}
}

static choir_dataset *none(const choir_component in[], void *user)
{
	(void) in;
	return user ? choir_synthetic_digits_dataset_new(2, 1) : NULL;
}

TEST(datasets_that_do_not_fit_are_errors)
{
	const choir_interleave_options o = { .size = sizeof o };
	choir_dataset *d = choir_dataset_interleave(numbers_in_memory(2), &o, none, NULL);
	assert_next_fails(d, CHOIR_INVALID, "interleave: element 0: the function returned");
	choir_dataset_free(d);
	d = choir_dataset_flat_map(numbers_in_memory(2), &o, none, d);
	assert_next_fails(d, CHOIR_INVALID, "flat_map: element 0*the number of columns");
	choir_dataset_free(d);
	assert_refused(choir_dataset_interleave(numbers_in_memory(2),
						   &(choir_interleave_options){ .size = 4 }, ten, NULL),
			CHOIR_INVALID, "interleave:*4");
	assert_refused(choir_dataset_interleave(numbers_in_memory(2), &o, NULL, NULL), CHOIR_INVALID,
			"interleave:*NULL");
	assert_refused(mixed(numbers_in_memory(2), -1, 1, false), CHOIR_INVALID, "-1*cycle");
	assert_refused(mixed(choir_dataset_batch(numbers_in_memory(2), 2), 1, 1, false), CHOIR_INVALID,
			"examples");
	assert_refused(choir_dataset_flat_map(numbers_in_memory(2),
						   CHOIR_OPTIONS(choir_interleave_options, .cycle_length = 2), ten, NULL),
			CHOIR_INVALID, "flat_map:*given");
}

TEST(one_dataset_follows_the_other)
{
	for (int kind = 0; kind < 2; kind++) {
		choir_dataset *d = choir_dataset_concatenate(
				numbers_in_memory(3), kind ? numbers_as_stream(2) : numbers_in_memory(2));
		d = choir_dataset_skip(choir_dataset_take(d, 4), 1);
		assert_numbers(d, NUMBERS(1, 2, 0));
		choir_dataset_free(d);
	}
	choir_dataset *d = choir_dataset_concatenate(choir_dataset_batch(numbers_in_memory(3), 2),
			choir_dataset_batch(numbers_in_memory(3), 3));
	assert_int_equal(chi_dataset_spec(d)->global, CHOIR_NONE);
	assert_int_equal(choir_dataset_batch_size(d), 3);
	assert_sizes(d, NUMBERS(2, 1, 3));
	choir_dataset_free(d);
	assert_refused(choir_dataset_concatenate(numbers_in_memory(3), words_new(3)), CHOIR_INVALID,
			"concatenate:*differ");
	assert_refused(choir_dataset_concatenate(numbers_in_memory(3),
						   choir_dataset_to_float(numbers_in_memory(3), "number", 1)),
			CHOIR_INVALID, "dtype");
	assert_refused(choir_dataset_concatenate(
						   numbers_in_memory(3), choir_dataset_batch(numbers_in_memory(3), 3)),
			CHOIR_INVALID, "batches");
	d = numbers_in_memory(3);
	assert_refused(choir_dataset_concatenate(d, d), CHOIR_INVALID, "dataset");
	assert_refused(choir_dataset_concatenate(NULL, numbers_in_memory(3)), CHOIR_INVALID, "NULL");
}

TEST(batches_are_taken_apart)
{
	choir_dataset *d = choir_dataset_batch(
			choir_dataset_unbatch(choir_dataset_batch(numbers_as_stream(8), 3)), 4);
	assert_numbers(d, NUMBERS(0, 1, 2, 3, 4, 5, 6, 7));
	assert_sizes(d, NUMBERS(4, 4));
	choir_dataset_free(d);
	d = choir_dataset_batch_drop_remainder(numbers_as_stream(8), 3);
	assert_sizes(d, NUMBERS(3, 3));
	choir_dataset_free(d);
	assert_refused(choir_dataset_unbatch(numbers_in_memory(2)), CHOIR_INVALID, "examples");
}

// spec: D30
TEST(a_cache_repeats_its_first_pass)
{
	number_source s = { .n = 9, .fail_at = -1 };
	choir_dataset *d = choir_dataset_cache(choir_dataset_shuffle(numbers_from(&s), 9, 1), NULL);
	pass first, p;
	read_pass(d, 4, &first); // not to its end: that is no pass yet
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	read_pass(d, MAX_NUMBERS, &p);
	assert_int_equal(p.n, 9);
	assert_memory_equal(p.number, first.number, 4 * sizeof(int64_t));
	const int64_t asked = s.asked;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
		read_pass(d, MAX_NUMBERS, &first);
		assert_memory_equal(p.number, first.number, 9 * sizeof(int64_t));
	}
	assert_int_equal(s.asked, asked); // the source is not read again
	choir_dataset_free(d);
	d = choir_dataset_shuffle(choir_dataset_cache(numbers_as_stream(9), NULL), 9, 1);
	read_pass(d, MAX_NUMBERS, &p);
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	read_pass(d, MAX_NUMBERS, &first);
	assert_memory_not_equal(p.number, first.number, 9 * sizeof(int64_t));
	choir_dataset_free(d);
	assert_refused(
			choir_dataset_cache(choir_dataset_repeat(numbers_in_memory(1), CHOIR_FOREVER), NULL),
			CHOIR_INVALID, "cache:*repeats");
}

static char directory[] = "/tmp/choir-cache-XXXXXX";
static const char *cache_path(void)
{
	static char path[64];
	snprintf(path, sizeof path, "%s/cache", directory);
	return path;
}

static void check_words(choir_dataset *d)
{
	chi_ragged_value word = { .data = NULL };
	int64_t number;
	chi_element e = { .column = { &word, &number }, .capacity = 1 };
	for (int64_t i = 0; i < 20; i++) {
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		assert_int_equal(number, i);
		assert_word(&word, i);
	}
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_END);
	chi_ragged_value_free(&word);
}

TEST(a_cache_in_a_file_is_found_again)
{
	unlink(cache_path());
	choir_dataset *d = choir_dataset_cache(words_new(20), cache_path());
	assert_int_equal(chi_dataset_seek(d, 0, 5), CHOIR_OK);
	choir_dataset_free(d); // not to its end: no file
	assert_int_equal(access(cache_path(), F_OK), -1);
	d = choir_dataset_cache(words_new(20), cache_path());
	for (int i = 0; i < 3; i++) {
		check_words(d);
		assert_int_equal(access(cache_path(), F_OK), 0);
		assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	}
	choir_dataset_free(d);
	d = choir_dataset_cache(words_new(20), cache_path());
	check_words(d);
	choir_dataset_free(d);
	assert_refused(choir_dataset_cache(numbers_in_memory(20), cache_path()), CHOIR_INVALID,
			"cache:*chain");
}

// Whatever byte is damaged or missing: the right words, or an error that names file and byte.
TEST(damaged_caches_are_errors)
{
	unlink(cache_path());
	choir_dataset *d = choir_dataset_cache(words_new(20), cache_path());
	check_words(d);
	choir_dataset_free(d);
	unsigned char bytes[4096];
	FILE *f = fopen(cache_path(), "rb");
	const size_t n = fread(bytes, 1, sizeof bytes, f);
	fclose(f);
	for (size_t at = 0; at < 2 * n; at++) {
		f = fopen(cache_path(), "wb");
		bytes[at % n] ^= at < n ? 0x41 : 0;
		fwrite(bytes, 1, at < n ? n : at - n, f);
		fclose(f);
		bytes[at % n] ^= at < n ? 0x41 : 0;
		d = choir_dataset_cache(words_new(20), cache_path());
		choir_status status = d ? CHOIR_OK : choir_error_status();
		chi_ragged_value word = { .data = NULL };
		int64_t number, seen = 0;
		chi_element e = { .column = { &word, &number }, .capacity = 1 };
		while (status == CHOIR_OK && (status = chi_dataset_next(d, &e)) == CHOIR_OK) {
			assert_int_equal(number, seen);
			assert_word(&word, seen++);
		}
		if (status == CHOIR_END) { // what is no matter
			assert_int_equal(seen, 20);
		} else {
			assert_true(status == CHOIR_CORRUPT || status == CHOIR_INVALID);
			assert_failure(status, directory);
		}
		chi_ragged_value_free(&word);
		choir_dataset_free(d);
	}
	unlink(cache_path());
}

static choir_status pairs(const choir_component in[], choir_component out[], void *user)
{
	(void) in;
	(void) user;
	CHOIR_TRY(choir_component_resize(&out[0], &CHOIR_SHAPE(3, 2)));
	memset(out[0].data, 7, 6);
	return CHOIR_OK;
}

static choir_dataset *cached_pairs(void)
{
	const choir_column c = { .name = "x", .dtype = CHOIR_U8, .shape = { 2, { CHOIR_NONE, 2 } } };
	return choir_dataset_cache(
			choir_dataset_map(numbers_in_memory(1),
					CHOIR_OPTIONS(choir_map_options, .n = 1, .columns = &c), pairs, NULL),
			cache_path());
}

// Shapes that its columns cannot have, in a file whose checksums are right.
TEST(shapes_that_cannot_be_are_errors)
{
	static const int64_t wrong[][2] = { { 2, 3 }, { 2, 2 }, { 4, 2 }, { -1, 2 } };
	static const char *const what[] = { "an example's shape is wrong",
		"an element has too many bytes", "an example's shape is wrong",
		"an example's shape is wrong" };
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		chi_ragged_value cell = { .data = NULL };
		const chi_element e = { .column = { &cell }, .capacity = 1 };
		unlink(cache_path());
		assert_int_equal(read_to_end(cached_pairs(), e), CHOIR_END);
		uint64_t part[3] = { 0 }, sum,
				 at = 4 * sizeof sum + 2 * sizeof sum; // behind the beginning, examples and bytes
		FILE *f = fopen(cache_path(), "r+b");
		assert_int_equal(fseek(f, (long) (at + sizeof sum), SEEK_SET), 0);
		assert_int_equal(fread(part, 22, 1, f), 1);
		memcpy(part, wrong[i], sizeof wrong[i]);
		sum = 22;
		for (int k = 0; k < 2; k++)
			sum = chi_hash_mix(sum ^ part[k]);
		part[2] &= UINT64_C(0xffffffffffff);
		sum = chi_hash_mix(sum ^ part[2]);
		assert_int_equal(fseek(f, (long) at, SEEK_SET), 0);
		assert_int_equal(fwrite(&sum, sizeof sum, 1, f), 1);
		assert_int_equal(fwrite(part, 22, 1, f), 1);
		fclose(f);
		assert_int_equal(read_to_end(cached_pairs(), e), CHOIR_CORRUPT);
		assert_failure(CHOIR_CORRUPT, what[i]);
		chi_ragged_value_free(&cell);
	}
	unlink(cache_path());
}

static choir_status use_all(void *user)
{
	(void) user;
	unlink(cache_path());
	choir_dataset *d = mixed(
			choir_dataset_concatenate(numbers_in_memory(5), numbers_as_stream(4)), 2, 2, true);
	d = choir_dataset_shuffle(choir_dataset_cache(d, NULL), CHOIR_ALL, 1);
	d = choir_dataset_unbatch(choir_dataset_batch(choir_dataset_cache(d, cache_path()), 3));
	int64_t number;
	return read_to_end(d, (chi_element){ .column = { &number }, .capacity = 1 });
}

TEST(every_allocation_may_fail)
{
	assert_every_allocation(use_all, NULL);
	unlink(cache_path());
}

static int make_directory(void **state)
{
	(void) state;
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	(void) state;
	return rmdir(directory);
}

TEST_GROUP(make_directory, remove_directory)
