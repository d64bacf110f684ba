// Distributed datasets: who gets which examples, at the borders of batches and at the end;
// refilling without allocation; failures of the dataset.
#include "choir/input.h"
#include "choir/source.h"

#include "data/elements.h"
#include "data/varying.h"
#include "input/dealt.h"

#include "base/alloc.h"
#include "base/status.h"
#include "strategy/strategy.h"
#include "tensor/buffer_pool.h"
#include "test.h"

#include <string.h>

// The next batch has these rows for each replica, counting on from *next.
static void assert_batch(choir_distributed_dataset *data, choir_values **batch, int64_t *next,
		int n, const int64_t rows[])
{
	assert_int_equal(choir_distributed_dataset_next(data, batch), CHOIR_OK);
	choir_value *v = choir_values_find(*batch, "number");
	assert_int_equal(choir_value_kind_of(v), CHOIR_VALUE_PER_REPLICA);
	assert_int_equal(choir_value_local_count(v), n);
	for (int i = 0; i < n; i++) {
		choir_tensor *t = choir_value_local(v, i);
		assert_int_equal(choir_tensor_shape(t)->rank, 1);
		assert_int_equal(choir_tensor_shape(t)->dim[0], rows[i]);
		const int64_t *number = choir_tensor_data(t);
		for (int64_t k = 0; k < rows[i]; k++)
			assert_int_equal(number[k], (*next)++);
	}
}

#define ROWS(...) \
	(int) (sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (int64_t[]) \
	{ \
		__VA_ARGS__ \
	}

// spec: B14, C3, V5, 2.11
TEST(six_items_in_a_batch_of_eight_are_four_and_two)
{
	choir_strategy *s = mirrored(2, NULL);
	choir_distributed_dataset *data = dealt(s, choir_dataset_batch(counting(6), 8), 0);
	choir_values *batch = NULL;
	for (int again = 0; again < 2; again++) {
		int64_t next = 0;
		assert_batch(data, &batch, &next, ROWS(4, 2));
		assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_END);
		assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_END);
		assert_null(choir_values_find(batch, "number"));
		assert_int_equal(choir_distributed_dataset_rewind(data), CHOIR_OK);
	}
	choir_values_free(batch);
	choir_strategy_free(s);
}

static int owned(const choir_strategy *s)
{
	int n = 0;
	for (const chi_stateful *o = s->stateful; o != NULL; o = o->next)
		n++;
	return n;
}

// In any order, in the middle of a pass, and with a thread that reads ahead.
TEST(a_freed_dataset_leaves_the_others)
{
	choir_distributed_dataset_free(NULL);
	for (int freed = 0; freed < 3; freed++) {
		choir_strategy *s = mirrored(2, NULL);
		choir_distributed_dataset *data[3];
		choir_values *batch[3] = { NULL, NULL, NULL };
		int64_t next[3] = { 0, 0, 0 };
		for (int i = 0; i < 3; i++) {
			data[i] = choir_strategy_distribute_dataset(s, choir_dataset_batch(counting(13), 5),
					CHOIR_OPTIONS(
							choir_input_options, .read_ahead = i == 1 ? CHOIR_ON : CHOIR_OFF));
			assert_non_null(data[i]);
			assert_batch(data[i], &batch[i], &next[i], ROWS(3, 2));
		}
		assert_int_equal(owned(s), 3);
		choir_distributed_dataset_free(data[freed]);
		choir_values_free(batch[freed]);
		assert_int_equal(owned(s), 2);
		for (int i = 0; i < 3; i++)
			if (i != freed) {
				assert_batch(data[i], &batch[i], &next[i], ROWS(3, 2));
				choir_values_free(batch[i]);
			}
		choir_strategy_free(s);
	}
}

// The numbers of a whole pass, in the order of the replicas; and rewinds.
static void read_numbers(choir_distributed_dataset *data, int64_t n, int64_t number[])
{
	choir_values *batch = NULL;
	int64_t seen = 0;
	while (choir_distributed_dataset_next(data, &batch) == CHOIR_OK)
		for (int r = 0; r < 2; r++) {
			choir_tensor *t = choir_value_local(choir_values_find(batch, "number"), r);
			const int64_t rows = choir_tensor_shape(t)->dim[0];
			assert_in_range(rows, 1, n - seen);
			memcpy(number + seen, choir_tensor_data(t), (size_t) rows * sizeof number[0]);
			seen += rows;
		}
	assert_int_equal(seen, n);
	choir_values_free(batch);
	assert_int_equal(choir_distributed_dataset_rewind(data), CHOIR_OK);
}

