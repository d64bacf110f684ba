// What workers that are in step make of data, each a thread in a played cluster: that all make a
// distributed dataset or none, arrays of the first worker, and who reads what.
#include "process_group.h"

#include "data/data.h"
#include "input/worker.h"
#include "value/value.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

enum { WORKERS = 4 };

static choir_dataset *twenty_three(int worker)
{
	(void) worker;
	return choir_dataset_batch(worker_numbers(23), 5);
}

// What each worker gets where its distributed dataset is made.
typedef struct {
	choir_dataset *(*make)(int worker);
	int64_t batch[2]; // of worker 0, and of others
	int workers; // in the options of worker 1
	choir_auto_shard policy; // of all workers but 0
	char text[WORKERS][400];
} making;

static const char *make_one(choir_strategy *s, int worker, void *user)
{
	making *m = user;
	if (s == NULL)
		return choir_error();
	choir_distributed_dataset *data = choir_strategy_distribute_dataset(s, m->make(worker),
			CHOIR_OPTIONS(choir_input_options, .global_batch = m->batch[worker > 0],
					.auto_shard = worker > 0 ? m->policy : CHOIR_AUTO_SHARD_DATA,
					.workers = worker == 1 ? m->workers : 0));
	snprintf(m->text[worker], sizeof m->text[0], "%s", data == NULL ? choir_error() : "");
	// After it, all can go on.
	data = choir_strategy_distribute_dataset(s, twenty_three(worker), NULL);
	return data == NULL ? choir_error() : NULL;
}

static void make_all(making *m)
{
	peers_run(&(peers_job){
			.replicas = 3, .place = { 3, "cpu:0" }, .seed = 5, .fn = make_one, .user = m });
}

static choir_dataset *worker_2_has_none(int worker)
{
	return worker == 2 ? choir_idx_dataset_new("/nowhere/at-all", "number") : twenty_three(worker);
}

static choir_dataset *worker_2_has_other_steps(int worker)
{
	return worker == 2 ? choir_dataset_take(twenty_three(worker), 3) : twenty_three(worker);
}

static choir_dataset *worker_2_has_another_name(int worker)
{
	return choir_dataset_batch(
			choir_range_dataset_new(worker == 2 ? "count" : "number", 0, 23, 1), 5);
}

static choir_dataset *worker_2_begins_elsewhere(int worker)
{
	return choir_dataset_batch(choir_range_dataset_new("number", worker == 2, 23, 1), 5);
}

static void assert_made(making *m, int worker, const char *text)
{
	if (strstr(m->text[worker], text) == NULL)
		fail_msg("worker %d: \"%s\" does not say \"%s\"", worker, m->text[worker], text);
}

// spec: 2.12, 2.19
TEST(all_make_it_or_none)
{
	static making m;
	m = (making){ .make = worker_2_has_none };
	make_all(&m);
	assert_made(&m, 2, "/nowhere/at-all");
	assert_made(&m, 0, "distributed dataset: worker 2: ");
	assert_made(&m, 1, "/nowhere/at-all");
	m = (making){ .make = worker_2_has_other_steps };
	make_all(&m);
	for (int w = 0; w < 3; w++)
		assert_made(&m, w,
				"worker 2's dataset has the stages memory dataset, batch, take, worker 0's has "
				"memory dataset, batch; under");
	m = (making){ .make = worker_2_has_another_name };
	make_all(&m);
	for (int w = 0; w < 3; w++)
		assert_made(&m, w,
				"column 0: worker 2's dataset has \"count\" i64 [], worker 0's has \"number\" i64 "
				"[]; under the policy DATA");
	m = (making){ .make = worker_2_begins_elsewhere };
	make_all(&m);
	assert_made(&m, 1, "worker 2's dataset has other seeds, sizes or data than worker 0's in");
	m = (making){ .make = twenty_three, .policy = CHOIR_AUTO_SHARD_OFF };
	make_all(&m);
	for (int w = 0; w < 3; w++)
		assert_made(&m, w, "worker 1 has the policy OFF, worker 0 has DATA");
	m = (making){ .make = twenty_three, .batch = { 6, 9 } };
	make_all(&m);
	for (int w = 0; w < 3; w++)
		assert_made(&m, w, "worker 1 has a global batch of 9, worker 0 has 6");
	m = (making){ .make = twenty_three, .workers = 2 };
	make_all(&m);
	assert_made(&m, 1, "worker 0 of 2 given; in the strategy's cluster this is worker 1 of 3");
	assert_made(&m, 0, "distributed dataset: worker 1: distribute_dataset: worker 0 of 2");
}

