// Positions of workers that read data of their own each, by files, by hint, from a function, or
// with auto-sharding off: what a checkpoint in the middle of a pass keeps of all of them, that
// each goes on from its own, and that nobody goes on with another's. Workers are threads, in a
// played cluster.
#include "base/hash.h"
#include "process_group.h"
#include "train/files.h"
#include "train/saved.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

enum { WORKERS = 3, MAX_STEPS = 60, REPLICAS = 5 };

// ---- Data of unequal lengths.

static const int rows_of_file[] = { 2300, 40, 1500, 9 };
enum { FILES = sizeof rows_of_file / sizeof rows_of_file[0] };

static char pattern[512];

static void write_files(void)
{
	static char text[2 + 6 * 2300];
	for (int f = 0, number = 0; f < FILES; f++) {
		char name[32];
		size_t length = (size_t) sprintf(text, "x\n");
		for (int i = 0; i < rows_of_file[f]; i++)
			length += (size_t) sprintf(text + length, "%d\n", number++);
		snprintf(name, sizeof name, "part-%d.csv", f);
		files_write(files_path(name), text, length);
	}
	snprintf(pattern, sizeof pattern, "%s", files_path("part-?.csv"));
}

// More rows than lie between two remembered places.
static choir_dataset *files(void)
{
	const choir_csv_column c = { .name = "x", .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_I64 };
	choir_dataset *d = choir_csv_dataset_new(
			pattern, CHOIR_OPTIONS(choir_csv_options, .columns = 1, .column = &c));
	return choir_dataset_batch(choir_dataset_shuffle(d, 50, 3), 170);
}

static choir_dataset *numbers(int64_t n, int64_t batch)
{
	return choir_dataset_batch(
			choir_dataset_shuffle(choir_range_dataset_new("x", 0, n, 1), 9, 1), batch);
}

static choir_dataset *of_pipeline(const choir_input_context *c, void *user)
{
	(void) user;
	return numbers(20 + 31 * c->input_pipeline, 3);
}

typedef enum { BY_FILE, BY_HINT, OFF, FUNCTION, DATA, WAYS } way;

static choir_distributed_dataset *distribute(choir_strategy *s, int worker, way w)
{
	static const choir_auto_shard policy[WAYS] = { CHOIR_AUTO_SHARD_FILE, CHOIR_AUTO_SHARD_HINT,
		CHOIR_AUTO_SHARD_OFF, CHOIR_AUTO_SHARD_DATA, CHOIR_AUTO_SHARD_DATA };
	choir_input_options o = { .size = sizeof o, .auto_shard = policy[w] };
	choir_dataset *d = NULL;
	switch (w) {
	case BY_FILE:
		d = files();
		break;
	case BY_HINT:
		d = choir_dataset_batch(choir_dataset_shard(choir_range_dataset_new("x", 0, 101, 1),
										CHOIR_SHARD_HINT, CHOIR_SHARD_HINT),
				7);
		break;
	case OFF:
		o.global_batch = 7; // which cuts batches in two
		d = numbers(25 + 20 * worker, 4);
		break;
	case DATA:
		d = numbers(50, 5);
		break;
	case FUNCTION:
	case WAYS:
		return choir_strategy_distribute_datasets_from_function(s, of_pipeline, NULL, &o);
	}
	return choir_strategy_distribute_dataset(s, d, &o);
}

// ---- A pass, whole and in two halves.

typedef struct {
	way w;
	int stop; // behind so many steps
	const char *directory;
	int steps[WORKERS];
	uint64_t seen[WORKERS][MAX_STEPS]; // what a worker's replicas got in each step
} passing;

static uint64_t look(choir_values *batch)
{
	choir_value *v = choir_values_find(batch, "x");
	uint64_t hash = 1;
	for (int r = 0; r < choir_value_local_count(v); r++) {
		choir_tensor *t = choir_value_local(v, r);
		const int64_t n = choir_tensor_shape(t)->dim[0];
		hash = chi_hash_mix(hash ^ (uint64_t) n);
		for (int64_t i = 0; i < n; i++)
			hash = chi_hash_mix(hash ^ (uint64_t) ((const int64_t *) choir_tensor_data(t))[i]);
	}
	return hash;
}

