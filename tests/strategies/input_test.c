// Data of several workers that are in step, each a thread in a played cluster: who gets what, that
// all stop together however much each of them has, how many examples there are in a step, and that
// a failure of one is one of all.
#include "process_group.h"
#include "plain_kernels.h"

#include "data/data.h"
#include "input/worker.h"
#include "value/value.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORKERS = 4 };

// What all workers do: read a dataset to its end, and what each of them found.
typedef struct {
	choir_dataset *(*make)(int worker);
	choir_input_options o;
	choir_dataset_fn *fn; // instead of make
	bool means; // of the examples of each step are asked for
	float mean[WORKERS][MAX_STEPS];
	reading found[WORKERS];
	int64_t all[WORKERS][MAX_STEPS]; // examples of each step, of all workers
	char failure[WORKERS][600];
} job;

static choir_status find_mean(choir_replica *r, void *user)
{
	choir_tensor *t = choir_cast(choir_replica_arg(r, "number"), CHOIR_F32);
	t = choir_replica_all_reduce(r, CHOIR_SUM, choir_replica_average_loss(r, t));
	return choir_tensor_to_host(t, user, sizeof(float)); // replicas of a device take turns
}

static const char *note(choir_values *batch, reading *l, int64_t all[])
{
	choir_value *v = choir_values_find(batch, "number");
	for (int r = 0; r < choir_value_local_count(v); r++) {
		choir_tensor *t = choir_value_local(v, r);
		const int64_t n = choir_tensor_shape(t)->dim[0];
		if (n > MAX || l->steps == MAX_STEPS)
			return "too many examples or steps";
		l->rows[l->steps][r] = n;
		if (n > 0)
			memcpy(l->number[l->steps][r], choir_tensor_data(t), (size_t) n * sizeof(int64_t));
	}
	all[l->steps++] = chi_values_global_examples(batch);
	return NULL;
}

static const char *read_pass(choir_strategy *s, choir_distributed_dataset *data, const job *j,
		reading *l, int64_t all[], float mean[])
{
	choir_values *batch = NULL;
	const char *wrong = NULL;
	memset(l, 0, sizeof *l);
	while (wrong == NULL &&
			(l->status = choir_distributed_dataset_next(data, &batch)) == CHOIR_OK) {
		wrong = note(batch, l, all);
		if (wrong == NULL && j->means &&
				choir_strategy_run(s, find_mean, &mean[l->steps - 1], batch, NULL) != CHOIR_OK)
			wrong = choir_error();
	}
	choir_values_free(batch);
	return wrong;
}

static const char *be_worker(choir_strategy *s, int worker, void *user)
{
	static _Thread_local int64_t all[MAX_STEPS];
	static _Thread_local float mean[MAX_STEPS];
	job *j = user;
	if (s == NULL)
		return choir_error();
	choir_distributed_dataset *data = j->fn != NULL
			? choir_strategy_distribute_datasets_from_function(s, j->fn, &worker, &j->o)
			: choir_strategy_distribute_dataset(s, j->make(worker), &j->o);
	if (data == NULL)
		return choir_error();
	const char *wrong = read_pass(s, data, j, &j->found[worker], j->all[worker], j->mean[worker]);
	if (wrong != NULL)
		return wrong;
	snprintf(j->failure[worker], sizeof j->failure[0], "%s", choir_error());
	if (choir_distributed_dataset_rewind(data) != CHOIR_OK)
		return choir_error();
	reading *again = malloc(sizeof *again);
	wrong = read_pass(s, data, j, again, all, mean);
	if (wrong == NULL && memcmp(again, &j->found[worker], sizeof *again) != 0)
		wrong = "the second pass differs";
	free(again);
	return wrong;
}

static void run(job *j, int workers, int replicas)
{
	for (uint64_t seed = 1; seed < 4; seed++)
		peers_run(&(peers_job){ .replicas = replicas,
				.place = { workers, "cpu:0" },
				.seed = seed,
				.fn = be_worker,
				.user = j });
	for (int w = 1; w < workers; w++)
		if (j->found[w].steps != j->found[0].steps)
			fail_msg("worker %d: %d steps, worker 0 %d", w, j->found[w].steps, j->found[0].steps);
	for (int k = 0; k < j->found[0].steps; k++) {
		int64_t rows = 0;
		for (int w = 0; w < workers; w++)
			for (int r = 0; r < MAX_REPLICAS; r++)
				rows += j->found[w].rows[k][r];
		for (int w = 0; w < workers; w++)
			assert_int_equal(j->all[w][k], rows);
		assert_true(rows > 0);
	}
}

