// Reading on behind the end of a pass: what comes is what comes without, however and whenever the
// program goes on to the next pass; rows that were left out are still counted then; how much
// memory it takes; and that it is done at all.
#include "input/worker.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/status.h"
#include "data/source/scratch.h"
#include "input/input.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 50, ROWS = 3000 };

static char path[256];

static int write_file(void **state)
{
	(void) state;
	snprintf(path, sizeof path, "%s", scratch_numbers("numbers", N));
	return 0;
}

// The numbers of a file, shuffled, in batches of 8.
static choir_distributed_dataset *open_file(choir_strategy *s, int buffer, int64_t shuffled)
{
	const choir_field field = { .name = "number", .dtype = CHOIR_I64 };
	choir_dataset *d = choir_fixed_length_record_dataset_new(path, 1, &field, NULL);
	d = choir_dataset_batch(choir_dataset_shuffle(d, shuffled, 5), 8);
	choir_distributed_dataset *data = choir_strategy_distribute_dataset(s, d,
			CHOIR_OPTIONS(choir_input_options,
					.read_ahead = buffer < 0 ? CHOIR_OFF : CHOIR_DEFAULT,
					.read_ahead_steps = buffer < 0 ? 0 : buffer));
	if (data == NULL)
		fail_msg("%s", choir_error());
	return data;
}

static void assert_same_place(choir_distributed_dataset *a, choir_distributed_dataset *b)
{
	choir_input_position here = { .size = sizeof here }, there = here;
	assert_int_equal(choir_distributed_dataset_save(a, &here), CHOIR_OK);
	assert_int_equal(choir_distributed_dataset_save(b, &there), CHOIR_OK);
	assert_memory_equal(&here, &there, sizeof here);
}

// So many steps, at most; true: the end came.
static bool read_both(choir_distributed_dataset *a, choir_distributed_dataset *b, int steps)
{
	choir_values *x = NULL, *y = NULL;
	choir_status status = CHOIR_OK;
	for (int i = 0; i < steps && status == CHOIR_OK; i++) {
		status = choir_distributed_dataset_next(a, &x);
		assert_int_equal(choir_distributed_dataset_next(b, &y), status);
		for (int r = 0; r < 2 && status == CHOIR_OK; r++) {
			const choir_tensor *t = choir_value_local(choir_values_find(x, "number"), r);
			const choir_tensor *u = choir_value_local(choir_values_find(y, "number"), r);
			const int64_t n = choir_tensor_shape(t)->dim[0];
			assert_int_equal(n, choir_tensor_shape(u)->dim[0]);
			assert_memory_equal(choir_tensor_data(t), choir_tensor_data(u), (size_t) n * 8);
		}
		assert_same_place(a, b);
	}
	choir_values_free(x);
	choir_values_free(y);
	return status == CHOIR_END;
}

static void rewind_both(choir_distributed_dataset *a, choir_distributed_dataset *b)
{
	assert_int_equal(choir_distributed_dataset_rewind(a), CHOIR_OK);
	assert_int_equal(choir_distributed_dataset_rewind(b), CHOIR_OK);
	assert_same_place(a, b);
}

// spec: D4, D30, 2.11
TEST(a_pass_begun_early_is_the_pass)
{
	choir_strategy *s = worker_strategy(2);
	for (int buffer = 0; buffer < 12; buffer += buffer < 2 ? 1 : 3) // some hold more than a pass
		for (int64_t shuffled = 7; shuffled < 60; shuffled += 50) {
			choir_distributed_dataset *data = open_file(s, buffer, shuffled);
			choir_distributed_dataset *plain = open_file(s, -1, shuffled);
			for (int i = 0; i < 4; i++) { // to the end
				assert_true(read_both(data, plain, 100));
				assert_true(read_both(data, plain, 2)); // which stays
				rewind_both(data, plain);
			}
			for (int at = 0; at < 8; at++) { // from anywhere; behind the last step above all
				assert_false(read_both(data, plain, at < 7 ? at : 6));
				rewind_both(data, plain);
				rewind_both(data, plain);
			}
			// To a saved place, from behind the end.
			choir_input_position here = { .size = sizeof here };
			assert_false(read_both(data, plain, 5));
			assert_int_equal(choir_distributed_dataset_save(data, &here), CHOIR_OK);
			assert_true(read_both(data, plain, 100));
			assert_int_equal(choir_distributed_dataset_restore(data, &here), CHOIR_OK);
			assert_int_equal(choir_distributed_dataset_restore(plain, &here), CHOIR_OK);
			assert_true(read_both(data, plain, 100));
			rewind_both(data, plain);
			assert_true(read_both(data, plain, 100));
		}
	choir_strategy_free(s);
}