// Up to so many steps, from step first on; CHOIR_END: the pass ended before.
static choir_status read_on(
		choir_distributed_dataset *data, int first, int steps, uint64_t seen[], int *end)
{
	choir_values *batch = NULL;
	choir_status status = CHOIR_OK;
	*end = first;
	while (steps-- > 0 && *end < MAX_STEPS &&
			(status = choir_distributed_dataset_next(data, &batch)) == CHOIR_OK)
		seen[(*end)++] = look(batch);
	choir_values_free(batch);
	return status;
}

static choir_status whole_pass(choir_strategy *s, int worker, passing *p)
{
	choir_distributed_dataset *data = distribute(s, worker, p->w);
	const choir_status status = read_on(data, 0, MAX_STEPS, p->seen[worker], &p->steps[worker]);
	return status == CHOIR_END ? CHOIR_OK
							   : choir_fail(CHOIR_INTERNAL, "no end: %s", choir_error());
}

static choir_status first_half(choir_strategy *s, int worker, const passing *p)
{
	uint64_t seen[MAX_STEPS];
	int end;
	choir_distributed_dataset *data = distribute(s, worker, p->w);
	CHOIR_TRY(read_on(data, 0, p->stop, seen, &end));
	choir_checkpoint_manager *m = choir_checkpoint_manager_new(s, p->directory, NULL);
	choir_status status =
			m == NULL ? choir_error_status() : choir_checkpoint_manager_save(m, NULL);
	choir_checkpoint_manager_free(m);
	return status;
}

static choir_status restore(choir_strategy *s, const char *directory)
{
	choir_checkpoint_manager *m = choir_checkpoint_manager_new(s, directory, NULL);
	const choir_status status =
			m == NULL ? choir_error_status() : choir_checkpoint_manager_restore_latest(m);
	choir_checkpoint_manager_free(m);
	return status;
}

static choir_status second_half(choir_strategy *s, int worker, const passing *p)
{
	uint64_t seen[MAX_STEPS] = { 0 };
	int end;
	choir_distributed_dataset *data = distribute(s, worker, p->w);
	CHOIR_TRY(read_on(data, 0, 2, seen, &end)); // it has gone elsewhere
	CHOIR_TRY(restore(s, p->directory));
	const choir_status status = read_on(data, p->stop, MAX_STEPS, seen, &end);
	if (status != CHOIR_END)
		return status == CHOIR_OK ? choir_fail(CHOIR_INTERNAL, "no end") : status;
	if (end != p->steps[worker] ||
			memcmp(seen + p->stop, p->seen[worker] + p->stop,
					(size_t) (end - p->stop) * sizeof seen[0]) != 0)
		return choir_fail(CHOIR_INTERNAL, "way %d, stopped behind step %d: other examples",
				(int) p->w, p->stop);
	return CHOIR_OK;
}

static const char *whole_fn(choir_strategy *s, int worker, void *user)
{
	return whole_pass(s, worker, user) == CHOIR_OK ? NULL : choir_error();
}

static const char *first_fn(choir_strategy *s, int worker, void *user)
{
	return first_half(s, worker, user) == CHOIR_OK ? NULL : choir_error();
}

static const char *second_fn(choir_strategy *s, int worker, void *user)
{
	return second_half(s, worker, user) == CHOIR_OK ? NULL : choir_error();
}

static void on_workers(int workers, peers_fn *fn, void *user)
{
	static uint64_t seed;
	peers_run(&(peers_job){ .replicas = REPLICAS,
			.place = { workers, "cpu:0" },
			.seed = ++seed,
			.fn = fn,
			.user = user });
}