// ---- Arrays of the first worker.

typedef struct {
	const char *other; // name of worker 2's column
	bool lacks; // the first worker's data
	char text[WORKERS][400];
} arrays;

static const char *take_arrays(choir_strategy *s, int worker, void *user)
{
	arrays *a = user;
	static const float pairs[5][2] = { { 0, 1 }, { 2, 3 }, { 4, 5 }, { 6, 7 }, { 8, 9 } };
	static const uint8_t bytes[5] = { 9, 8, 7, 6, 5 };
	const bool has = worker == 0 && !a->lacks;
	const choir_column columns[] = { { worker == 2 ? a->other : "pair", CHOIR_F32, { 1, { 2 } },
											 has ? pairs : NULL },
		{ "byte", CHOIR_U8, CHOIR_SCALAR, has ? bytes : NULL } };
	if (s == NULL)
		return choir_error();
	choir_dataset *d = choir_strategy_make_memory_dataset(s, worker == 0 ? 5 : 77, 2, columns);
	snprintf(a->text[worker], sizeof a->text[0], "%s", d == NULL ? choir_error() : "");
	float pair[2];
	uint8_t byte;
	chi_element e = { .column = { pair, &byte }, .capacity = 1 };
	const char *wrong = NULL;
	for (int i = 0; d != NULL && wrong == NULL && i < 5; i++)
		if (chi_dataset_next(d, &e) != CHOIR_OK || memcmp(pair, pairs[i], sizeof pair) != 0 ||
				byte != bytes[i])
			wrong = "other values than the first worker's";
	if (d != NULL && wrong == NULL && chi_dataset_next(d, &e) != CHOIR_END)
		wrong = "more than the first worker's examples";
	choir_dataset_free(d);
	return wrong;
}

static void run_arrays(arrays *a)
{
	peers_run(&(peers_job){
			.replicas = 3, .place = { 3, "cpu:0" }, .seed = 5, .fn = take_arrays, .user = a });
}

// spec: B24
TEST(arrays_of_the_first_worker_are_all_workers)
{
	static arrays a;
	a = (arrays){ .other = "pair" };
	run_arrays(&a);
	for (int w = 0; w < 3; w++)
		assert_string_equal(a.text[w], "");
	a = (arrays){ .other = "bear" };
	run_arrays(&a);
	for (int w = 0; w < 3; w++)
		assert_non_null(strstr(a.text[w], "worker 2's columns differ from worker 0's"));
	a = (arrays){ .other = "pair", .lacks = true };
	run_arrays(&a);
	assert_non_null(strstr(a.text[0], "column \"pair\" has no data; the first worker needs"));
	assert_non_null(strstr(a.text[1], "worker 0: arrays: "));
}

static const char *describe(choir_strategy *s, int worker, void *user)
{
	char *text = user;
	if (s == NULL)
		return choir_error();
	choir_distributed_dataset *data =
			choir_strategy_distribute_dataset(s, twenty_three(worker), NULL);
	if (worker == 1)
		choir_distributed_dataset_describe(data, text, 1000);
	return data == NULL ? choir_error() : NULL;
}

TEST(unequal_workers_are_described)
{
	char text[1000] = "";
	peers_run(&(peers_job){
			.replicas = 3, .place = { 2, "cpu:0" }, .seed = 5, .fn = describe, .user = text });
	assert_string_equal(text,
			"worker 0 reads everything\n"
			"  replica 0: examples 0 to 1 of each global batch of 5\n"
			"  replica 1: examples 2 to 3 of each global batch of 5\n"
			"worker 1 reads everything (this worker)\n"
			"  replica 2: examples 4 to 4 of each global batch of 5\n");
}