static job new_job(choir_dataset *(*make)(int worker), choir_auto_shard policy)
{
	return (job){ .make = make,
		.o = { .size = sizeof(choir_input_options), .auto_shard = policy } };
}

// ---- Who gets what.

static choir_dataset *twenty_three(int worker)
{
	(void) worker;
	return choir_dataset_batch(worker_numbers(23), 5);
}

static choir_dataset *unknown_batches(int worker)
{
	choir_dataset *d = choir_dataset_batch(worker_numbers(23), 5);
	(void) worker;
	return choir_dataset_padded_batch(choir_dataset_unbatch(d), 8, NULL);
}

// spec: V9, 2.11, 2.12
TEST(under_data_all_get_what_one_worker_would)
{
	static const struct {
		int workers, replicas;
	} places[] = { { 2, 2 }, { 2, 4 }, { 3, 3 }, { 3, 4 }, { 4, 6 } };
	static const int64_t batches[] = { 0, 1, 7, 10 };
	for (size_t p = 0; p < sizeof places / sizeof places[0]; p++)
		for (size_t b = 0; b < 4; b++) {
			static reading whole;
			const int n = places[p].replicas, workers = places[p].workers;
			choir_strategy *one = worker_strategy(n);
			read_steps(of_worker(one, twenty_three(0), 1, 0, CHOIR_AUTO_SHARD_DATA, batches[b]), n,
					&whole);
			choir_strategy_free(one);
			static job j;
			j = new_job(p % 2 ? unknown_batches : twenty_three, CHOIR_AUTO_SHARD_DATA);
			j.o.global_batch = batches[b] ? batches[b] : 5;
			j.o.read_ahead_steps = (int) p;
			run(&j, workers, n);
			assert_int_equal(j.found[0].steps, whole.steps);
			for (int w = 0, first = 0; w < workers; w++) {
				const int r = n / workers + (w < n % workers);
				assert_int_equal(j.found[w].status, CHOIR_END);
				for (int k = 0; k < whole.steps; k++) {
					assert_rows(&j.found[w], k, r, &whole.rows[k][first]);
					assert_memory_equal(j.found[w].number[k], whole.number[k][first],
							(size_t) r * sizeof whole.number[0][0]);
				}
				first += r;
			}
		}
}

// Each number that a worker has comes once.
static void assert_all_came(const job *j, int worker, int64_t n)
{
	int seen[MAX] = { 0 };
	const reading *l = &j->found[worker];
	for (int k = 0; k < l->steps; k++)
		for (int r = 0; r < MAX_REPLICAS; r++)
			for (int64_t i = 0; i < l->rows[k][r]; i++)
				seen[l->number[k][r][i]]++;
	for (int i = 0; i < MAX; i++)
		assert_int_equal(seen[i], i < n);
}

static int64_t length_of(int worker)
{
	static const int64_t length[WORKERS] = { 17, 3, 0, 30 };
	return length[worker];
}

static choir_dataset *unequal(int worker)
{
	return choir_dataset_batch(worker_numbers(length_of(worker)), 7);
}

static choir_dataset *unequal_unknown(int worker)
{
	return choir_dataset_unbatch(choir_dataset_batch(worker_numbers(length_of(worker)), 7));
}

static choir_dataset *make_unequal(const choir_input_context *c, void *user)
{
	return c->input_pipeline == *(int *) user
			? choir_dataset_batch(worker_numbers(length_of(c->input_pipeline)), 2)
			: NULL;
}