// Pass by pass, shuffle deals in another order, and shuffle_once in one, also when it is read
// ahead.
// spec: D30
TEST(passes_are_shuffled_anew_or_once)
{
	choir_strategy *s = mirrored(2, NULL);
	for (int once = 0; once < 2; once++)
		for (int ahead = 0; ahead < 2; ahead++) {
			int64_t number[3][40];
			choir_dataset *d = once ? choir_dataset_shuffle_once(counting(40), 40, 5)
									: choir_dataset_shuffle(counting(40), 40, 5);
			choir_distributed_dataset *data = choir_strategy_distribute_dataset(s,
					choir_dataset_batch(d, 8),
					CHOIR_OPTIONS(choir_input_options, .read_ahead = ahead ? CHOIR_ON : CHOIR_OFF,
							.read_ahead_steps = ahead ? 3 : 0));
			for (int i = 0; i < 3; i++)
				read_numbers(data, 40, number[i]);
			for (int i = 0; i < 3; i++)
				for (int j = 0; j < i; j++)
					assert_int_equal(memcmp(number[i], number[j], sizeof number[0]) == 0, once);
		}
	choir_strategy_free(s);
}

// spec: B14, 2.11
TEST(sizes_differ_by_one_and_the_first_are_larger)
{
	choir_strategy *s = mirrored(4, NULL);
	choir_distributed_dataset *data = dealt(s, choir_dataset_batch(counting(23), 10), 0);
	choir_values *batch = NULL;
	int64_t next = 0;
	assert_batch(data, &batch, &next, ROWS(3, 3, 2, 2));
	assert_batch(data, &batch, &next, ROWS(3, 3, 2, 2));
	assert_batch(data, &batch, &next, ROWS(3, 0, 0, 0));
	assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_END);
	choir_values_free(batch);
	choir_strategy_free(s);
}

// spec: D5, D7, E42, 2.11
TEST(fewer_examples_than_replicas_leave_some_empty)
{
	choir_strategy *s = mirrored(5, "cpu:0,cpu:1");
	choir_distributed_dataset *data = dealt(s, choir_dataset_batch(counting(7), 3), 0);
	choir_values *batch = NULL;
	int64_t next = 0;
	assert_batch(data, &batch, &next, ROWS(1, 1, 1, 0, 0));
	assert_batch(data, &batch, &next, ROWS(1, 1, 1, 0, 0));
	assert_batch(data, &batch, &next, ROWS(1, 0, 0, 0, 0));
	assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_END);
	choir_values_free(batch);
	choir_strategy_free(s);
}

TEST(another_global_batch_cuts_the_stream_anew)
{
	static const int64_t own[] = { 1, 2, 3, 5, 7, 12, 30 };
	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
		choir_strategy *s = mirrored(2, NULL);
		choir_distributed_dataset *data = dealt(s, choir_dataset_batch(counting(13), own[i]), 5);
		choir_values *batch = NULL;
		for (int again = 0; again < 2; again++) {
			int64_t next = 0;
			assert_batch(data, &batch, &next, ROWS(3, 2));
			assert_batch(data, &batch, &next, ROWS(3, 2));
			assert_batch(data, &batch, &next, ROWS(3, 0));
			assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_END);
			assert_int_equal(choir_distributed_dataset_rewind(data), CHOIR_OK);
		}
		choir_values_free(batch);
		choir_strategy_free(s);
	}
}

// spec: B13, B33, C3
TEST(a_rewind_drops_what_was_read_ahead)
{
	choir_strategy *s = mirrored(2, NULL);
	choir_distributed_dataset *data = dealt(s, choir_dataset_batch(counting(20), 7), 4);
	choir_values *batch = NULL;
	int64_t next = 0;
	assert_batch(data, &batch, &next, ROWS(2, 2));
	assert_int_equal(choir_distributed_dataset_rewind(data), CHOIR_OK);
	next = 0;
	assert_batch(data, &batch, &next, ROWS(2, 2));
	assert_batch(data, &batch, &next, ROWS(2, 2));
	choir_values_free(batch);
	choir_strategy_free(s);
}

// repeat after batch: 3, 3, 1, 3, 3, 1 examples.
static choir_dataset *twice(void)
{
	return choir_dataset_repeat(choir_dataset_batch(counting(7), 3), 2);
}

