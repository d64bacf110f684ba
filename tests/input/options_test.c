// Whole batches for each replica, datasets from a function, options and their combinations.
#include "input/worker.h"

#include "input/input.h"
#include "value/value.h"
#include "test.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// spec: B27
TEST(batches_may_be_of_one_replica)
{
	choir_strategy *s = worker_strategy(2);
	static reading l;
	choir_distributed_dataset *data =
			choir_strategy_distribute_dataset(s, choir_dataset_batch(worker_numbers(11), 4),
					CHOIR_OPTIONS(choir_input_options, .per_replica_batches = true));
	assert_int_equal(choir_distributed_dataset_cardinality(data), 2);
	read_steps(data, 2, &l);
	assert_int_equal(l.steps, 2);
	assert_rows(&l, 0, ROWS(4, 4));
	assert_rows(&l, 1, ROWS(3, 0)); // a replica without a batch
	assert_int_equal(l.number[0][1][0], 4);
	choir_strategy_free(s);
}

typedef struct {
	int calls;
	choir_input_context context[MAX_REPLICAS];
	int fail;
} maker;

static choir_dataset *with_another_name(const choir_input_context *c, void *user)
{
	(void) user;
	return choir_dataset_batch(
			choir_range_dataset_new(c->input_pipeline == 1 ? "count" : "number", 0, 4, 1), 2);
}

static choir_dataset *make(const choir_input_context *c, void *user)
{
	maker *m = user;
	int64_t batch;
	m->context[m->calls++] = *c;
	if (m->fail == 1)
		return NULL;
	if (m->fail == 2)
		return worker_numbers(4);
	if (choir_input_context_per_replica_batch(c, 12, &batch) != CHOIR_OK)
		return NULL;
	return choir_dataset_batch(
			choir_dataset_skip(worker_numbers(10 + c->input_pipeline), 5), batch);
}

static choir_dataset *make_own_part(const choir_input_context *c, void *user)
{
	int64_t batch;
	(void) user;
	if (choir_input_context_per_replica_batch(c, 12, &batch) != CHOIR_OK)
		return NULL;
	return choir_dataset_batch(
			choir_dataset_shard(worker_numbers(13), c->input_pipelines, c->input_pipeline), batch);
}

// Sharding in the function, and batches of a replica's size.
// spec: B21, B22
TEST(a_function_shards_by_its_context)
{
	choir_strategy *s = worker_strategy(2);
	static reading l;
	read_steps(choir_strategy_distribute_datasets_from_function(s, make_own_part, NULL,
					   CHOIR_OPTIONS(choir_input_options, .workers = 3, .worker = 1)),
			2, &l);
	assert_int_equal(l.steps, 1);
	assert_rows(&l, 0, ROWS(2, 2)); // 12 over 6 replicas
	for (int i = 0; i < 4; i++)
		assert_int_equal(l.number[0][i / 2][i % 2], 1 + 3 * i);
	choir_strategy_free(s);
}

// spec: B20, B21, B22, B28, E28, E29, 2.19
TEST(a_function_makes_each_workers_dataset)
{
	choir_strategy *s = worker_strategy(2);
	static reading l;
	maker m = { .calls = 0 };
	choir_distributed_dataset *data = choir_strategy_distribute_datasets_from_function(
			s, make, &m, CHOIR_OPTIONS(choir_input_options, .workers = 3, .worker = 1));
	assert_int_equal(m.calls, 1);
	assert_int_equal(m.context[0].input_pipelines, 3);
	assert_int_equal(m.context[0].input_pipeline, 1);
	assert_int_equal(m.context[0].replicas_in_sync, 6);
	read_steps(data, 2, &l); // 5 .. 10 in batches of 2, two of them a step
	assert_int_equal(l.steps, 2);
	assert_rows(&l, 0, ROWS(2, 2));
	assert_rows(&l, 1, ROWS(2, 0));
	assert_int_equal(l.number[0][1][0], 7);
	assert_int_equal(choir_distributed_dataset_rewind(data), CHOIR_OK); // initialize
	read_steps(data, 2, &l);
	assert_int_equal(l.steps, 2);
	m.fail = 1;
	assert_null(choir_strategy_distribute_datasets_from_function(s, make, &m, NULL));
	assert_input_failed(CHOIR_INVALID, "distribute_datasets_from_function:*pipeline 0*1");
	m.fail = 2;
	assert_null(choir_strategy_distribute_datasets_from_function(s, make, &m, NULL));
	assert_input_failed(CHOIR_INVALID, "single examples*batch");
	assert_null(choir_strategy_distribute_datasets_from_function(s, NULL, &m, NULL));
	assert_input_failed(CHOIR_INVALID, "NULL");
	assert_null(choir_strategy_distribute_datasets_from_function(
			s, make, &m, CHOIR_OPTIONS(choir_input_options, .global_batch = 4)));
	assert_input_failed(CHOIR_INVALID, "replica");
	choir_input_context c = { .size = sizeof c, .replicas_in_sync = 4 };
	int64_t batch;
	assert_int_equal(choir_input_context_per_replica_batch(&c, 10, &batch), CHOIR_INVALID);
	assert_input_failed(CHOIR_INVALID, "10*4 replicas");
	assert_int_equal(choir_input_context_per_replica_batch(&c, 12, &batch), CHOIR_OK);
	assert_int_equal(batch, 3);
	choir_strategy_free(s);
}

