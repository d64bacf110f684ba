// Sharding by file: each worker reads files of its own, whatever lies behind them, and what cannot
// be sharded so.
#include "input/worker.h"

#include "choir/library.h"

#include "data/kinds.h"
#include "data/source/scratch.h"
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Writes n files; file f has 3 values, 10 f, 10 f + 1, 10 f + 2.
static void write_files(int n)
{
	for (int f = 0; f < n; f++) {
		const char name[] = { (char) ('0' + f), '\0' };
		const unsigned char bytes[] = { 0, 0, 8, 1, 0, 0, 0, 3, (unsigned char) (10 * f),
			(unsigned char) (10 * f + 1), (unsigned char) (10 * f + 2) };
		scratch_write(name, bytes, sizeof bytes);
	}
}

static choir_status widen(const choir_component in[], choir_component out[], void *user)
{
	(void) user;
	((int64_t *) out[0].data)[0] = ((const uint8_t *) in[0].data)[0];
	return CHOIR_OK;
}

static choir_dataset *open_file(const choir_component in[], void *user)
{
	static const choir_column column = { "number", CHOIR_I64, { 0, { 0 } }, NULL };
	const char name[] = { (char) ('0' + *(const int64_t *) in[0].data), '\0' };
	(void) user;
	return choir_dataset_map(choir_idx_dataset_new(scratch_path(name), "value"),
			CHOIR_OPTIONS(choir_map_options, .n = 1, .columns = &column), widen, NULL);
}

static choir_dataset *files(choir_dataset *list)
{
	return choir_dataset_interleave(
			list, CHOIR_OPTIONS(choir_interleave_options, .files = true), open_file, NULL);
}

