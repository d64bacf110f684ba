// Who gets what with several workers, which are simulated here by their count and index, and with
// batches whose size nobody knows; hints (auto_shard_test.c has sharding by file).
#include "input/worker.h"
#include "test.h"

#include <string.h>

// Whatever the number of workers, replica k of all of them gets what replica k gets on one worker.
// spec: V9, B16, 2.12
TEST(under_data_the_number_of_workers_changes_nothing)
{
	static const int64_t batches[] = { 1, 3, 8, 10 };
	for (int workers = 1; workers <= 4; workers++)
		for (int r = 1; r <= 2; r++)
			for (size_t b = 0; b < 4; b++)
				for (int64_t examples = 0; examples <= 23; examples += 4) {
					const int n = workers * r;
					choir_strategy *all = worker_strategy(n), *s = worker_strategy(r);
					static reading whole, own;
					read_steps(of_worker(all,
									   choir_dataset_batch(worker_numbers(examples), batches[b]),
									   1, 0, CHOIR_AUTO_SHARD_DATA, batches[b]),
							n, &whole);
					for (int w = 0; w < workers; w++) {
						read_steps(of_worker(s, choir_dataset_batch(worker_numbers(examples), 5),
										   workers, w, CHOIR_AUTO_SHARD_DATA, batches[b]),
								r, &own);
						assert_int_equal(own.status, CHOIR_END);
						assert_int_equal(own.steps, whole.steps);
						for (int k = 0; k < own.steps; k++) {
							assert_rows(&own, k, r, &whole.rows[k][w * r]);
							assert_memory_equal(own.number[k], whole.number[k][w * r],
									(size_t) r * sizeof own.number[k][0]);
						}
					}
					choir_strategy_free(s);
					choir_strategy_free(all);
				}
}

static choir_status count_and_copy(const choir_component in[], choir_component out[], void *user)
{
	++*(int *) user;
	return worker_same(in, out, NULL);
}

// Under DATA, the default, workers take turns only behind the last step of the dataset.
// spec: B16
TEST(under_data_every_worker_prepares_every_example)
{
	choir_strategy *s = worker_strategy(1);
	for (int w = 0; w < 2; w++) {
		int calls = 0;
		static reading l;
		choir_dataset *d = choir_dataset_map(worker_numbers(12), NULL, count_and_copy, &calls);
		choir_distributed_dataset *data =
				choir_strategy_distribute_dataset(s, choir_dataset_batch(d, 4),
						CHOIR_OPTIONS(choir_input_options, .workers = 2, .worker = w));
		assert_int_equal(choir_distributed_dataset_auto_shard(data), CHOIR_AUTO_SHARD_DATA);
		read_steps(data, 1, &l);
		assert_int_equal(l.steps, 3);
		assert_rows(&l, 0, ROWS(2));
		assert_int_equal(l.number[0][0][0], 2 * w);
		assert_int_equal(calls, 12);
	}
	choir_strategy_free(s);
}

// With sharding off each worker's stream is cut by the cyclic list of sizes that begins with its
// own replicas': 7 over 2 workers of 2 is 2, 2, 2, 1; worker 1 begins with 2, 1.
// spec: B9, B17, B18, 2.11
TEST(a_workers_stream_is_cut_by_the_cyclic_list)
{
	choir_strategy *s = worker_strategy(2);
	static reading l;
	read_steps(of_worker(s, choir_dataset_batch(worker_numbers(17), 7), 2, 0, CHOIR_AUTO_SHARD_OFF,
					   0),
			2, &l);
	assert_int_equal(l.steps, 5);
	assert_rows(&l, 0, ROWS(2, 2));
	assert_rows(&l, 1, ROWS(2, 1));
	assert_rows(&l, 2, ROWS(2, 2));
	assert_rows(&l, 3, ROWS(2, 1));
	assert_rows(&l, 4, ROWS(2, 1)); // 17 examples are at their end
	read_steps(of_worker(s, choir_dataset_batch(worker_numbers(17), 7), 2, 1, CHOIR_AUTO_SHARD_OFF,
					   0),
			2, &l);
	assert_rows(&l, 0, ROWS(2, 1));
	assert_rows(&l, 1, ROWS(2, 2));
	assert_int_equal(l.number[0][0][0], 0); // everything is read by everybody
	assert_int_equal(l.number[1][0][0], 3);
	// A size of 0 gives an empty batch: 1 over 2 workers.
	choir_strategy *one = worker_strategy(1);
	read_steps(of_worker(one, choir_dataset_batch(worker_numbers(2), 1), 2, 1,
					   CHOIR_AUTO_SHARD_OFF, 0),
			1, &l);
	assert_int_equal(l.steps, 4);
	assert_rows(&l, 0, ROWS(0));
	assert_rows(&l, 1, ROWS(1));
	assert_rows(&l, 2, ROWS(0));
	assert_rows(&l, 3, ROWS(1));
	choir_strategy_free(one);
	choir_strategy_free(s);
}