// spec: D4
TEST(under_per_replica_each_replica_has_a_dataset)
{
	choir_strategy *s = worker_strategy(2);
	static reading l;
	maker m = { .calls = 0 };
	const choir_input_options o = { .size = sizeof o,
		.replication = CHOIR_REPLICATION_PER_REPLICA };
	choir_distributed_dataset *data =
			choir_strategy_distribute_datasets_from_function(s, make, &m, &o);
	assert_int_equal(m.calls, 2);
	assert_null(choir_strategy_distribute_datasets_from_function(s, with_another_name, NULL, &o));
	assert_input_failed(CHOIR_INVALID, "1's*0's*column 0*\"count\"*i64*[]*\"number\"");
	assert_int_equal(m.context[1].input_pipelines, 2);
	assert_int_equal(m.context[1].input_pipeline, 1);
	read_steps(data, 2, &l); // 5 and 6 examples, in batches of 6
	assert_int_equal(l.steps, 1);
	assert_rows(&l, 0, ROWS(5, 6));
	assert_int_equal(l.number[0][1][0], 5);
	// The option was that call's alone.
	read_steps(
			choir_strategy_distribute_dataset(s, choir_dataset_batch(worker_numbers(4), 4), NULL),
			2, &l);
	assert_int_equal(l.steps, 1);
	choir_strategy_free(s);
}

static choir_dataset *make_unequal(const choir_input_context *c, void *user)
{
	(void) user;
	return choir_dataset_batch(worker_numbers(MAX), c->input_pipeline == 0 ? 40 : 2);
}

// The largest batch needs room, whichever replica has it.
TEST(replicas_datasets_may_have_batches_of_their_own)
{
	choir_strategy *s = worker_strategy(2);
	static reading l;
	read_steps(choir_strategy_distribute_datasets_from_function(s, make_unequal, NULL,
					   CHOIR_OPTIONS(
							   choir_input_options, .replication = CHOIR_REPLICATION_PER_REPLICA)),
			2, &l);
	assert_int_equal(l.steps, MAX / 2);
	assert_rows(&l, 0, ROWS(40, 2));
	assert_rows(&l, 1, ROWS(MAX - 40, 2));
	assert_rows(&l, 2, ROWS(0, 2));
	assert_int_equal(l.number[0][0][39], 39);
	assert_int_equal(l.number[1][1][1], 3);
	choir_strategy_free(s);
}