// Workers whose data have ended go on without examples until all have.
// spec: 2.11, B20
TEST(all_stop_together_however_much_each_has)
{
	static job j;
	for (int workers = 2; workers <= WORKERS; workers++)
		for (int replicas = workers; replicas <= workers + 3; replicas += 3)
			for (int way = 0; way < 3; way++) {
				j = new_job(way ? unequal_unknown : unequal, CHOIR_AUTO_SHARD_OFF);
				j.o.global_batch = way < 2 ? 7 : 0;
				j.fn = way == 2 ? make_unequal : NULL;
				j.o.read_ahead_steps = workers - 2;
				run(&j, workers, replicas);
				for (int w = 0; w < workers; w++) {
					assert_int_equal(j.found[w].status, CHOIR_END);
					assert_all_came(&j, w, length_of(w));
				}
			}
	// The cyclic list: 1 over two workers. Worker 1 has nothing to give in the second step, when
	// worker 0's are at their end, so that would be one without any example: there is none.
	j = new_job(unequal, CHOIR_AUTO_SHARD_OFF);
	j.o.global_batch = 1;
	run(&j, 2, 2);
	assert_all_came(&j, 0, 17);
	assert_all_came(&j, 1, 3);
	for (int k = 0; k < j.found[0].steps; k++)
		assert_in_range(j.all[0][k], 1, 1);
}

static char directory[] = "/tmp/choir-workers-XXXXXX";

static choir_status widen(const choir_component in[], choir_component out[], void *user)
{
	(void) user;
	((int64_t *) out[0].data)[0] = ((const uint8_t *) in[0].data)[0];
	return CHOIR_OK;
}

// Three files of 3, 2 and 9 bytes.
static choir_dataset *three_files(int worker)
{
	static const char *const text[] = { "\0\1\2", "\3\4", "\5\6\7\10\11\12\13\14\15" };
	static const size_t bytes[] = { 3, 2, 9 };
	const choir_column column = { "number", CHOIR_I64, CHOIR_SCALAR, NULL };
	const choir_field field = { .name = "byte", .dtype = CHOIR_U8 };
	char pattern[64];
	for (int f = 0; worker < 0 && f < 3; f++) {
		char path[64];
		snprintf(path, sizeof path, "%s/%d", directory, f);
		FILE *file = fopen(path, "wb");
		assert_non_null(file);
		assert_int_equal(fwrite(text[f], 1, bytes[f], file), bytes[f]);
		assert_int_equal(fclose(file), 0);
	}
	snprintf(pattern, sizeof pattern, "%s/?", directory);
	choir_dataset *d = choir_fixed_length_record_dataset_new(pattern, 1, &field, NULL);
	d = choir_dataset_map(
			d, CHOIR_OPTIONS(choir_map_options, .n = 1, .columns = &column), widen, NULL);
	return choir_dataset_batch(d, 4);
}

// spec: 2.12, B9
TEST(files_of_unequal_lengths_end_together)
{
	static job j;
	choir_dataset_free(three_files(-1));
	j = new_job(three_files, CHOIR_AUTO_SHARD_FILE);
	run(&j, 2, 2); // worker 0: files 0 and 2, 12 bytes; worker 1: file 1, 2 bytes
	assert_int_equal(j.found[0].steps, 6);
	assert_int_equal(j.found[0].number[0][0][0], 0);
	assert_int_equal(j.found[1].number[0][0][0], 3);
	for (int k = 1; k < 6; k++)
		assert_int_equal(j.found[1].rows[k][0], 0);
	for (int f = 0; f < 3; f++) {
		char path[64];
		snprintf(path, sizeof path, "%s/%d", directory, f);
		unlink(path);
	}
}

// The mean of a step's examples, whoever has them.
static double mean_of_step(const job *j, int workers, int step)
{
	double sum = 0, n = 0;
	for (int w = 0; w < workers; w++)
		for (int r = 0; r < MAX_REPLICAS; r++)
			for (int64_t i = 0; i < j->found[w].rows[step][r]; i++, n++)
				sum += (double) j->found[w].number[step][r][i];
	return sum / n;
}

// Means are over the examples that there really are: replicas with fewer of them weigh less.
// spec: 2.11
TEST(means_count_what_is_there)
{
	static job j;
	for (int workers = 2; workers <= WORKERS; workers++) {
		j = new_job(unequal, CHOIR_AUTO_SHARD_OFF);
		j.means = true;
		run(&j, workers, workers + 1);
		for (int w = 0; w < workers; w++)
			for (int k = 0; k < j.found[0].steps; k++)
				assert_true(fabs(j.mean[w][k] - mean_of_step(&j, workers, k)) < 1e-4);
	}
}

