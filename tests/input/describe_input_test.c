// What can be asked of a distributed dataset: what a replica gets, how many batches there are, and
// who reads what.
#include "input/worker.h"

#include "input/input.h"
#include "value/value.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static bool all_of_them(const choir_component in[], void *user)
{
	(void) in;
	(void) user;
	return true;
}

// spec: D6
TEST(what_a_replica_gets_can_be_asked)
{
	choir_strategy *s = worker_strategy(2);
	choir_distributed_dataset *data =
			choir_strategy_distribute_dataset(s, choir_dataset_batch(worker_numbers(9), 4), NULL);
	assert_int_equal(choir_distributed_dataset_column(data, 0)->shape.rank, 1);
	assert_int_equal(choir_distributed_dataset_column(data, 0)->shape.dim[0], CHOIR_NONE);
	assert_int_equal(choir_distributed_dataset_cardinality(data), 3);
	assert_null(choir_distributed_dataset_column(data, 1));
	data = choir_strategy_distribute_dataset(
			s, choir_dataset_batch_drop_remainder(worker_numbers(9), 4), NULL);
	assert_int_equal(choir_distributed_dataset_column(data, 0)->shape.dim[0], 2);
	data = of_worker(s, choir_dataset_batch_drop_remainder(worker_numbers(9), 4), 2, 0,
			CHOIR_AUTO_SHARD_DATA, 0);
	assert_int_equal(choir_distributed_dataset_column(data, 0)->shape.dim[0], CHOIR_NONE);
	data = choir_strategy_distribute_dataset(s,
			choir_dataset_repeat(choir_dataset_batch(worker_numbers(9), 4), CHOIR_FOREVER), NULL);
	assert_int_equal(choir_distributed_dataset_cardinality(data), CHOIR_INFINITE_CARDINALITY);
	assert_int_equal(choir_distributed_dataset_column(data, 0)->shape.dim[0], 2);
	assert_null(choir_distributed_dataset_column(NULL, 0));
	assert_int_equal(choir_distributed_dataset_cardinality(NULL), 0);
	choir_strategy_free(s);
}

// How many batches a pass has, for each way in which elements are split: as many as are read, or
// not known.
TEST(the_number_of_batches_can_be_asked)
{
	static const struct {
		int replicas, workers;
		choir_auto_shard policy;
		bool per_replica, changed; // changed: nobody knows the global batch
		chi_rebatch split;
		int64_t batches; // of 20 examples in elements of 6
	} cases[] = {
		{ 1, 1, CHOIR_AUTO_SHARD_DATA, false, false, CHI_REBATCH_AS_THEY_COME, 4 },
		{ 3, 1, CHOIR_AUTO_SHARD_DATA, true, false, CHI_REBATCH_ELEMENTS, 2 },
		{ 3, 2, CHOIR_AUTO_SHARD_OFF, true, false, CHI_REBATCH_ELEMENTS, 2 },
		{ 3, 2, CHOIR_AUTO_SHARD_DATA, true, false, CHI_REBATCH_ELEMENTS_SHARED, 1 },
		{ 1, 3, CHOIR_AUTO_SHARD_DATA, true, false, CHI_REBATCH_ELEMENTS_SHARED, 2 },
		{ 2, 1, CHOIR_AUTO_SHARD_DATA, false, false, CHI_REBATCH_STREAM, 4 },
		{ 2, 2, CHOIR_AUTO_SHARD_OFF, false, false, CHI_REBATCH_STREAM, CHOIR_NONE },
		{ 2, 2, CHOIR_AUTO_SHARD_DATA, false, false, CHI_REBATCH_SHARED, 4 },
		{ 2, 1, CHOIR_AUTO_SHARD_DATA, false, true, CHI_REBATCH_UNKNOWN, 4 },
		{ 2, 2, CHOIR_AUTO_SHARD_OFF, false, true, CHI_REBATCH_UNKNOWN, CHOIR_NONE },
		{ 2, 2, CHOIR_AUTO_SHARD_DATA, false, true, CHI_REBATCH_UNKNOWN_SHARED, 4 },
	};
	static reading l;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (int w = 0; w < 2 * cases[i].workers; w++) { // the second time of unknown length
			choir_strategy *s = worker_strategy(cases[i].replicas);
			choir_dataset *d = worker_numbers(20);
			if (w >= cases[i].workers)
				d = choir_dataset_filter(d, all_of_them, NULL);
			d = choir_dataset_batch(d, 6);
			choir_distributed_dataset *data = choir_strategy_distribute_dataset(s,
					cases[i].changed ? choir_dataset_map(d, NULL, worker_same, NULL) : d,
					CHOIR_OPTIONS(choir_input_options, .workers = cases[i].workers,
							.worker = w % cases[i].workers, .auto_shard = cases[i].policy,
							.per_replica_batches = cases[i].per_replica));
			assert_non_null(data);
			assert_int_equal(data->rebatch, cases[i].split);
			assert_int_equal(choir_distributed_dataset_cardinality(data),
					w < cases[i].workers ? cases[i].batches : CHOIR_NONE);
			read_steps(data, cases[i].replicas, &l);
			assert_int_equal(l.status, CHOIR_END);
			if (cases[i].batches != CHOIR_NONE)
				assert_int_equal(l.steps, cases[i].batches);
			choir_strategy_free(s);
		}
}