// spec: D4, E32, E33, 2.19
TEST(combinations_of_options_that_cannot_be)
{
	choir_strategy *s = worker_strategy(2), *one = choir_one_device_strategy_new(NULL);
	maker m = { .calls = 0 };
	choir_input_options o = { .size = sizeof o, .place_on_device = true };
	assert_null(choir_strategy_distribute_datasets_from_function(s, make, &m, &o));
	assert_input_failed(CHOIR_INVALID, "place_on_device*PER_REPLICA");
	o.replication = CHOIR_REPLICATION_PER_REPLICA;
	assert_null(choir_strategy_distribute_datasets_from_function(s, make, &m, &o));
	assert_input_failed(CHOIR_INVALID, "place_on_device*CHOIR_FETCH_TO_HOST");
	o.fetch = CHOIR_FETCH_TO_HOST;
	assert_null(choir_strategy_distribute_datasets_from_function(s, make, &m, &o));
	assert_input_failed(CHOIR_UNSUPPORTED, "datasets");
	o.place_on_device = false;
	assert_null(
			choir_strategy_distribute_dataset(s, choir_dataset_batch(worker_numbers(4), 2), &o));
	assert_input_failed(CHOIR_UNSUPPORTED, "PER_REPLICA");
	assert_null(choir_strategy_distribute_datasets_from_function(one, make, &m, &o));
	assert_input_failed(CHOIR_UNSUPPORTED, "PER_REPLICA");
	o = (choir_input_options){ .size = sizeof o, .read_ahead_steps = -2 };
	assert_null(
			choir_strategy_distribute_dataset(s, choir_dataset_batch(worker_numbers(4), 2), &o));
	assert_input_failed(CHOIR_INVALID, "read_ahead_steps is -2");
	o = (choir_input_options){ .size = sizeof o, .read_ahead = CHOIR_OFF, .read_ahead_steps = 3 };
	assert_null(
			choir_strategy_distribute_dataset(s, choir_dataset_batch(worker_numbers(4), 2), &o));
	assert_input_failed(CHOIR_INVALID, "read_ahead_steps is 3*CHOIR_OFF");
	o = (choir_input_options){ .size = sizeof o, .read_ahead = (choir_toggle) 7 };
	assert_null(
			choir_strategy_distribute_dataset(s, choir_dataset_batch(worker_numbers(4), 2), &o));
	assert_input_failed(CHOIR_INVALID, "read_ahead*7*CHOIR_OFF");
	o = (choir_input_options){ .size = sizeof o, .workers = -1 };
	assert_null(
			choir_strategy_distribute_dataset(s, choir_dataset_batch(worker_numbers(4), 2), &o));
	assert_input_failed(CHOIR_INVALID, "-1 workers");
	o = (choir_input_options){ .size = sizeof o, .auto_shard = (choir_auto_shard) 9 };
	assert_null(
			choir_strategy_distribute_dataset(s, choir_dataset_batch(worker_numbers(4), 2), &o));
	assert_input_failed(CHOIR_INVALID, "DATA*OFF*AUTO*FILE*HINT*0*4");
	o = (choir_input_options){ .size = sizeof o, .replication = (choir_replication) 7 };
	assert_null(choir_strategy_distribute_datasets_from_function(s, make, &m, &o));
	assert_input_failed(CHOIR_INVALID, "7*PER_WORKER*PER_REPLICA*0*1");
	assert_int_equal(m.calls, 0);
	choir_strategy_free(one);
	choir_strategy_free(s);
}

static choir_status count_calls(int64_t position, void *const out[], void *user)
{
	++*(int64_t *) user;
	memcpy(out[0], &position, sizeof position);
	return position == 100 ? CHOIR_END : CHOIR_OK;
}

// spec: D4, 2.11
TEST(without_a_buffer_only_what_a_step_needs_is_read)
{
	const choir_column column = { "number", CHOIR_I64, CHOIR_SCALAR, NULL };
	choir_strategy *s = worker_strategy(2);
	int64_t calls = 0;
	choir_dataset *d = choir_generator_dataset_new(1, &column, count_calls, &calls);
	choir_distributed_dataset *data =
			choir_strategy_distribute_dataset(s, choir_dataset_batch(d, 6),
					CHOIR_OPTIONS(choir_input_options, .read_ahead = CHOIR_OFF));
	choir_values *batch = NULL;
	assert_int_equal(calls, 0);
	assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_OK);
	assert_int_equal(calls, 6);
	static reading l, ahead;
	read_steps(data, 2, &l);
	d = choir_generator_dataset_new(1, &column, count_calls, &calls);
	data = choir_strategy_distribute_dataset(s, choir_dataset_batch(d, 6),
			CHOIR_OPTIONS(choir_input_options, .read_ahead_steps = 3));
	assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_OK);
	read_steps(data, 2, &ahead);
	assert_memory_equal(&l, &ahead, sizeof l); // it changes nothing that comes out
	choir_values_free(batch);
	choir_strategy_free(s);
}