// ---- Failures.

static choir_status fail_at_nine(int64_t position, void *const out[], void *user)
{
	if (position == 9 && user != NULL)
		return choir_fail(CHOIR_IO, "a disk is on fire");
	*(int64_t *) out[0] = position;
	return position < 12 ? CHOIR_OK : CHOIR_END;
}

static choir_dataset *worker_1_fails(int worker)
{
	static int yes;
	const choir_column column = { "number", CHOIR_I64, CHOIR_SCALAR, NULL };
	return choir_dataset_batch(
			choir_generator_dataset_new(1, &column, fail_at_nine, worker == 1 ? &yes : NULL), 2);
}

// spec: 2.11, 2.19
TEST(a_failure_of_one_is_one_of_all)
{
	static job j;
	for (int policy = 0; policy < 2; policy++) {
		j = new_job(worker_1_fails, policy ? CHOIR_AUTO_SHARD_OFF : CHOIR_AUTO_SHARD_DATA);
		run(&j, 3, 3); // and again: the same pass is read twice
		for (int w = 0; w < 3; w++) {
			assert_int_equal(j.found[w].status, w == 1 ? CHOIR_IO : CHOIR_CANCELLED);
			assert_non_null(strstr(j.failure[w], "a disk is on fire"));
		}
		assert_non_null(strstr(j.failure[0], "distributed dataset: worker 1: "));
		assert_int_equal(j.found[0].steps, policy ? 4 * 3 : 4);
	}
}

// Worker 1 alone cannot go where it is to go; the others hear of it in the next step.
static const char *go_apart(choir_strategy *s, int worker, void *user)
{
	const choir_status *expected = user;
	choir_values *batch = NULL;
	choir_input_position p = { .size = sizeof p };
	choir_distributed_dataset *data =
			s == NULL ? NULL : choir_strategy_distribute_dataset(s, twenty_three(worker), NULL);
	if (data == NULL || choir_distributed_dataset_save(data, &p) != CHOIR_OK)
		return choir_error();
	p.elements = worker == 1 ? 100 : 1;
	p.steps = 1;
	choir_status status = choir_distributed_dataset_restore(data, &p);
	if (status != (worker == 1 ? CHOIR_INVALID : CHOIR_OK))
		return "the restore is not what it should be";
	for (int i = 0; i < 2; i++) { // it stays, and nobody waits for the others
		status = choir_distributed_dataset_next(data, &batch);
		if (status != expected[worker] || !text_holds(choir_error(), "5 elements"))
			return "not all have failed";
	}
	status = choir_distributed_dataset_rewind(data);
	if (status == CHOIR_OK)
		status = choir_distributed_dataset_next(data, &batch);
	choir_values_free(batch);
	return status == CHOIR_OK ? NULL : choir_error();
}

TEST(a_failed_restore_of_one_is_told_to_all)
{
	static choir_status expected[] = { CHOIR_CANCELLED, CHOIR_INVALID, CHOIR_CANCELLED };
	peers_run(&(peers_job){
			.replicas = 3, .place = { 3, "cpu:0" }, .seed = 1, .fn = go_apart, .user = expected });
}

static choir_dataset *worker_2_has_less(int worker)
{
	return choir_dataset_batch(
			choir_dataset_unbatch(choir_dataset_batch(worker_numbers(worker == 2 ? 10 : 12), 3)),
			4);
}

TEST(data_that_differ_under_data_are_found)
{
	static job j;
	j = new_job(worker_2_has_less, CHOIR_AUTO_SHARD_DATA);
	run(&j, 3, 3);
	for (int w = 0; w < 3; w++) {
		assert_int_equal(j.found[w].status, CHOIR_INVALID);
		assert_int_equal(j.found[w].steps, 2);
		assert_string_equal(j.failure[w],
				"distributed dataset: step 2: worker 2 read 2 examples, worker 0 read 4; all "
				"workers need the same data");
	}
}

static int make_directory(void **state)
{
	(void) state;
	return mkdtemp(directory) == NULL ? -1 : 0;
}

static int remove_directory(void **state)
{
	(void) state;
	return rmdir(directory);
}

TEST_GROUP(make_directory, remove_directory)