TEST(who_reads_what_can_be_asked)
{
	choir_strategy *s = worker_strategy(2);
	char text[1024];
	choir_distributed_dataset *data = of_worker(
			s, choir_dataset_batch(worker_numbers(9), 7), 2, 1, CHOIR_AUTO_SHARD_DATA, 0);
	const size_t length = choir_distributed_dataset_describe(data, text, sizeof text);
	assert_string_equal(text,
			"worker 0 reads everything\n"
			"  replica 0: examples 0 to 1 of each global batch of 7\n"
			"  replica 1: examples 2 to 3 of each global batch of 7\n"
			"worker 1 reads everything (this worker)\n"
			"  replica 2: examples 4 to 5 of each global batch of 7\n"
			"  replica 3: examples 6 to 6 of each global batch of 7\n");
	assert_int_equal(length, strlen(text));
	assert_int_equal(choir_distributed_dataset_describe(data, text, 9), length);
	assert_string_equal(text, "worker 0");
	assert_int_equal(choir_distributed_dataset_describe(NULL, text, sizeof text), 0);
	assert_string_equal(text, "");
	choir_strategy_free(s);
}

static void assert_described(const choir_distributed_dataset *data, const char *expected)
{
	char text[2048];
	if (data == NULL)
		fail_msg("no dataset: %s", choir_error());
	choir_distributed_dataset_describe(data, text, sizeof text);
	assert_string_equal(text, expected);
}