// ---- Reading ahead.

typedef struct {
	int64_t calls, fail_at;
	pthread_t caller;
	bool elsewhere; // it was called on another thread
} counted;

static choir_status count_and_fail(int64_t position, void *const out[], void *user)
{
	counted *c = user;
	c->calls++;
	c->elsewhere = c->elsewhere || !pthread_equal(c->caller, pthread_self());
	if (position == c->fail_at)
		return choir_fail(CHOIR_IO, "example %d is lost", (int) position);
	memcpy(out[0], &position, sizeof position);
	return position == 40 ? CHOIR_END : CHOIR_OK;
}

static choir_distributed_dataset *counting(choir_strategy *s, counted *c, int buffer)
{
	const choir_column column = { "number", CHOIR_I64, CHOIR_SCALAR, NULL };
	c->caller = pthread_self();
	return choir_strategy_distribute_dataset(s,
			choir_dataset_batch(choir_generator_dataset_new(1, &column, count_and_fail, c), 4),
			CHOIR_OPTIONS(choir_input_options,
					.read_ahead = buffer < 0 ? CHOIR_OFF : CHOIR_DEFAULT,
					.read_ahead_steps = buffer < 0 ? 0 : buffer));
}

// The numbers of a step, and its rows, are as they are without.
static void assert_same_steps(choir_distributed_dataset *data, choir_distributed_dataset *plain)
{
	static reading l, expected;
	read_steps(data, 2, &l);
	read_steps(plain, 2, &expected);
	assert_memory_equal(&l, &expected, sizeof l);
}

// spec: D4, 2.11
TEST(what_is_read_ahead_changes_nothing)
{
	choir_strategy *s = worker_strategy(2);
	counted c = { .fail_at = -1 }, p = { .fail_at = -1 };
	for (int buffer = 1; buffer < 5; buffer++)
		for (int at = 0; at < 12; at += 3) {
			const int64_t calls = c.calls;
			choir_distributed_dataset *data = counting(s, &c, buffer);
			assert_int_equal(c.calls, calls); // nothing before it is asked for
			choir_distributed_dataset *plain = counting(s, &p, -1);
			choir_input_position here = { .size = sizeof here }, there = here;
			choir_values *batch = NULL;
			for (int i = 0; i < at; i++) {
				choir_status status = choir_distributed_dataset_next(data, &batch);
				assert_int_equal(status, choir_distributed_dataset_next(plain, &batch));
			}
			// What was read ahead does not count, and is not lost by a save.
			assert_int_equal(choir_distributed_dataset_save(data, &here), CHOIR_OK);
			assert_int_equal(choir_distributed_dataset_save(plain, &there), CHOIR_OK);
			assert_memory_equal(&here, &there, sizeof here);
			assert_same_steps(data, plain);
			// Back in the middle of what was read ahead, and to the beginning.
			assert_int_equal(choir_distributed_dataset_restore(data, &here), CHOIR_OK);
			assert_int_equal(choir_distributed_dataset_restore(plain, &here), CHOIR_OK);
			assert_int_equal(choir_distributed_dataset_next(data, &batch),
					choir_distributed_dataset_next(plain, &batch));
			assert_int_equal(choir_distributed_dataset_rewind(data), CHOIR_OK);
			assert_int_equal(choir_distributed_dataset_rewind(plain), CHOIR_OK);
			assert_same_steps(data, plain);
			choir_values_free(batch);
		}
	assert_true(c.elsewhere);
	assert_false(p.elsewhere);
	choir_strategy_free(s);
}

// A failure comes behind what was read before it, with its text, and stays.
TEST(a_failure_ahead_comes_in_its_turn)
{
	choir_strategy *s = worker_strategy(2);
	for (int buffer = 1; buffer < 4; buffer++) {
		counted c = { .fail_at = 17 };
		static reading l;
		choir_distributed_dataset *data = counting(s, &c, buffer);
		read_steps(data, 2, &l);
		assert_int_equal(l.steps, 4);
		assert_int_equal(l.status, CHOIR_IO);
		assert_input_failed(CHOIR_IO, "example 17");
		c.fail_at = -1;
		assert_int_equal(choir_distributed_dataset_rewind(data), CHOIR_OK);
		read_steps(data, 2, &l);
		assert_int_equal(l.steps, 10);
		assert_int_equal(l.status, CHOIR_END);
	}
	choir_strategy_free(s);
}