// In the middle, and where some workers have no more to read.
// spec: D30, 2.11
TEST(each_worker_goes_on_from_its_own_place)
{
	char directory[512];
	for (way w = BY_FILE; w < DATA; w++) {
		static passing p;
		p = (passing){ .w = w, .directory = directory };
		on_workers(WORKERS, whole_fn, &p);
		assert_true(p.steps[0] > 3 && p.steps[0] < MAX_STEPS);
		const int stops[] = { p.steps[0] / 3, p.steps[0] - 1 };
		for (int i = 0; i < 2; i++) {
			snprintf(directory, sizeof directory, "%s", saved_directory());
			p.stop = stops[i];
			on_workers(WORKERS, first_fn, &p);
			on_workers(WORKERS, second_fn, &p);
		}
	}
}

// ---- Another's place is refused, by all alike, and the job goes on.

typedef struct {
	way w;
	const char *directory, *text;
} refused;

static const char *refused_fn(choir_strategy *s, int worker, void *user)
{
	static _Thread_local char wrong[700];
	const refused *r = user;
	uint64_t seen[MAX_STEPS];
	int end;
	choir_distributed_dataset *data = distribute(s, worker, r->w);
	const choir_status status = data == NULL ? choir_error_status() : restore(s, r->directory);
	snprintf(wrong, sizeof wrong, "worker %d: %s: %s", worker, choir_status_name(status),
			choir_error());
	const bool right = status == CHOIR_INVALID && strstr(choir_error(), r->text) != NULL;
	return right && read_on(data, 0, 2, seen, &end) == CHOIR_OK ? NULL : wrong;
}

TEST(other_workers_and_policies_are_refused)
{
	char own[512], common[512];
	snprintf(own, sizeof own, "%s", saved_directory());
	snprintf(common, sizeof common, "%s", saved_directory());
	on_workers(3, first_fn, &(passing){ .w = OFF, .stop = 2, .directory = own });
	on_workers(3, first_fn, &(passing){ .w = DATA, .stop = 2, .directory = common });
	refused fewer = { OFF, own,
		"\"dataset\" is of 3 workers under OFF, here it is of 2 workers under OFF; the same "
		"policy and number of workers needed" };
	on_workers(2, refused_fn, &fewer);
	refused policy = { FUNCTION, own,
		"is of 3 workers under OFF, here it is of 3 workers under a function; " };
	on_workers(3, refused_fn, &policy);
	refused all = { DATA, own,
		"is of 3 workers under OFF, here it is one for all (DATA, or one worker); " };
	on_workers(3, refused_fn, &all);
	refused parts = { BY_FILE, common,
		"is one for all (DATA, or one worker), here it is of 2 workers under FILE; " };
	on_workers(2, refused_fn, &parts);
	choir_strategy *s = choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .replicas = 2, .seed = 11));
	assert_null(refused_fn(s, 0, &all));
	choir_strategy_free(s);
}

// ---- Data that have no place to go back to.

typedef struct {
	bool queue; // else numbers whose position no checkpoint keeps
	choir_toggle checkpoint;
	const char *directory;
	choir_status needed; // of restoring; CHOIR_END: a checkpoint is saved instead
} staying;

enum { PUT = 40 };

static choir_distributed_dataset *distribute_staying(
		choir_strategy *s, const staying *g, choir_queue **queue)
{
	const choir_column x = { .name = "x", .dtype = CHOIR_I64 };
	choir_dataset *d = g->queue ? choir_queue_dataset_new(1, &x, NULL, queue)
								: choir_range_dataset_new("x", 0, PUT, 1);
	return choir_strategy_distribute_dataset(s, d,
			CHOIR_OPTIONS(choir_input_options, .auto_shard = CHOIR_AUTO_SHARD_OFF,
					.global_batch = 8, .checkpoint = g->checkpoint));
}

static choir_status put_numbers(choir_queue *q)
{
	int64_t numbers[PUT];
	const void *column = numbers;
	for (int i = 0; i < PUT; i++)
		numbers[i] = i;
	return q == NULL ? CHOIR_OK : choir_queue_put(q, PUT, &column, 5);
}