// Rows of numbers; with gaps, each third has none.
static const char *write_rows(bool gaps)
{
	const char *name = scratch_path("rows.csv");
	FILE *f = fopen(name, "w");
	assert_non_null(f);
	fputs("number,other\n", f);
	for (int i = 0; i < ROWS; i++)
		fprintf(f, "%d,1\n%s", i, gaps && i % 3 == 0 ? ",1\n" : "");
	assert_int_equal(fclose(f), 0);
	return name;
}

static const choir_csv_column column = {
	.name = "number", .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_I64
};

static int64_t delivered(const choir_dataset *d)
{
	while (d->from[0])
		d = d->from[0];
	return (int64_t) chi_atomic64_load(&d->delivered);
}

TEST(behind_an_end_the_next_pass_is_begun)
{
	choir_strategy *s = worker_strategy(1);
	for (int gaps = 0; gaps < 2; gaps++) {
		choir_dataset *d = choir_csv_dataset_new(write_rows(gaps),
				CHOIR_OPTIONS(choir_csv_options, .columns = 1, .column = &column,
						.missing = CHOIR_MISSING_DROP));
		d = choir_dataset_batch(d, 500);
		choir_distributed_dataset *data = choir_strategy_distribute_dataset(
				s, d, CHOIR_OPTIONS(choir_input_options, .read_ahead_steps = 1));
		assert_non_null(data);
		choir_values *batch = NULL;
		for (int i = 0; i < 6; i++)
			assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_OK);
		// How many were delivered is noted at 1024 and 2048, and forgotten where a pass begins.
		const double start = chi_clock_now();
		while (!gaps && delivered(d) != 0 && chi_clock_now() - start < 60)
			usleep(1000);
		assert_int_equal(delivered(d), gaps ? 2048 : 0);
		assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_END);
		assert_int_equal(choir_dataset_dropped(d), gaps ? ROWS / 3 : 0);
		assert_int_equal(choir_distributed_dataset_rewind(data), CHOIR_OK);
		assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_OK);
		choir_values_free(batch);
	}
	choir_strategy_free(s);
}

static bool count_call(const choir_component in[], void *user)
{
	(void) in;
	++*(int *) user;
	return true;
}

// The rows of a file, all of which go through a shuffle before the first batch; calls counts those
// of a function on the way, if it is not NULL.
static choir_distributed_dataset *open_now(choir_strategy *s, choir_dataset **d, int *calls)
{
	*d = choir_csv_dataset_new(
			write_rows(false), CHOIR_OPTIONS(choir_csv_options, .columns = 1, .column = &column));
	if (calls != NULL)
		*d = choir_dataset_filter(*d, count_call, calls);
	*d = choir_dataset_batch(choir_dataset_shuffle(*d, ROWS, 5), 500);
	return choir_strategy_distribute_dataset(s, *d,
			CHOIR_OPTIONS(choir_input_options, .read_ahead_steps = 1, .start_reading_now = true));
}

// Nobody has asked for a batch, and the shuffle's buffer is filled; what comes is what comes
// without, from wherever the program begins.
TEST(what_is_to_begin_now_is_read_before_the_first_batch)
{
	choir_strategy *s = worker_strategy(2);
	choir_dataset *d;
	choir_distributed_dataset *plain = NULL, *data = NULL;
	choir_input_position middle = { .size = sizeof middle };
	for (int way = 0; way < 3; way++) {
		choir_dataset *other = choir_csv_dataset_new(write_rows(false),
				CHOIR_OPTIONS(choir_csv_options, .columns = 1, .column = &column));
		other = choir_dataset_batch(choir_dataset_shuffle(other, ROWS, 5), 500);
		plain = choir_strategy_distribute_dataset(
				s, other, CHOIR_OPTIONS(choir_input_options, .read_ahead = CHOIR_OFF));
		assert_non_null(plain);
		data = open_now(s, &d, NULL);
		assert_non_null(data);
		const double start = chi_clock_now();
		while (way < 2 && delivered(d) != 2048 && chi_clock_now() - start < 60)
			usleep(1000);
		assert_true(way == 2 || delivered(d) == 2048);
		if (way == 1) { // while it is read, or before
			assert_int_equal(choir_distributed_dataset_restore(data, &middle), CHOIR_OK);
			assert_int_equal(choir_distributed_dataset_restore(plain, &middle), CHOIR_OK);
		}
		if (way == 2)
			rewind_both(data, plain);
		assert_false(read_both(data, plain, 2));
		assert_int_equal(choir_distributed_dataset_save(data, &middle), CHOIR_OK);
		assert_true(read_both(data, plain, 7));
		rewind_both(data, plain);
		assert_true(read_both(data, plain, 7));
	}
	int calls = 0; // the program's functions are called when it asks
	data = open_now(s, &d, &calls);
	assert_non_null(data);
	usleep(10000);
	assert_int_equal(calls, 0);
	assert_non_null(open_now(s, &d, NULL)); // and nothing is taken of it
	choir_strategy_free(s);
}

TEST_GROUP(write_file, scratch_leave)
