// Who gets what with several workers, which are simulated here by their count and index, and with
// batches whose size nobody knows; the policies of sharding.
#include "input/worker.h"

#include "choir/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Whatever the number of workers, replica k of all of them gets what replica k gets on one worker.
// spec: V9, B16, 2.12
static void under_data_the_number_of_workers_changes_nothing(void **state)
{
	(void) state;
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

// With sharding off each worker's stream is cut by the cyclic list of sizes that begins with its
// own replicas': 7 over 2 workers of 2 is 2, 2, 2, 1; worker 1 begins with 2, 1.
// spec: B9, B17, B18, 2.11
static void a_workers_stream_is_cut_by_the_cyclic_list(void **state)
{
	(void) state;
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

static choir_status same(const choir_entry in[], choir_entry out[], void *user)
{
	(void) user;
	memcpy(out[0].data, in[0].data, (size_t) choir_shape_elements(&in[0].shape) * sizeof(int64_t));
	return CHOIR_OK;
}

// Batches of 8, and a last one of 5, for 3 replicas: pieces of ceil(8/3): 3, 3, 2, and 2, 2, 1.
// spec: V5, 2.11
static void an_unknown_batch_is_cut_into_ceil_pieces(void **state)
{
	(void) state;
	choir_strategy *s = worker_strategy(3);
	static reading l;
	choir_dataset *d =
			choir_dataset_map(choir_dataset_batch(worker_numbers(13), 8), NULL, same, NULL);
	read_steps(choir_strategy_distribute_dataset(s, d, NULL), 3, &l);
	assert_int_equal(l.steps, 2);
	assert_rows(&l, 0, ROWS(3, 3, 2));
	assert_rows(&l, 1, ROWS(2, 2, 1));
	assert_int_equal(l.number[1][2][0], 12);
	// Trailing pieces may be empty: 4 over 3 is 2, 2, 0.
	d = choir_dataset_map(choir_dataset_batch(worker_numbers(4), 8), NULL, same, NULL);
	read_steps(choir_strategy_distribute_dataset(s, d, NULL), 3, &l);
	assert_rows(&l, 0, ROWS(2, 2, 0));
	// drop_remainder makes the batch known through map; 6 items of 8 of 2 replicas need it not.
	d = choir_dataset_map(
			choir_dataset_batch_drop_remainder(worker_numbers(13), 8), NULL, same, NULL);
	read_steps(choir_strategy_distribute_dataset(s, d, NULL), 3, &l);
	assert_int_equal(l.steps, 1);
	assert_rows(&l, 0, ROWS(3, 3, 2));
	choir_strategy_free(s);
	// Under DATA piece j falls to replica j of all: 6 over 2 workers of 2 is 2, 2, 2, 0.
	s = worker_strategy(2);
	for (int w = 0; w < 2; w++) {
		d = choir_dataset_map(choir_dataset_batch(worker_numbers(6), 6), NULL, same, NULL);
		read_steps(of_worker(s, d, 2, w, CHOIR_AUTO_SHARD_DATA, 0), 2, &l);
		assert_int_equal(l.steps, 1);
		assert_rows(&l, 0, 2, w ? (int64_t[]){ 2, 0 } : (int64_t[]){ 2, 2 });
		assert_int_equal(l.number[0][0][0], 4 * w);
		// Without sharding a worker's local step takes the next R pieces of its own stream.
		d = choir_dataset_map(choir_dataset_batch(worker_numbers(6), 6), NULL, same, NULL);
		read_steps(of_worker(s, d, 2, w, CHOIR_AUTO_SHARD_OFF, 0), 2, &l);
		assert_int_equal(l.steps, 2);
		assert_rows(&l, 0, ROWS(2, 2));
		assert_rows(&l, 1, ROWS(2, 0));
	}
	choir_strategy_free(s);
}

// spec: B14, 2.11
static void the_batch_is_found_through_steps_that_keep_it(void **state)
{
	(void) state;
	choir_strategy *s = worker_strategy(2);
	choir_dataset *d = choir_dataset_batch(worker_numbers(40), 8);
	d = choir_dataset_take(choir_dataset_skip(choir_dataset_cache(d, NULL), 1), 3);
	d = choir_dataset_prefetch(choir_dataset_shard(choir_dataset_shuffle(d, 2, 1), 1, 0), 1);
	d = choir_dataset_batch(choir_dataset_unbatch(choir_dataset_repeat(d, 2)), 6);
	static reading l;
	choir_distributed_dataset *data = choir_strategy_distribute_dataset(s, d, NULL);
	assert_int_equal(choir_distributed_dataset_cardinality(data), 8);
	read_steps(data, 2, &l);
	assert_int_equal(l.steps, 8);
	for (int k = 0; k < 8; k++)
		assert_rows(&l, k, ROWS(3, 3));
	choir_strategy_free(s);
}

static char folder[] = "/tmp/choir-input-XXXXXX";

// Writes n files; file f has 3 values, 10 f, 10 f + 1, 10 f + 2.
static void write_files(int n)
{
	for (int f = 0; f < n; f++) {
		char path[64];
		snprintf(path, sizeof path, "%s/%d", folder, f);
		const unsigned char bytes[] = { 0, 0, 8, 1, 0, 0, 0, 3, (unsigned char) (10 * f),
			(unsigned char) (10 * f + 1), (unsigned char) (10 * f + 2) };
		FILE *file = fopen(path, "wb");
		assert_non_null(file);
		fwrite(bytes, 1, sizeof bytes, file);
		fclose(file);
	}
}

static choir_status widen(const choir_entry in[], choir_entry out[], void *user)
{
	(void) user;
	((int64_t *) out[0].data)[0] = ((const uint8_t *) in[0].data)[0];
	return CHOIR_OK;
}

static choir_dataset *open_file(const choir_entry in[], void *user)
{
	static const choir_column column = { "number", CHOIR_I64, { 0, { 0 } }, NULL };
	char path[64];
	(void) user;
	snprintf(path, sizeof path, "%s/%lld", folder, (long long) ((const int64_t *) in[0].data)[0]);
	return choir_dataset_map(choir_idx_dataset_new(path, "value"),
			CHOIR_OPTIONS(choir_map_options, .n = 1, .columns = &column), widen, NULL);
}

static choir_dataset *files(choir_dataset *list)
{
	return choir_dataset_interleave(
			list, CHOIR_OPTIONS(choir_interleave_options, .files = true), open_file, NULL);
}

// spec: B9, B15, 2.12
static void by_file_each_worker_reads_its_own(void **state)
{
	(void) state;
	write_files(5);
	choir_strategy *s = worker_strategy(1);
	static reading l;
	for (int policy = 0; policy < 2; policy++)
		for (int w = 0; w < 2; w++) {
			// The shuffle of the list goes behind the shard: worker 0 reads files 0, 2, 4.
			choir_dataset *d = files(choir_dataset_shuffle(worker_numbers(5), 5, 1));
			d = choir_dataset_batch(choir_dataset_prefetch(choir_dataset_shuffle(d, 9, 2), 2), 4);
			choir_distributed_dataset *data = of_worker(
					s, d, 2, w, policy ? CHOIR_AUTO_SHARD_AUTO : CHOIR_AUTO_SHARD_FILE, 0);
			read_steps(data, 1, &l);
			assert_int_equal(choir_distributed_dataset_auto_shard(data), CHOIR_AUTO_SHARD_FILE);
			assert_false(choir_distributed_dataset_fell_back(data));
			int64_t seen = 0;
			for (int k = 0; k < l.steps; k++)
				for (int64_t i = 0; i < l.rows[k][0]; i++, seen++)
					assert_int_equal(l.number[k][0][i] / 10 % 2, w);
			assert_int_equal(seen, w ? 6 : 9);
		}
	choir_strategy_free(s);
}

static int warnings;
static void count_warnings(choir_log_level level, const char *line, void *user)
{
	(void) user;
	warnings += level == CHOIR_LOG_WARNING && strstr(line, "nothing that reads files") != NULL;
}

// spec: B16, E39, E41, V10, 2.12, 2.19
static void what_cannot_be_sharded_by_file(void **state)
{
	(void) state;
	write_files(1);
	choir_strategy *s = worker_strategy(1);
	assert_null(of_worker(
			s, choir_dataset_batch(worker_numbers(9), 2), 2, 0, CHOIR_AUTO_SHARD_FILE, 0));
	assert_input_failed(CHOIR_NOT_FOUND, "nothing that reads files was found: \"memory dataset\"");
	choir_log_set(CHOIR_LOG_WARNING, count_warnings, NULL);
	choir_distributed_dataset *data = of_worker(
			s, choir_dataset_batch(worker_numbers(9), 2), 2, 0, CHOIR_AUTO_SHARD_AUTO, 0);
	choir_log_set(CHOIR_LOG_WARNING, NULL, NULL);
	assert_non_null(data);
	assert_int_equal(warnings, 1);
	assert_true(choir_distributed_dataset_fell_back(data));
	assert_int_equal(choir_distributed_dataset_auto_shard(data), CHOIR_AUTO_SHARD_DATA);
	// A zip of which one side alone reads files: FILE is an error, AUTO is DATA.
	for (int w = 0; w < 2; w++) // too few files: the same error for every worker, also for AUTO
		for (int policy = 0; policy < 2; policy++) {
			choir_dataset *d = choir_dataset_batch(files(worker_numbers(1)), 2);
			assert_null(of_worker(
					s, d, 2, w, policy ? CHOIR_AUTO_SHARD_AUTO : CHOIR_AUTO_SHARD_FILE, 0));
			assert_input_failed(
					CHOIR_INVALID, "interleave: 1 files for 2 workers, at least 1 each");
		}
	char path[64];
	snprintf(path, sizeof path, "%s/0", folder);
	assert_null(of_worker(s, choir_dataset_batch(choir_idx_dataset_new(path, "number"), 2), 3, 1,
			CHOIR_AUTO_SHARD_FILE, 0));
	assert_input_failed(CHOIR_INVALID, "idx dataset: 1 files for 3 workers");
	assert_null(of_worker(s,
			choir_dataset_batch(choir_dataset_zip(choir_idx_dataset_new(path, "a"),
										choir_dataset_take(worker_numbers(9), 3)),
					2),
			1, 2, CHOIR_AUTO_SHARD_FILE, 0)); // one worker: there is no worker 2
	assert_input_failed(CHOIR_INVALID, "worker 2 given, 0 to 0 needed");
	choir_strategy_free(s);
}

// spec: E39, 2.12
static void a_hint_says_where_to_shard(void **state)
{
	(void) state;
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
	choir_dataset *d = choir_dataset_shard(worker_numbers(7), CHOIR_SHARD_HINT, CHOIR_SHARD_HINT);
	assert_null(of_worker(s, choir_dataset_batch(d, 2), 2, 0, CHOIR_AUTO_SHARD_DATA, 0));
	assert_input_failed(
			CHOIR_STATE, "CHOIR_SHARD_HINT, but the policy is not CHOIR_AUTO_SHARD_HINT");
	// Too few: the same error for every worker.
	for (int w = 0; w < 3; w++) {
		d = choir_dataset_shard(worker_numbers(2), CHOIR_SHARD_HINT, CHOIR_SHARD_HINT);
		read_steps(of_worker(s, choir_dataset_batch(d, 2), 3, w, CHOIR_AUTO_SHARD_HINT, 0), 1, &l);
		assert_int_equal(l.steps, 0);
		assert_int_equal(l.status, CHOIR_INVALID);
		assert_input_failed(
				CHOIR_INVALID, "shard: 2 elements for 3 shards, at least 1 each needed");
	}
	choir_strategy_free(s);
}

// spec: 2.12
static void one_worker_is_never_sharded(void **state)
{
	(void) state;
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

static int make_folder(void **state)
{
	(void) state;
	return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
	(void) state;
	for (int f = 0; f < 5; f++) {
		char path[64];
		snprintf(path, sizeof path, "%s/%d", folder, f);
		unlink(path);
	}
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(under_data_the_number_of_workers_changes_nothing),
		cmocka_unit_test(a_workers_stream_is_cut_by_the_cyclic_list),
		cmocka_unit_test(an_unknown_batch_is_cut_into_ceil_pieces),
		cmocka_unit_test(the_batch_is_found_through_steps_that_keep_it),
		cmocka_unit_test(by_file_each_worker_reads_its_own),
		cmocka_unit_test(what_cannot_be_sharded_by_file),
		cmocka_unit_test(a_hint_says_where_to_shard),
		cmocka_unit_test(one_worker_is_never_sharded),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