// Batches of 8, and a last one of 5, for 3 replicas: pieces of ceil(8/3): 3, 3, 2, and 2, 2, 1.
// spec: V5, 2.11
TEST(an_unknown_batch_is_cut_into_ceil_pieces)
{
	choir_strategy *s = worker_strategy(3);
	static reading l;
	choir_dataset *d =
			choir_dataset_map(choir_dataset_batch(worker_numbers(13), 8), NULL, worker_same, NULL);
	read_steps(choir_strategy_distribute_dataset(s, d, NULL), 3, &l);
	assert_int_equal(l.steps, 2);
	assert_rows(&l, 0, ROWS(3, 3, 2));
	assert_rows(&l, 1, ROWS(2, 2, 1));
	assert_int_equal(l.number[1][2][0], 12);
	// Trailing pieces may be empty: 4 over 3 is 2, 2, 0.
	d = choir_dataset_map(choir_dataset_batch(worker_numbers(4), 8), NULL, worker_same, NULL);
	read_steps(choir_strategy_distribute_dataset(s, d, NULL), 3, &l);
	assert_rows(&l, 0, ROWS(2, 2, 0));
	// drop_remainder makes the batch known through map; 6 items of 8 of 2 replicas need it not.
	d = choir_dataset_map(
			choir_dataset_batch_drop_remainder(worker_numbers(13), 8), NULL, worker_same, NULL);
	read_steps(choir_strategy_distribute_dataset(s, d, NULL), 3, &l);
	assert_int_equal(l.steps, 1);
	assert_rows(&l, 0, ROWS(3, 3, 2));
	choir_strategy_free(s);
	// Under DATA piece j falls to replica j of all: 6 over 2 workers of 2 is 2, 2, 2, 0.
	s = worker_strategy(2);
	for (int w = 0; w < 2; w++) {
		d = choir_dataset_map(choir_dataset_batch(worker_numbers(6), 6), NULL, worker_same, NULL);
		read_steps(of_worker(s, d, 2, w, CHOIR_AUTO_SHARD_DATA, 0), 2, &l);
		assert_int_equal(l.steps, 1);
		assert_rows(&l, 0, 2, w ? (int64_t[]){ 2, 0 } : (int64_t[]){ 2, 2 });
		assert_int_equal(l.number[0][0][0], 4 * w);
		// Without sharding a worker's local step takes the next R pieces of its own stream.
		d = choir_dataset_map(choir_dataset_batch(worker_numbers(6), 6), NULL, worker_same, NULL);
		read_steps(of_worker(s, d, 2, w, CHOIR_AUTO_SHARD_OFF, 0), 2, &l);
		assert_int_equal(l.steps, 2);
		assert_rows(&l, 0, ROWS(2, 2));
		assert_rows(&l, 1, ROWS(2, 0));
	}
	choir_strategy_free(s);
}

// ---- The batch that is found where none is given.

static bool all_of_them(const choir_component in[], void *user)
{
	(void) in;
	(void) user;
	return true;
}

static choir_dataset *prefetched(choir_dataset *d)
{
	return choir_dataset_prefetch(d, 2);
}

static choir_dataset *taken(choir_dataset *d)
{
	return choir_dataset_take(d, 3);
}

static choir_dataset *skipped(choir_dataset *d)
{
	return choir_dataset_skip(d, 1);
}

static choir_dataset *repeated(choir_dataset *d)
{
	return choir_dataset_repeat(d, 2);
}

static choir_dataset *cached(choir_dataset *d)
{
	return choir_dataset_cache(d, NULL);
}

static choir_dataset *shuffled(choir_dataset *d)
{
	return choir_dataset_shuffle(d, 2, 1);
}

static choir_dataset *sharded(choir_dataset *d)
{
	return choir_dataset_shard(d, 2, 0);
}

static choir_dataset *filtered(choir_dataset *d)
{
	return choir_dataset_filter(d, all_of_them, NULL);
}

static choir_dataset *zipped(choir_dataset *d)
{
	static const uint8_t others[20];
	const choir_column other = { "other", CHOIR_U8, CHOIR_SCALAR, others };
	return choir_dataset_zip(
			d, choir_dataset_batch(choir_memory_dataset_new(20, 1, &other, false), 5));
}

static choir_dataset *behind_equal(choir_dataset *d)
{
	return choir_dataset_concatenate(d, choir_dataset_batch(worker_numbers(10), 5));
}

