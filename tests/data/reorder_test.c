// Steps that are done later than they were asked for: what comes is what comes where they are not,
// over memory; and a shuffle keeps bytes, not floats.
#include "data/elements.h"

#include "base/alloc.h"
#include "data/source/scratch.h"
#include "data/dataset.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

enum { N = 40, VALUES = 6, BUFFER = 20 };

static unsigned char values[N * VALUES];
static const choir_column column = { "x", CHOIR_U8, { 2, { 2, 3 } }, values };

static choir_dataset *in_memory(void)
{
	return choir_memory_dataset_new(N, 1, &column, false);
}

static choir_dataset *in_file(void)
{
	const choir_field field = { .name = "x", .dtype = CHOIR_U8, .shape = { 2, { 2, 3 } } };
	return choir_fixed_length_record_dataset_new(scratch_path("values"), 1, &field, NULL);
}

static choir_dataset *chain(choir_dataset *d, int way)
{
	static const float mean[VALUES] = { 0.1f, 0.2f, 0.3f },
					   deviation[VALUES] = { 2, 3, 4, 5, 6, 7 };
	if (way == 5)
		d = choir_dataset_batch(d, 3);
	d = choir_dataset_to_float(d, "x", 1 / 255.0);
	if (way % 2)
		d = choir_dataset_flatten(d, "x");
	if (way > 1)
		d = choir_dataset_standardize(d, "x", VALUES, mean, deviation);
	d = choir_dataset_skip(d, 2);
	d = choir_dataset_take(d, way == 5 ? 10 : 36);
	d = choir_dataset_shard(d, 2, 1);
	d = way == 4 ? choir_dataset_shuffle_once(d, 5, 8) : choir_dataset_shuffle(d, 5, 8);
	return choir_dataset_take(d, 9);
}

TEST(nothing_else_comes)
{
	static char expected[1 << 14];
	for (int way = 0; way < 6; way++) {
		choir_dataset *plain = chain(in_memory(), way), *late = chain(in_file(), way);
		assert_int_equal(choir_dataset_cardinality(late), choir_dataset_cardinality(plain));
		assert_int_equal(chi_dataset_spec(late)->examples, chi_dataset_spec(plain)->examples);
		assert_int_equal(strcmp(plain->stage->name, "take") == 0, way < 5); // batches are a stream
		assert_string_not_equal(late->stage->name, "take");
		for (int again = 0; again < 3; again++) {
			snprintf(expected, sizeof expected, "%s", pass_in_words(plain));
			assert_string_equal(pass_in_words(late), expected);
			assert_int_equal(chi_dataset_rewind(plain), CHOIR_OK);
			assert_int_equal(chi_dataset_rewind(late), CHOIR_OK);
		}
		choir_dataset_free(plain);
		choir_dataset_free(late);
	}
}

TEST(a_shuffle_keeps_what_is_smaller)
{
	uint64_t asked[2];
	for (int i = 0; i < 2; i++) { // of twice the room
		choir_dataset *d = choir_dataset_to_float(in_file(), "x", 1);
		const uint64_t before = chi_alloc_bytes();
		d = choir_dataset_shuffle(d, (i + 1) * BUFFER, 8);
		asked[i] = chi_alloc_bytes() - before;
		choir_dataset_free(d);
	}
	// A number and the bytes of an example each, in whole lines.
	assert_in_range(asked[1] - asked[0], BUFFER * (8 + VALUES) - 64, BUFFER * (8 + VALUES) + 64);
	// What would be larger before is left where it is.
	static const int64_t wide[N];
	const choir_field field = { .name = "x", .dtype = CHOIR_I64 };
	choir_dataset *d = choir_fixed_length_record_dataset_new(
			scratch_write("wide", wide, sizeof wide), 1, &field, NULL);
	d = choir_dataset_shuffle(choir_dataset_to_float(d, "x", 1), 4, 1);
	assert_string_equal(d->stage->name, "shuffle");
	choir_dataset_free(d);
}

static choir_status use(void *user)
{
	float x[VALUES];
	(void) user;
	return read_to_end(chain(in_file(), 3), (chi_element){ .column = { x }, .capacity = 1 });
}

TEST(what_cannot_be_is_freed)
{
	assert_every_allocation(use, NULL);
	assert_refused(choir_dataset_take(choir_dataset_to_float(in_file(), "x", 1), -1),
			CHOIR_INVALID, "take:*-1 elements");
	assert_refused(choir_dataset_shuffle(choir_dataset_to_float(in_file(), "x", 1), 0, 1),
			CHOIR_INVALID, "shuffle:*0 elements");
	assert_refused(choir_dataset_shard(choir_dataset_to_float(in_file(), "x", 1), 2, 2),
			CHOIR_INVALID, "shard:*index 2");
}

static int begin(void **state)
{
	(void) state;
	for (int i = 0; i < N * VALUES; i++)
		values[i] = (unsigned char) i;
	return scratch_write("values", values, sizeof values) == NULL;
}

TEST_GROUP(begin, scratch_leave)
