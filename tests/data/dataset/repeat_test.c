// Repeats of a source whose length nobody knows: going to a place reads only the source's pass in
// which the place is, in another program too, and what was remembered of one pass is not used in
// another.
#include "data/elements.h"
#include "test.h"

#include <string.h>

typedef struct {
	int64_t n, calls;
} counted;

static choir_status count_calls(int64_t position, void *const out[], void *user)
{
	counted *c = user;
	c->calls++;
	if (position == c->n)
		return CHOIR_END;
	memcpy(out[0], &position, sizeof position);
	return CHOIR_OK;
}

static choir_dataset *repeated(counted *c, int64_t times, int64_t batch)
{
	const choir_column column = { .name = "number", .dtype = CHOIR_I64 };
	choir_dataset *d = choir_generator_dataset_new(1, &column, count_calls, c);
	d = choir_dataset_repeat(batch ? choir_dataset_batch(d, batch) : d, times);
	if (!d)
		fail_msg("%s", choir_error());
	return d;
}

// Only the source's pass is read again in which the place is.
static void check_repeat(int64_t times, int64_t batch)
{
	enum { LENGTH = 10, MAX = 1000 };
	int64_t numbers[LENGTH];
	counted c = { .n = LENGTH }, other_calls = { .n = LENGTH };
	const int64_t per_pass = batch ? (LENGTH + batch - 1) / batch : LENGTH;
	choir_dataset *d = repeated(&c, times, batch);
	chi_element e = { .column = { numbers }, .capacity = batch ? batch : 1 };
	for (int64_t at = 0; at <= 50 * per_pass; at++) {
		if (at % 7 == 0) {
			chi_seek_point mark[CHI_MAX_SEEK_POINTS];
			choir_dataset *other = repeated(&other_calls, times, batch);
			const size_t n = chi_dataset_seek_index(d, mark);
			assert_int_equal(chi_dataset_take_seek_index(other, n, mark), CHOIR_OK);
			other_calls.calls = 0;
			assert_int_equal(chi_dataset_seek(other, 0, at), CHOIR_OK);
			assert_in_range(other_calls.calls, 0, LENGTH + 1);
			for (int64_t k = at; k < at + 2 * per_pass; k++) {
				assert_int_equal(chi_dataset_next(other, &e), CHOIR_OK);
				assert_int_equal(numbers[0], k % per_pass * (batch ? batch : 1));
			}
			choir_dataset_free(other);
		}
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		assert_int_equal(numbers[0], at % per_pass * (batch ? batch : 1));
	}
	choir_dataset_free(d);
}

// spec: D30
TEST(repeats_begin_with_the_pass_of_the_place)
{
	check_repeat(CHOIR_NONE, 0);
	check_repeat(100, 0);
	check_repeat(CHOIR_NONE, 4);
}

// Marks of one pass say nothing of another, whose source may be of another length.
static bool below(const choir_component in[], void *user)
{
	(void) user;
	return *(const int64_t *) in[0].data < 12;
}

static choir_dataset *uneven(void) // from 0 to 12 numbers a pass
{
	choir_dataset *d = choir_dataset_take(
			choir_dataset_shuffle(choir_range_dataset_new("number", 0, 24, 1), 24, 3), 12);
	return choir_dataset_repeat(choir_dataset_filter(d, below, NULL), 3);
}

TEST(marks_of_a_repeat_are_of_one_pass)
{
	enum { PASSES = 5 };
	int64_t number[PASSES][40], length[PASSES], found;
	chi_element e = { .capacity = 1 };
	choir_dataset *d = uneven();
	for (int p = 0; p < PASSES; p++) {
		for (length[p] = 0; e.column[0] = &number[p][length[p]],
			length[p] < 39 && chi_dataset_next(d, &e) == CHOIR_OK;)
			length[p]++;
		assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	}
	e.column[0] = &found;
	for (int64_t at = 0; at < 40; at++)
		for (int p = 0; p < PASSES; p++) {
			if (at >= length[p])
				continue;
			chi_seek_point mark[CHI_MAX_SEEK_POINTS];
			choir_dataset *other = uneven();
			for (int twice = 0; twice < 2; twice++) { // with marks of the place, and of others
				const size_t n = chi_dataset_seek_index(d, mark);
				assert_int_equal(chi_dataset_take_seek_index(other, n, mark), CHOIR_OK);
				assert_int_equal(chi_dataset_seek(other, p, at), CHOIR_OK);
				assert_int_equal(chi_dataset_next(other, &e), CHOIR_OK);
				assert_int_equal(found, number[p][at]);
				assert_int_equal(chi_dataset_seek(d, p, at), CHOIR_OK);
			}
			choir_dataset_free(other);
		}
	choir_dataset_free(d);
}