static choir_dataset *behind_smaller(choir_dataset *d)
{
	return choir_dataset_concatenate(d, choir_dataset_batch(worker_numbers(10), 4));
}

static choir_dataset *mapped(choir_dataset *d)
{
	return choir_dataset_map(d, NULL, worker_same, NULL);
}

static choir_dataset *padded(choir_dataset *d)
{
	return choir_dataset_padded_batch(choir_dataset_unbatch(d), 5, NULL);
}

static choir_dataset *whole_and_mapped(choir_dataset *d)
{
	return mapped(choir_dataset_batch_drop_remainder(choir_dataset_unbatch(d), 5));
}

// A batch of 5 for 4 replicas is 2, 1, 1, 1 where it is known, and 2, 2, 1, 0 where it is not.
// spec: B14, 2.11
TEST(the_batch_is_found_through_steps_that_keep_it)
{
	static const struct {
		choir_dataset *(*step)(choir_dataset *d);
		bool known;
	} steps[] = { { prefetched, true }, { taken, true }, { skipped, true }, { repeated, true },
		{ cached, true }, { shuffled, true }, { sharded, true }, { filtered, true },
		{ zipped, true }, { behind_equal, true }, { padded, true }, { whole_and_mapped, true },
		{ mapped, false }, { behind_smaller, false } };
	enum { STEPS = sizeof steps / sizeof steps[0] };
	choir_strategy *s = worker_strategy(4);
	static reading l;
	for (size_t a = 0; a < STEPS; a++)
		for (size_t b = 0; b < STEPS; b++) { // one step behind another
			if (steps[b].step == zipped &&
					(steps[a].step == taken || steps[a].step == skipped ||
							steps[a].step == repeated || steps[a].step == sharded ||
							steps[a].step == behind_equal || steps[a].step == behind_smaller ||
							a == b))
				continue; // of other lengths
			if (steps[a].step == zipped && steps[b].step != prefetched && steps[b].step != taken)
				continue; // of other columns
			const bool anew = steps[b].step == padded || steps[b].step == whole_and_mapped ||
					(steps[b].step == mapped && steps[a].step == whole_and_mapped);
			choir_dataset *d = choir_dataset_batch(worker_numbers(20), 5);
			read_steps(choir_strategy_distribute_dataset(s, steps[b].step(steps[a].step(d)), NULL),
					4, &l);
			if (anew || (steps[a].known && steps[b].known))
				assert_rows(&l, 0, ROWS(2, 1, 1, 1));
			else
				assert_rows(&l, 0, ROWS(2, 2, 1, 0));
		}
	choir_strategy_free(s);
}

// W steps of each worker are G examples, those of all workers in a step are G, and no two sizes
// differ by more than one, until the end.
// spec: 2.11
TEST(the_cyclic_lists_of_all_workers_are_global_batches)
{
	static reading l[4];
	for (int workers = 2; workers <= 4; workers++)
		for (int r = 1; r <= 2; r++) {
			choir_strategy *s = worker_strategy(r);
			for (int64_t g = 1; g <= 11; g++) {
				int64_t of_worker_so_far[4] = { 0 };
				for (int w = 0; w < workers; w++)
					read_steps(of_worker(s, choir_dataset_batch(worker_numbers(60), 7), workers, w,
									   CHOIR_AUTO_SHARD_OFF, g),
							r, &l[w]);
				for (int k = 0; (k / workers + 1) * g <= 60 && k < MAX_STEPS; k++) {
					int64_t all = 0;
					for (int w = 0; w < workers; w++)
						for (int i = 0; i < r; i++) {
							const int64_t rows = l[w].rows[k][i], min = g / (workers * r);
							assert_in_range(rows, min, min + 1);
							all += rows;
							of_worker_so_far[w] += rows;
						}
					assert_int_equal(all, g);
					for (int w = 0; w < workers && k % workers == workers - 1; w++)
						assert_int_equal(of_worker_so_far[w], (k / workers + 1) * g);
				}
			}
			choir_strategy_free(s);
		}
}

// ---- Whole batches.