// spec: B9, B15, 2.12
TEST(by_file_each_worker_reads_its_own)
{
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

// Records of 8 bytes: 0 to 8 in one file, 9 to 22 in the other; or one of the two alone.
static choir_dataset *two_files(int which)
{
	int64_t numbers[23];
	for (int i = 0; i < 23; i++)
		numbers[i] = i;
	scratch_write("part-0", numbers, 9 * sizeof numbers[0]);
	scratch_write("part-1", numbers + 9, 14 * sizeof numbers[0]);
	const choir_field field = { .name = "number", .dtype = CHOIR_I64 };
	return choir_fixed_length_record_dataset_new(scratch_path(which < 0		  ? "part-?"
																 : which == 0 ? "part-0"
																			  : "part-1"),
			1, &field, NULL);
}

static choir_distributed_dataset *in_threes(
		choir_strategy *s, choir_dataset *d, int workers, int worker, choir_auto_shard policy)
{
	return of_worker(s, choir_dataset_batch_size(d) ? d : choir_dataset_batch(d, 3), workers,
			worker, policy, 3);
}

// All numbers of d's pass on a worker, one after another; they must be few.
static int64_t numbers_of(choir_strategy *s, choir_dataset *d, int workers, int worker,
		choir_auto_shard policy, int64_t number[])
{
	static reading l;
	int64_t n = 0;
	read_steps(in_threes(s, d, workers, worker, policy), 1, &l);
	assert_int_equal(l.status, CHOIR_END);
	for (int k = 0; k < l.steps; n += l.rows[k++][0])
		memcpy(number + n, l.number[k][0], (size_t) l.rows[k][0] * sizeof number[0]);
	return n;
}

// Whatever step lies behind, a worker has what that step makes of the worker's own file.
// spec: B15, 2.12
TEST(by_file_goes_through_every_step)
{
	choir_strategy *s = worker_strategy(1);
	for (size_t t = 0; t < transform_kind_count; t++)
		for (int w = 0; w < 2; w++) {
			const transform_kind *kind = &transform_kinds[t];
			const char *name = kind->constructor ? kind->constructor : "nothing";
			int64_t found[3 * MAX], expected[3 * MAX], n;
			choir_dataset *d = kind->make(two_files(-1));
			// Beside or behind it is something that reads no files.
			if (strstr(name, "zip") || strstr(name, "concatenate")) {
				assert_null(in_threes(s, d, 2, w, CHOIR_AUTO_SHARD_FILE));
				assert_input_failed(CHOIR_NOT_FOUND, "sharding by file*\"*files");
				continue;
			}
			n = numbers_of(s, kind->make(two_files(w)), 1, 0, CHOIR_AUTO_SHARD_DATA, expected);
			assert_int_equal(numbers_of(s, d, 2, w, CHOIR_AUTO_SHARD_FILE, found), n);
			if (n == 0 || memcmp(found, expected, (size_t) n * sizeof found[0]) != 0)
				fail_msg("%s: worker %d does not have what its file has", name, w);
		}
	choir_strategy_free(s);
}

// ---- Whose files are which.

static choir_dataset *open_numbers(const char *path, void *user)
{
	const choir_field field = { .name = "number", .dtype = CHOIR_I64 };
	(void) user;
	return choir_fixed_length_record_dataset_new(path, 1, &field, NULL);
}

enum { FIXED, SEVERAL, CSV, TFRECORD, KINDS, MAX_NAMED = 11 };

static const char *named(int i)
{
	static char name[] = "named-?";
	name[6] = (char) ('a' + i);
	return name;
}

static void write_named(int kind, const char *name)
{
	const int64_t one = 1;
	const choir_column column = { "number", CHOIR_I64, CHOIR_SCALAR, &one };
	if (kind == CSV)
		scratch_text(name, "number\n1\n");
	if (kind == FIXED || kind == SEVERAL)
		scratch_write(name, &one, sizeof one);
	if (kind != TFRECORD)
		return;
	choir_tfrecord_writer *w =
			choir_tfrecord_writer_new(scratch_path(name), CHOIR_COMPRESSION_NONE);
	assert_int_equal(choir_tfrecord_writer_write_example(w, 1, &column), CHOIR_OK);
	assert_int_equal(choir_tfrecord_writer_finish(w), CHOIR_OK);
	choir_tfrecord_writer_free(w);
}

static choir_dataset *of_named(int kind, int n)
{
	for (int i = 0; i < MAX_NAMED; i++)
		if (i < n)
			write_named(kind, named(i));
		else
			remove(scratch_path(named(i)));
	const char *pattern = scratch_path("named-?");
	if (kind == CSV)
		return choir_csv_dataset_new(pattern, NULL);
	if (kind == TFRECORD)
		return choir_tfrecord_dataset_new(pattern, NULL);
	return kind == FIXED
			? open_numbers(pattern, NULL)
			: choir_files_dataset_new(choir_files_new(1, &pattern), open_numbers, NULL);
}

// Every worker says it of all of them; of many files the first four.
static void assert_files_listed(
		choir_dataset *d, int worker, const char *first, const char *second)
{
	char expected[2048], text[2048];
	choir_strategy *s = worker_strategy(1);
	choir_distributed_dataset *data = in_threes(s, d, 2, worker, CHOIR_AUTO_SHARD_FILE);
	if (data == NULL)
		fail_msg("%s", choir_error());
	choir_distributed_dataset_describe(data, text, sizeof text);
	snprintf(expected, sizeof expected,
			"worker 0 reads files of its own%s%s\n"
			"  replica 0: the next 2, 1 examples of its worker's, by turns\n"
			"worker 1 reads files of its own%s%s\n"
			"  replica 1: the next 1, 2 examples of its worker's, by turns\n",
			first, worker == 0 ? " (this worker)" : "", second,
			worker == 1 ? " (this worker)" : "");
	assert_string_equal(text, expected);
	choir_strategy_free(s);
}

// spec: 2.12
TEST(each_workers_files_are_named)
{
	char directory[128], first[600], second[600];
	snprintf(directory, sizeof directory, "%s", scratch_path("named-"));
	for (int kind = 0; kind < KINDS; kind++)
		for (int n = 3; n <= (kind == FIXED ? MAX_NAMED : 3); n += 8) {
			snprintf(first, sizeof first, ": %sa, %sc", directory, directory);
			snprintf(second, sizeof second, ": %sb", directory);
			if (n > 3) {
				snprintf(first, sizeof first, ": %sa, %sc, %se, %sg and 2 more", directory,
						directory, directory, directory);
				snprintf(second, sizeof second, ": %sb, %sd, %sf, %sh and 1 more", directory,
						directory, directory, directory);
			}
			assert_files_listed(of_named(kind, n), kind % 2, first, second);
		}
	// What opens files by names that it reads does not know them yet.
	write_files(3);
	assert_files_listed(files(worker_numbers(3)), 0, "", "");
}

static choir_dataset *both_sides(choir_dataset *a, choir_dataset *b, int way)
{
	const choir_column other = { "other", CHOIR_I64, CHOIR_SCALAR, NULL };
	if (way > 1)
		return way == 2 ? choir_dataset_concatenate(a, b) : choir_dataset_concatenate(b, a);
	b = choir_dataset_map(
			b, CHOIR_OPTIONS(choir_map_options, .n = 1, .columns = &other), worker_same, NULL);
	return way == 0 ? choir_dataset_zip(a, b) : choir_dataset_zip(b, a);
}

// Where only one side of a zip or a concatenate reads files, FILE is an error and AUTO is DATA,
// also where that side has too few; where both do, both are sharded.
// spec: B16, E41, 2.12
TEST(all_sides_are_sharded_by_file_or_none)
{
	choir_strategy *s = worker_strategy(1);
	static reading l;
	for (int way = 0; way < 4; way++)
		for (int w = 0; w < 3; w++) {
			choir_dataset *d = both_sides(two_files(-1), worker_numbers(23), way);
			assert_null(in_threes(s, d, 3, w, CHOIR_AUTO_SHARD_FILE));
			assert_input_failed(CHOIR_NOT_FOUND, "\"memory dataset\"");
			d = both_sides(two_files(-1), worker_numbers(23), way);
			choir_distributed_dataset *data = in_threes(s, d, 3, w, CHOIR_AUTO_SHARD_AUTO);
			read_steps(data, 1, &l);
			assert_true(choir_distributed_dataset_fell_back(data));
			assert_int_equal(l.steps, way < 2 ? 8 : 16);
			assert_int_equal(l.number[0][0][0], w);
			if (w == 2)
				continue;
			d = both_sides(two_files(-1), two_files(-1), way);
			read_steps(in_threes(s, d, 2, w, CHOIR_AUTO_SHARD_FILE), 1, &l);
			int64_t rows = 0;
			for (int k = 0; k < l.steps; k++)
				for (int64_t i = 0; i < l.rows[k][0]; i++, rows++)
					assert_int_equal(l.number[k][0][i] > 8, w);
			assert_int_equal(rows, (way < 2 ? 1 : 2) * (w ? 14 : 9));
		}
	choir_strategy_free(s);
}

static choir_distributed_dataset *cached(
		choir_strategy *s, int workers, int worker, choir_auto_shard policy)
{
	choir_dataset *d = policy == CHOIR_AUTO_SHARD_FILE
			? two_files(-1)
			: choir_dataset_shard(worker_numbers(23), CHOIR_SHARD_HINT, CHOIR_SHARD_HINT);
	return in_threes(s, choir_dataset_cache(d, scratch_path("cache")), workers, worker, policy);
}

// A cache's file is of the worker whose part of the data it holds. Another one that finds it is
// told, when its dataset is distributed, or where both write it, at the end of its pass.
TEST(a_cache_of_another_worker_is_refused)
{
	static const choir_auto_shard policies[] = { CHOIR_AUTO_SHARD_FILE, CHOIR_AUTO_SHARD_HINT };
	static reading l, again;
	choir_strategy *s = worker_strategy(1);
	for (int p = 0; p < 2; p++) {
		unlink(scratch_path("cache"));
		choir_distributed_dataset *both[2];
		for (int w = 0; w < 2; w++)
			both[w] = cached(s, 2, w, policies[p]);
		read_steps(both[0], 1, &l);
		assert_int_equal(l.status, CHOIR_END);
		assert_int_equal(l.number[0][0][1], p ? 2 : 1);
		read_steps(both[1], 1, &again);
		assert_int_equal(again.status, CHOIR_INVALID);
		assert_int_equal(again.number[0][0][0], p ? 1 : 9);
		assert_input_failed(CHOIR_INVALID, "cache:*worker 0*2*worker 1");
		assert_null(cached(s, 2, 1, policies[p]));
		assert_input_failed(CHOIR_INVALID, "worker 1*2");
		read_steps(cached(s, 2, 0, policies[p]), 1, &again); // its own
		assert_memory_equal(&again, &l, sizeof l);
		read_steps(cached(s, 1, 0, policies[p]), 1, &again);
		assert_int_equal(again.steps, 0);
		assert_input_failed(CHOIR_INVALID, "worker 0*1");
	}
	// Workers that read everything may share one.
	unlink(scratch_path("cache"));
	for (int w = 0; w < 3; w++) {
		choir_dataset *d = choir_dataset_cache(two_files(-1), scratch_path("cache"));
		read_steps(in_threes(s, d, 2, w % 2, CHOIR_AUTO_SHARD_DATA), 1, &l);
		assert_int_equal(l.status, CHOIR_END);
	}
	unlink(scratch_path("cache"));
	choir_strategy_free(s);
}

static int warnings;
static void count_warnings(choir_log_level level, const char *line, void *user)
{
	(void) user;
	warnings += level == CHOIR_LOG_WARNING && strstr(line, "reads no files") != NULL;
}

static bool reads_files(const source_kind *kind)
{
	static const char *const others[] = { "memory", "generator", "seekable", "queue", "range",
		"constant", "digits", "image" };
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		if (strstr(kind->constructor, others[i]))
			return false;
	return (choir_has_feature("zlib") || !strstr(kind->constructor, "npz")) &&
			(choir_has_feature("hdf5") || !strstr(kind->constructor, "hdf5"));
}

// What reads no files cannot be sharded by them, and AUTO then is DATA, with a warning; too few
// files are the same error for every worker, and under AUTO too.
// spec: B16, E39, E41, V10, 2.12, 2.19
TEST(what_cannot_be_sharded_by_file)
{
	choir_strategy *s = worker_strategy(1);
	choir_logger_set(CHOIR_LOG_WARNING, count_warnings, NULL);
	for (size_t k = 0; k < source_kind_count; k++)
		for (int w = 0; w < 6; w++) { // more than any of the kinds has files
			const source_kind *kind = &source_kinds[k];
			choir_distributed_dataset *data =
					in_threes(s, kind->make(), 6, w, CHOIR_AUTO_SHARD_FILE);
			assert_null(data);
			if (reads_files(kind))
				assert_input_failed(CHOIR_INVALID, "6 workers*1");
			else
				assert_input_failed(CHOIR_NOT_FOUND, "sharding by file*\"*files");
			warnings = 0;
			data = in_threes(s, kind->make(), 6, w, CHOIR_AUTO_SHARD_AUTO);
			assert_int_equal(warnings, !reads_files(kind));
			if (reads_files(kind)) {
				assert_null(data);
				assert_input_failed(CHOIR_INVALID, "6 workers*1");
				continue;
			}
			assert_true(choir_distributed_dataset_fell_back(data));
			assert_int_equal(choir_distributed_dataset_auto_shard(data), CHOIR_AUTO_SHARD_DATA);
		}
	choir_logger_set(CHOIR_LOG_WARNING, NULL, NULL);
	choir_strategy_free(s);
	kinds_wait();
}

static choir_status two_names(int64_t position, void *const out[], void *user)
{
	(void) user;
	*(int64_t *) out[0] = position;
	return position == 2 ? CHOIR_END : CHOIR_OK;
}

// Files that a function of the program opens: their names are dealt out. How many there are may
// show only when they are read.
// spec: E39, V10, 2.12, 2.19
TEST(too_few_names_of_files)
{
	const choir_column name = { "number", CHOIR_I64, CHOIR_SCALAR, NULL };
	choir_strategy *s = worker_strategy(1);
	static reading l;
	write_files(2);
	for (int w = 0; w < 3; w++) {
		choir_dataset *d = choir_dataset_batch(files(worker_numbers(2)), 2);
		assert_null(of_worker(s, d, 3, w, CHOIR_AUTO_SHARD_FILE, 0));
		assert_input_failed(CHOIR_INVALID, "interleave:*2*3 workers*1");
		d = files(choir_generator_dataset_new(1, &name, two_names, NULL));
		read_steps(of_worker(s, choir_dataset_batch(d, 2), 3, w, CHOIR_AUTO_SHARD_FILE, 0), 1, &l);
		assert_int_equal(l.steps, 0);
		assert_int_equal(l.status, CHOIR_INVALID);
		assert_input_failed(CHOIR_INVALID, "shard:*2 elements*3 shards*1");
		// No names at all are the end.
		d = choir_dataset_batch(files(worker_numbers(0)), 2);
		read_steps(of_worker(s, d, 3, w, CHOIR_AUTO_SHARD_FILE, 0), 1, &l);
		assert_int_equal(l.steps, 0);
		assert_int_equal(l.status, CHOIR_END);
	}
	assert_null(of_worker(s, choir_dataset_batch(worker_numbers(4), 2), 1, 2,
			CHOIR_AUTO_SHARD_FILE, 0)); // one worker: there is no worker 2
	assert_input_failed(CHOIR_INVALID, "worker 2*0");
	assert_null(of_worker(
			s, choir_dataset_batch(worker_numbers(4), 2), -3, 0, CHOIR_AUTO_SHARD_DATA, 0));
	assert_input_failed(CHOIR_INVALID, "-3 workers*1*65536");
	choir_strategy_free(s);
}

TEST_GROUP(kinds_begin, kinds_end)