// Tensors that a program holds are its own, however far is read meanwhile.
TEST(batches_that_are_held_stay)
{
	choir_strategy *s = worker_strategy(2);
	counted c = { .fail_at = -1 };
	choir_distributed_dataset *data = counting(s, &c, 2);
	choir_values *held[10] = { NULL };
	for (int k = 0; k < 10; k++)
		assert_int_equal(choir_distributed_dataset_next(data, &held[k]), CHOIR_OK);
	assert_int_equal(choir_distributed_dataset_rewind(data), CHOIR_OK);
	for (int64_t k = 0; k < 10; k++) {
		choir_tensor *t = choir_value_local(choir_values_find(held[k], "number"), 1);
		assert_int_equal(((const int64_t *) choir_tensor_data(t))[1], 4 * k + 3);
		choir_values_free(held[k]);
	}
	// Freed while it reads.
	choir_values *batch = NULL;
	assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_OK);
	choir_values_free(batch);
	choir_strategy_free(s);
}

// Without being asked, files are read ahead, and functions of the program are not called so.
// spec: D4, 2.11
TEST(files_are_read_ahead)
{
	choir_strategy *s = worker_strategy(2);
	char path[] = "/tmp/choir-options-XXXXXX";
	static reading l;
	const int64_t numbers[6] = { 5, 6, 7, 8, 9, 10 };
	const choir_field field = { .name = "number", .dtype = CHOIR_I64 };
	const int file = mkstemp(path);
	assert_int_equal(write(file, numbers, sizeof numbers), sizeof numbers);
	assert_int_equal(close(file), 0);
	for (int none = 0; none < 2; none++) {
		choir_dataset *d = choir_dataset_batch(
				choir_fixed_length_record_dataset_new(path, 1, &field, NULL), 2);
		choir_distributed_dataset *data = choir_strategy_distribute_dataset(s, d,
				CHOIR_OPTIONS(
						choir_input_options, .read_ahead = none ? CHOIR_OFF : CHOIR_DEFAULT));
		assert_int_equal(data->read_ahead == NULL, none);
		read_steps(data, 2, &l);
		assert_int_equal(l.steps, 3);
		assert_int_equal(l.number[2][1][0], 10);
	}
	unlink(path);
	counted c = { .fail_at = -1 };
	read_steps(counting(s, &c, 0), 2, &l);
	assert_false(c.elsewhere);
	assert_null(
			choir_strategy_distribute_dataset(s, choir_dataset_batch(worker_numbers(4), 2), NULL)
					->read_ahead);
	const choir_input_options on = { .size = sizeof on, .read_ahead = CHOIR_ON };
	assert_non_null(
			choir_strategy_distribute_dataset(s, choir_dataset_batch(worker_numbers(4), 2), &on)
					->read_ahead);
	choir_strategy_free(s);
}

// spec: D4
TEST(rows_are_brought_to_their_devices)
{
	choir_strategy *s = choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .replicas = 2, .devices = "far:0,far:1"));
	assert_non_null(s);
	for (int fetch = 0; fetch < 2; fetch++) {
		choir_distributed_dataset *data =
				choir_strategy_distribute_dataset(s, choir_dataset_batch(worker_numbers(4), 4),
						CHOIR_OPTIONS(choir_input_options, .fetch = (choir_fetch) fetch));
		choir_values *batch = NULL;
		assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_OK);
		choir_value *v = choir_values_find(batch, "number");
		assert_string_equal(choir_device_name(choir_tensor_device(v->component[1])),
				fetch ? "cpu:0" : "far:1");
		choir_tensor *t = choir_value_local(v, 1);
		int64_t own[2];
		assert_int_equal(choir_tensor_to_host(t, own, sizeof own), CHOIR_OK);
		assert_int_equal(own[1], 3);
		choir_values_free(batch);
	}
	choir_strategy_free(s);
}