// spec: 2.11
TEST(a_short_batch_in_the_middle_is_joined_to_the_next)
{
	choir_strategy *s = mirrored(2, NULL);
	choir_distributed_dataset *data = dealt(s, twice(), 0);
	choir_values *batch = NULL;
	static const int64_t rows[][2] = { { 2, 1 }, { 2, 1 }, { 2, 1 }, { 2, 1 }, { 2, 0 } };
	int64_t seen = 0;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_OK);
		choir_value *v = choir_values_find(batch, "number");
		for (int r = 0; r < 2; r++) {
			choir_tensor *t = choir_value_local(v, r);
			assert_int_equal(choir_tensor_shape(t)->dim[0], rows[i][r]);
			for (int64_t k = 0; k < rows[i][r]; k++)
				assert_int_equal(((const int64_t *) choir_tensor_data(t))[k], seen++ % 7);
		}
	}
	assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_END);
	choir_values_free(batch);
	choir_strategy_free(s);
}

// spec: B19, 2.11
TEST(one_replica_gets_batches_as_they_come)
{
	choir_strategy *s = mirrored(1, NULL);
	choir_distributed_dataset *data = dealt(s, twice(), 0);
	choir_values *batch = NULL;
	static const int64_t rows[] = { 3, 3, 1, 3, 3, 1 };
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_OK);
		choir_tensor *t = choir_value_local(choir_values_find(batch, "number"), 0);
		assert_int_equal(choir_tensor_shape(t)->dim[0], rows[i]);
	}
	assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_END);
	choir_values_free(batch);
	choir_strategy_free(s);
}

// spec: 2.11
TEST(single_examples_take_the_global_batch)
{
	choir_strategy *s = mirrored(2, NULL);
	choir_distributed_dataset *data = dealt(s, counting(5), 3);
	choir_values *batch = NULL;
	int64_t next = 0;
	assert_batch(data, &batch, &next, ROWS(2, 1));
	assert_batch(data, &batch, &next, ROWS(2, 0));
	assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_END);
	choir_values_free(batch);
	choir_strategy_free(s);
}

// Replicas without examples have the other dimensions all the same.
// spec: D7, 2.11
TEST(columns_keep_their_examples_together)
{
	static const float pairs[5][2] = { { 0, 1 }, { 2, 3 }, { 4, 5 }, { 6, 7 }, { 8, 9 } };
	const choir_column columns[] = {
		{ "pair", CHOIR_F32, CHOIR_SHAPE(2), pairs },
		{ "number", CHOIR_I64, CHOIR_SCALAR, numbers },
	};
	choir_strategy *s = mirrored(2, NULL);
	choir_dataset *d = choir_dataset_batch(choir_memory_dataset_new(5, 2, columns, false), 2);
	choir_distributed_dataset *data = dealt(s, d, 4);
	choir_values *batch = NULL;
	int64_t next = 0;
	while (choir_distributed_dataset_next(data, &batch) == CHOIR_OK)
		for (int i = 0; i < 2; i++) {
			choir_tensor *p = choir_value_local(choir_values_find(batch, "pair"), i);
			choir_tensor *n = choir_value_local(choir_values_find(batch, "number"), i);
			const int64_t rows = choir_tensor_shape(n)->dim[0];
			assert_int_equal(choir_tensor_shape(p)->rank, 2);
			assert_int_equal(choir_tensor_shape(p)->dim[0], rows);
			assert_int_equal(choir_tensor_shape(p)->dim[1], 2);
			for (int64_t k = 0; k < rows; k++, next++) {
				assert_int_equal(((const int64_t *) choir_tensor_data(n))[k], next);
				assert_memory_equal((const float *) choir_tensor_data(p) + 2 * k, pairs[next],
						sizeof pairs[0]);
			}
		}
	assert_int_equal(next, 5);
	choir_values_free(batch);
	choir_strategy_free(s);
}