// By turns: worker w's places in the cyclic list of sizes move on in each step.
// spec: 2.12
TEST(parts_of_workers_are_described)
{
	choir_strategy *one = worker_strategy(1), *two = worker_strategy(2);
	assert_described(of_worker(one, worker_numbers(9), 2, 1, CHOIR_AUTO_SHARD_OFF, 1),
			"worker 0 reads everything\n"
			"  replica 0: the next 1, 0 examples of its worker's, by turns\n"
			"worker 1 reads everything (this worker)\n"
			"  replica 1: the next 0, 1 examples of its worker's, by turns\n");
	assert_described(of_worker(two, worker_numbers(9), 2, 0, CHOIR_AUTO_SHARD_OFF, 8),
			"worker 0 reads everything (this worker)\n"
			"  replica 0: the next 2 examples of its worker's in each step\n"
			"  replica 1: the next 2 examples of its worker's in each step\n"
			"worker 1 reads everything\n"
			"  replica 2: the next 2 examples of its worker's in each step\n"
			"  replica 3: the next 2 examples of its worker's in each step\n");
	assert_described(of_worker(two, worker_numbers(9), 2, 0, CHOIR_AUTO_SHARD_OFF, 1),
			"worker 0 reads everything (this worker)\n"
			"  replica 0: the next 1, 0 examples of its worker's, by turns\n"
			"  replica 1: nothing: the global batch of 1 has too few examples\n"
			"worker 1 reads everything\n"
			"  replica 2: the next 0, 1 examples of its worker's, by turns\n"
			"  replica 3: nothing: the global batch of 1 has too few examples\n");
	choir_dataset *unknown = choir_dataset_padded_batch(worker_numbers(9), 3, NULL);
	unknown = choir_dataset_map(unknown, NULL, worker_same, NULL);
	assert_described(of_worker(two, unknown, 2, 0, CHOIR_AUTO_SHARD_OFF, 0),
			"worker 0 reads everything (this worker)\n"
			"  replica 0: pieces 0, 2 of the 4 that each batch is cut into, by turns\n"
			"  replica 1: pieces 1, 3 of the 4 that each batch is cut into, by turns\n"
			"worker 1 reads everything\n"
			"  replica 2: pieces 0, 2 of the 4 that each batch is cut into, by turns\n"
			"  replica 3: pieces 1, 3 of the 4 that each batch is cut into, by turns\n");
	unknown = choir_dataset_padded_batch(worker_numbers(9), 3, NULL);
	unknown = choir_dataset_map(unknown, NULL, worker_same, NULL);
	assert_described(of_worker(one, unknown, 2, 0, CHOIR_AUTO_SHARD_DATA, 0),
			"worker 0 reads everything (this worker)\n"
			"  replica 0: piece 0 of the 2 that each batch is cut into\n"
			"worker 1 reads everything\n"
			"  replica 1: piece 1 of the 2 that each batch is cut into\n");
	choir_dataset *hint =
			choir_dataset_shard(worker_numbers(9), CHOIR_SHARD_HINT, CHOIR_SHARD_HINT);
	assert_described(of_worker(one, hint, 2, 0, CHOIR_AUTO_SHARD_HINT, 2),
			"worker 0 reads its shard (this worker)\n"
			"  replica 0: the next 1 examples of its worker's in each step\n"
			"worker 1 reads its shard\n"
			"  replica 1: the next 1 examples of its worker's in each step\n");
	choir_strategy_free(one);
	choir_strategy_free(two);
}

static choir_dataset *threes(const choir_input_context *c, void *user)
{
	(void) c;
	(void) user;
	return choir_dataset_batch(worker_numbers(9), 3);
}

TEST(what_a_function_gives_is_described)
{
	choir_strategy *s = worker_strategy(2);
	choir_input_options o = { .size = sizeof o, .replication = CHOIR_REPLICATION_PER_REPLICA };
	assert_described(choir_strategy_distribute_datasets_from_function(s, threes, NULL, &o),
			"worker 0 reads what its function gives for each replica\n"
			"  replica 0: a whole batch in each step\n"
			"  replica 1: a whole batch in each step\n");
	o = (choir_input_options){ .size = sizeof o, .workers = 2, .worker = 1 };
	assert_described(choir_strategy_distribute_datasets_from_function(s, threes, NULL, &o),
			"worker 0 reads what its function gives\n"
			"  replica 0: a whole batch in each step\n"
			"  replica 1: a whole batch in each step\n"
			"worker 1 reads what its function gives (this worker)\n"
			"  replica 2: a whole batch in each step\n"
			"  replica 3: a whole batch in each step\n");
	o = (choir_input_options){ .size = sizeof o, .per_replica_batches = true };
	assert_described(
			choir_strategy_distribute_dataset(s, choir_dataset_batch(worker_numbers(9), 3), &o),
			"worker 0 reads everything\n"
			"  replica 0: a whole batch in each step\n"
			"  replica 1: a whole batch in each step\n");
	choir_strategy_free(s);
}