// Batch i of all is replica i mod N's, on whichever worker that is: with one replica each, worker
// i mod W's.
// spec: B27, V9, 2.12
TEST(whole_batches_fall_to_the_replicas_in_turn)
{
	static reading l;
	for (int workers = 1; workers <= 3; workers++)
		for (int r = 1; r <= 2; r++)
			for (int64_t examples = 0; examples <= 40; examples += 5) {
				choir_strategy *s = worker_strategy(r);
				const int n = workers * r;
				for (int w = 0; w < workers; w++) {
					choir_distributed_dataset *data = choir_strategy_distribute_dataset(s,
							choir_dataset_batch(worker_numbers(examples), 3),
							CHOIR_OPTIONS(choir_input_options, .workers = workers, .worker = w,
									.per_replica_batches = true, .read_ahead_steps = w));
					const int64_t batches = (examples + 2) / 3, steps = (batches + n - 1) / n;
					assert_int_equal(choir_distributed_dataset_cardinality(data), steps);
					read_steps(data, r, &l);
					assert_int_equal(l.steps, steps);
					for (int k = 0; k < steps; k++)
						for (int i = 0; i < r; i++) {
							const int64_t first = 3 * ((int64_t) k * n + w * r + i);
							const int64_t left = first < examples ? examples - first : 0;
							assert_int_equal(l.rows[k][i], left < 3 ? left : 3);
							for (int64_t x = 0; x < l.rows[k][i]; x++)
								assert_int_equal(l.number[k][i][x], first + x);
						}
				}
				choir_strategy_free(s);
			}
}

// ---- Hints.

// spec: E39, 2.12
TEST(a_hint_says_where_to_shard)
{
	choir_strategy *s = worker_strategy(1);
	static reading l;
	for (int w = 0; w < 3; w++) {
		choir_dataset *d =
				choir_dataset_shard(worker_numbers(7), CHOIR_SHARD_HINT, CHOIR_SHARD_HINT);
		d = choir_dataset_batch(choir_dataset_to_float(d, "number", 1), 9);
		choir_dataset_free(d);
		d = choir_dataset_shard(worker_numbers(7), CHOIR_SHARD_HINT, CHOIR_SHARD_HINT);
		d = choir_dataset_batch(choir_dataset_flatten(d, "number"), 9);
		read_steps(of_worker(s, d, 3, w, CHOIR_AUTO_SHARD_HINT, 0), 1, &l);
		assert_rows(&l, 0, 1, w == 0 ? (int64_t[]){ 3 } : (int64_t[]){ 2 });
		for (int64_t i = 0; i < l.rows[0][0]; i++)
			assert_int_equal(l.number[0][0][i], 3 * i + w);
	}
	// No hint: nothing is sharded.
	read_steps(of_worker(s, choir_dataset_batch(worker_numbers(4), 8), 2, 1, CHOIR_AUTO_SHARD_HINT,
					   0),
			1, &l);
	assert_rows(&l, 0, ROWS(4));
	choir_dataset *d;
	for (int policy = 0; policy <= CHOIR_AUTO_SHARD_HINT; policy++) {
		if (policy == CHOIR_AUTO_SHARD_HINT)
			continue;
		d = choir_dataset_shard(worker_numbers(7), CHOIR_SHARD_HINT, CHOIR_SHARD_HINT);
		assert_null(of_worker(s, choir_dataset_batch(d, 2), 2, 0, (choir_auto_shard) policy, 0));
		assert_input_failed(CHOIR_STATE, "CHOIR_SHARD_HINT*CHOIR_AUTO_SHARD_HINT");
	}
	// Too few: the same error for every worker.
	for (int w = 0; w < 3; w++) {
		d = choir_dataset_shard(worker_numbers(2), CHOIR_SHARD_HINT, CHOIR_SHARD_HINT);
		read_steps(of_worker(s, choir_dataset_batch(d, 2), 3, w, CHOIR_AUTO_SHARD_HINT, 0), 1, &l);
		assert_int_equal(l.steps, 0);
		assert_int_equal(l.status, CHOIR_INVALID);
		assert_input_failed(CHOIR_INVALID, "shard:*2 elements*3 shards*1");
		// None at all are the end.
		d = choir_dataset_shard(worker_numbers(0), CHOIR_SHARD_HINT, CHOIR_SHARD_HINT);
		read_steps(of_worker(s, choir_dataset_batch(d, 2), 3, w, CHOIR_AUTO_SHARD_HINT, 0), 1, &l);
		assert_int_equal(l.steps, 0);
		assert_int_equal(l.status, CHOIR_END);
	}
	choir_strategy_free(s);
}

// spec: 2.12
TEST(one_worker_is_never_sharded)
{
	choir_strategy *s = worker_strategy(1);
	for (int policy = 0; policy <= CHOIR_AUTO_SHARD_HINT; policy++) {
		choir_dataset *d =
				choir_dataset_shard(worker_numbers(5), CHOIR_SHARD_HINT, CHOIR_SHARD_HINT);
		static reading l;
		read_steps(of_worker(s, choir_dataset_batch(d, 8), 1, 0, (choir_auto_shard) policy, 0), 1,
				&l);
		assert_rows(&l, 0, ROWS(5));
	}
	choir_strategy_free(s);
}