// A dimension that differs from batch to batch is the same for all pieces of one, also for those
// without examples; batches that were made alike apart from each other cannot be joined.
// spec: D7, 2.11
TEST(shapes_may_differ_between_batches_only)
{
	choir_strategy *s = mirrored(3, NULL);
	choir_distributed_dataset *data =
			dealt(s, choir_dataset_padded_batch(words_new(10), 4, NULL), 0);
	assert_int_equal(choir_distributed_dataset_column(data, 0)->shape.dim[1], CHOIR_NONE);
	choir_values *batch = NULL;
	for (int64_t first = 0; first < 10; first += 4) {
		static const int64_t rows[][3] = { { 2, 1, 1 }, { 2, 0, 0 } };
		int64_t longest = 0;
		for (int64_t i = first; i < 10 && i < first + 4; i++)
			longest = word_length(i) > longest ? word_length(i) : longest;
		assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_OK);
		for (int r = 0; r < 3; r++) {
			choir_tensor *t = choir_value_local(choir_values_find(batch, "word"), r);
			assert_int_equal(choir_tensor_shape(t)->dim[0], rows[first == 8][r]);
			assert_int_equal(choir_tensor_shape(t)->dim[1], longest);
		}
	}
	assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_END);
	data = dealt(s, choir_dataset_padded_batch(words_new(10), 1, NULL), 10);
	assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_INVALID);
	assert_failed(CHOIR_INVALID, "distributed dataset: column \"word\":*replica 0*[0]*[2]");
	assert_null(choir_values_find(batch, "word"));
	choir_values_free(batch);
	choir_strategy_free(s);
}

// What one replica gets of a step: a batch as wide as its longest word.
static void check_own_width(choir_values *batch, int replica, int64_t first, int64_t rows)
{
	choir_tensor *t = choir_value_local(choir_values_find(batch, "word"), replica);
	assert_int_equal(choir_tensor_shape(t)->dim[0], rows);
	int64_t width = 0;
	for (int64_t i = first; i < first + rows; i++)
		width = word_length(i) > width ? word_length(i) : width;
	if (rows > 0)
		assert_int_equal(choir_tensor_shape(t)->dim[1], width);
	for (int64_t i = 0; i < rows * width; i++) {
		const int64_t k = first + i / width, at = i % width;
		assert_int_equal(((const uint8_t *) choir_tensor_data(t))[i],
				at < word_length(k) ? (uint8_t) ('a' + k % 26) : 0);
	}
}

static choir_dataset *padded_pairs(const choir_input_context *c, void *user)
{
	(void) c, (void) user;
	return choir_dataset_padded_batch(words_new(11), 2, NULL);
}

// Each replica's batch is as wide as it was made, on one worker as on several, and read ahead or
// not.
// spec: D7
TEST(replicas_batches_may_differ_in_shape)
{
	for (int replicas = 2; replicas <= 4; replicas++)
		for (int way = 0; way < 4; way++) {
			choir_strategy *s = mirrored(replicas, NULL);
			const choir_input_options o = { .size = sizeof o,
				.per_replica_batches = way < 2,
				.read_ahead = way & 1 ? CHOIR_ON : CHOIR_OFF,
				.read_ahead_steps = way & 1 ? 2 : 0 };
			choir_distributed_dataset *data = way < 2
					? choir_strategy_distribute_dataset(s, padded_pairs(NULL, NULL), &o)
					: choir_strategy_distribute_datasets_from_function(s, padded_pairs, NULL, &o);
			assert_non_null(data);
			choir_values *batch = NULL;
			for (int64_t first = 0; first < 11;) {
				assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_OK);
				for (int r = 0; r < replicas; r++) {
					const int64_t left = 11 - first, rows = left < 2 ? left : 2;
					check_own_width(batch, r, first, rows);
					first += rows;
				}
			}
			assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_END);
			choir_values_free(batch);
			choir_strategy_free(s);
		}
}

typedef struct {
	int64_t here[8], all[8], sum[8];
} told;

static choir_status tell(choir_replica *r, void *user)
{
	told *t = user;
	const int id = choir_replica_id(r);
	t->here[id] = choir_replica_examples(r);
	t->all[id] = choir_replica_global_examples(r);
	choir_tensor *number = choir_replica_arg(r, "number");
	if (number == NULL)
		return choir_error_status();
	int64_t own[COUNTED];
	CHOIR_TRY(choir_tensor_to_host(number, own, (size_t) t->here[id] * sizeof own[0]));
	t->sum[id] = 0;
	for (int64_t k = 0; k < t->here[id]; k++)
		t->sum[id] += own[k];
	return CHOIR_OK;
}