// Two steps and a checkpoint; or a restore, after which all that is there comes.
static choir_status stay(
		choir_strategy *s, const staying *g, choir_distributed_dataset *data, choir_queue *q)
{
	uint64_t seen[MAX_STEPS], first[MAX_STEPS];
	int end;
	CHOIR_TRY(put_numbers(q));
	if (g->needed == CHOIR_END) {
		CHOIR_TRY(read_on(data, 0, 2, seen, &end));
		choir_checkpoint_manager *m = choir_checkpoint_manager_new(s, g->directory, NULL);
		const choir_status status =
				m == NULL ? choir_error_status() : choir_checkpoint_manager_save(m, NULL);
		choir_checkpoint_manager_free(m);
		return status;
	}
	const choir_status status = restore(s, g->directory);
	if (status != g->needed)
		return choir_fail(
				CHOIR_INTERNAL, "restored with %s: %s", choir_status_name(status), choir_error());
	CHOIR_TRY(read_on(data, 0, 2, seen, &end));
	choir_queue *other = NULL; // of another dataset, from its first example
	choir_distributed_dataset *begun = distribute_staying(s, g, &other);
	choir_status read = begun == NULL ? choir_error_status() : put_numbers(other);
	if (read == CHOIR_OK)
		read = read_on(begun, 0, 2, first, &end);
	choir_queue_free(other);
	CHOIR_TRY(read);
	return memcmp(seen, first, 2 * sizeof seen[0]) == 0
			? CHOIR_OK
			: choir_fail(CHOIR_INTERNAL, "it is not where it was");
}

static const char *stay_fn(choir_strategy *s, int worker, void *user)
{
	(void) worker;
	choir_queue *q = NULL;
	choir_distributed_dataset *data = s == NULL ? NULL : distribute_staying(s, user, &q);
	const choir_status status = data == NULL ? choir_error_status() : stay(s, user, data, q);
	choir_queue_free(q);
	return status == CHOIR_OK ? NULL : choir_error();
}

TEST(a_queue_goes_on_with_other_workers)
{
	char directory[512];
	staying g = { .queue = true, .directory = directory };
	snprintf(directory, sizeof directory, "%s", saved_directory());
	g.needed = CHOIR_END;
	on_workers(2, stay_fn, &g);
	g.needed = CHOIR_OK;
	on_workers(4, stay_fn, &g);
	choir_strategy *s = choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .replicas = 2, .seed = 11));
	const char *wrong = stay_fn(s, 0, &g);
	if (wrong != NULL)
		fail_msg("%s", wrong);
	choir_strategy_free(s);
}

TEST(a_position_may_be_left_out)
{
	char with[512], without[512];
	snprintf(with, sizeof with, "%s", saved_directory());
	snprintf(without, sizeof without, "%s", saved_directory());
	on_workers(3, stay_fn, &(staying){ .directory = with, .needed = CHOIR_END });
	on_workers(3, stay_fn, &(staying){ false, CHOIR_OFF, without, CHOIR_END });
	for (int workers = 2; workers <= 3; workers++) {
		on_workers(workers, stay_fn, &(staying){ false, CHOIR_OFF, with, CHOIR_OK });
		on_workers(workers, stay_fn, &(staying){ false, CHOIR_OFF, without, CHOIR_OK });
		on_workers(workers, stay_fn, &(staying){ false, CHOIR_ON, without, CHOIR_INVALID });
	}
	on_workers(2, stay_fn, &(staying){ false, CHOIR_ON, with, CHOIR_INVALID });
}

// The n-th allocation fails while they save and restore: all end, each with a text.
static const char *lacking_fn(choir_strategy *s, int worker, void *user)
{
	passing *p = user;
	choir_status status = s == NULL ? choir_error_status() : first_half(s, worker, p);
	if (status == CHOIR_OK)
		status = restore(s, p->directory);
	return status == CHOIR_OK || choir_error()[0] != '\0' ? NULL : "a failure without a text";
}

TEST(each_allocation_fails)
{
	char directory[512];
	passing p = { .w = OFF, .stop = 1, .directory = directory };
	snprintf(directory, sizeof directory, "%s", saved_directory());
	const peers_job job = { .replicas = 2, .place = { 2, "cpu:0" }, .fn = lacking_fn, .user = &p };
	peers_every_allocation(job, 12);
}

static int begin(void **state)
{
	(void) state;
	write_files();
	return 0;
}

TEST_GROUP(begin, files_teardown)