// spec: A19, B25
TEST(every_replica_knows_the_true_count)
{
	static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1", "far:0,far:1" };
	for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
		choir_strategy *s = mirrored(3, devices[i]);
		choir_distributed_dataset *data = dealt(s, choir_dataset_batch(counting(10), 8), 0);
		choir_values *batch = NULL;
		told t = { .here = { 0 } };
		assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_OK);
		assert_int_equal(choir_strategy_run(s, tell, &t, batch, NULL), CHOIR_OK);
		const told first = { { 3, 3, 2 }, { 8, 8, 8 }, { 3, 12, 13 } };
		assert_memory_equal(&t, &first, sizeof t);
		assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_OK);
		assert_int_equal(choir_strategy_run(s, tell, &t, batch, NULL), CHOIR_OK);
		const told last = { { 2, 0, 0 }, { 2, 2, 2 }, { 17, 0, 0 } };
		assert_memory_equal(&t, &last, sizeof t);
		choir_values_free(batch);
		choir_strategy_free(s);
	}
}

TEST(reading_on_allocates_nothing)
{
	choir_strategy *s = mirrored(2, NULL);
	choir_dataset *d = choir_dataset_batch(choir_dataset_repeat(counting(40), CHOIR_FOREVER), 6);
	choir_distributed_dataset *data = dealt(s, d, 8);
	choir_values *batch = NULL;
	for (int i = 0; i < 20; i++)
		assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_OK);
	const uint64_t before = chi_alloc_count();
	for (int i = 0; i < 100; i++)
		assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_OK);
	assert_int_equal(chi_alloc_count(), before);
	choir_values_free(batch);
	choir_strategy_free(s);
}

static choir_status torn(int64_t position, void *const out[], void *user)
{
	const int64_t *fail_at = user;
	if (position == *fail_at)
		return choir_fail(CHOIR_IO, "torn");
	if (position == 20)
		return CHOIR_END;
	memcpy(out[0], &position, sizeof position);
	return CHOIR_OK;
}

TEST(a_failure_of_the_dataset_stays_until_the_rewind)
{
	const choir_column column = { "number", CHOIR_I64, CHOIR_SCALAR, NULL };
	int64_t fail_at = 5;
	choir_strategy *s = mirrored(2, NULL);
	choir_dataset *d = choir_generator_dataset_new(1, &column, torn, &fail_at);
	choir_distributed_dataset *data = dealt(s, choir_dataset_batch(d, 4), 0);
	choir_values *batch = NULL;
	int64_t next = 0;
	assert_batch(data, &batch, &next, ROWS(2, 2));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_IO);
		assert_failed(CHOIR_IO, "example 5:");
		assert_null(choir_values_find(batch, "number"));
	}
	fail_at = CHOIR_NONE;
	assert_int_equal(choir_distributed_dataset_rewind(data), CHOIR_OK);
	next = 0;
	assert_batch(data, &batch, &next, ROWS(2, 2));
	assert_batch(data, &batch, &next, ROWS(2, 2));
	choir_values_free(batch);
	choir_strategy_free(s);
}

// With a strategy of its own, whose end is that of all threads: none of an earlier call asks for
// memory any more. Of a function's examples, behind which no next pass is begun: what that asks
// for may fail, and nobody hears of it who does not ask for that pass.
static choir_status read_all(void *user)
{
	static int64_t nowhere = CHOIR_NONE;
	const choir_column column = { "number", CHOIR_I64, CHOIR_SCALAR, NULL };
	choir_values *batch = NULL;
	chi_buffer_trim();
	choir_strategy *s = choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .replicas = 2, .devices = "cpu:0"));
	choir_distributed_dataset *data = s == NULL
			? NULL
			: choir_strategy_distribute_dataset(s,
					  choir_dataset_batch(
							  choir_generator_dataset_new(1, &column, torn, &nowhere), 7),
					  CHOIR_OPTIONS(choir_input_options, .global_batch = 4,
							  .read_ahead = *(const int *) user > 0 ? CHOIR_ON : CHOIR_OFF,
							  .read_ahead_steps = *(const int *) user));
	choir_status status = data == NULL ? choir_error_status() : CHOIR_OK;
	while (status == CHOIR_OK)
		status = choir_distributed_dataset_next(data, &batch);
	choir_values_free(batch);
	choir_strategy_free(s);
	return status;
}

TEST(every_allocation_may_fail)
{
	int none = 0, two = 2;
	assert_every_allocation(read_all, &none);
	assert_every_allocation(read_all, &two);
}
