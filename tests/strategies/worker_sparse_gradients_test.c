// Rows of tables that several workers of a parameter server share: what one worker computes is
// what a strategy of one computes, nothing is lost between two, no copy of a table is made, and a
// read of the whole beside them is a copy as ever.
#include "base/alloc.h"
#include "plain_kernels.h"
#include "short.h"
#include "test.h"

#include <choir/choir.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Each of three shards of ROWS is large enough that its gradients are rows.
enum {
	ROWS = 13000,
	WIDTH = 8,
	IDS = 24,
	STEPS = SHORT ? 6 : 12,
	ELEMENTS = ROWS * WIDTH,
	LARGE_ROWS = 60000
};

typedef struct {
	choir_variable *table, *w;
	choir_optimizer *optimizer;
	int only; // the worker that trains; -1: all
	bool whole, again; // the table is read, too; rows are taken in a segment
	int32_t rows;
} job;

typedef struct {
	const job *of;
	int worker, step;
} turn;

static void works(choir_status status)
{
	if (status != CHOIR_OK)
		fail_msg("%s: %s", choir_status_name(status), choir_error());
}

static choir_strategy *open(const char *kind, int workers, choir_toggle locked, int shards)
{
	choir_strategy_options o = { .size = sizeof o,
		.devices = workers > 1 ? "cpu:0,cpu:1" : "cpu:0",
		.replicas = workers,
		.seed = 5,
		.partition = shards > 0 ? CHOIR_PARTITION_FIXED : CHOIR_PARTITION_NONE,
		.max_shards = shards };
	if (workers > 1) {
		o.workers = workers;
		o.locked_updates = locked;
	}
	choir_strategy *s = choir_strategy_new(kind, &o);
	if (s == NULL)
		fail_msg("%s", choir_error());
	return s;
}

static void open_job(job *j, choir_strategy *s, choir_optimizer_kind kind, int32_t rows)
{
	j->rows = rows;
	CHOIR_SCOPE (s) {
		j->table = choir_variable_new("table", CHOIR_SHAPE(rows, WIDTH),
				CHOIR_OPTIONS(choir_variable_options, .initializer = CHOIR_INITIALIZER_NORMAL));
		j->w = choir_variable_new("w", CHOIR_SHAPE(WIDTH, 1),
				CHOIR_OPTIONS(choir_variable_options, .initializer = CHOIR_INITIALIZER_NORMAL));
		j->optimizer = choir_optimizer_new(
				kind, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.125));
	}
	if (j->table == NULL || j->w == NULL || j->optimizer == NULL)
		fail_msg("%s", choir_error());
}

static choir_tensor *embed(choir_tensor *const in[], void *user)
{
	const job *j = user;
	return choir_tanh(choir_matmul(choir_variable_gather(j->table, in[0]),
			choir_variable_read(j->w, choir_tensor_frame(in[0])), CHOIR_TRANSPOSED_NONE));
}

// Some rows, of which some twice; the first half by one call and the others by another.
static choir_status step(choir_replica *r, void *user)
{
	const turn *t = user;
	job *j = (job *) (uintptr_t) t->of;
	choir_tape *tape = choir_tape_begin(r->frame);
	int32_t id[IDS];
	for (int i = 0; i < IDS; i++)
		id[i] = (int32_t) ((97 * t->step + 31 * i * (i % 5) + 1009 * t->worker) % j->rows);
	choir_tensor *y = NULL;
	for (int half = 0; half < 2; half++) {
		choir_tensor *x =
				choir_constant(r->frame, CHOIR_I32, CHOIR_SHAPE(IDS / 2), id + half * (IDS / 2));
		choir_tensor *part = j->again ? choir_recompute(1, &x, embed, j) : embed(&x, j);
		y = y == NULL ? part : choir_add(y, part);
		if (j->whole && half == 0)
			y = choir_add(y, choir_mean(choir_variable_read(j->table, r->frame), CHOIR_ALL_AXES));
	}
	return choir_optimizer_minimize(
			j->optimizer, choir_mean(choir_square(y), CHOIR_ALL_AXES), tape);
}

static choir_status train(choir_strategy *group, int worker, void *user)
{
	turn t = { .of = user, .worker = worker };
	if (t.of->only >= 0 && t.of->only != worker)
		return CHOIR_OK;
	for (; t.step < STEPS; t.step++)
		CHOIR_TRY(choir_strategy_run(group, step, &t, NULL, NULL));
	return CHOIR_OK;
}

static float *fetch(choir_variable *v)
{
	const size_t bytes = (size_t) choir_shape_elements(choir_variable_shape(v)) * sizeof(float);
	float *host = malloc(bytes);
	choir_frame *f = choir_frame_new(NULL);
	works(choir_tensor_to_host(choir_variable_read(v, f), host, bytes));
	choir_frame_free(f);
	return host;
}

static float *trained(const char *kind, int workers, choir_toggle locked, int shards,
		choir_optimizer_kind optimizer, const job *how)
{
	choir_strategy *s = open(kind, workers, locked, shards);
	job j = *how;
	open_job(&j, s, optimizer, ROWS);
	works(choir_strategy_run_workers(s, train, &j));
	float *table = fetch(j.table);
	choir_strategy_free(s);
	return table;
}

// One of two workers trains, with and without locks and shards: the bits of a strategy in which no
// read is a copy.
// spec: 2.14, 2.15
TEST(a_worker_alone_computes_what_one_does)
{
	static const choir_optimizer_kind kinds[] = { CHOIR_SGD, CHOIR_ADAM };
	for (int kind = 0; kind < 2; kind++)
		for (int form = 0; form < 4; form++) {
			const job how = { .only = 0, .whole = form & 1, .again = form & 2 };
			float *expected = trained("one_device", 1, CHOIR_ON, 0, kinds[kind], &how);
			for (int way = 0; way < 4; way++) {
				float *got = trained("parameter_server", 2, way & 1 ? CHOIR_OFF : CHOIR_ON,
						way & 2 ? 3 : 0, kinds[kind], &how);
				assert_memory_equal(got, expected, ELEMENTS * sizeof *got);
				free(got);
			}
			free(expected);
		}
}

// ---- Nothing is lost.

// The gradient of every row that is taken is -1, whatever it is.
static choir_status count(choir_replica *r, void *user)
{
	const turn *t = user;
	const job *j = t->of;
	choir_tape *tape = choir_tape_begin(r->frame);
	int32_t id[IDS];
	for (int i = 0; i < IDS; i++)
		id[i] = (7 * i + t->step) % 40;
	choir_tensor *rows = choir_variable_gather(
			j->table, choir_constant(r->frame, CHOIR_I32, CHOIR_SHAPE(IDS), id));
	return choir_optimizer_minimize(
			j->optimizer, choir_scale(choir_sum(rows, CHOIR_ALL_AXES), -8), tape);
}

static choir_status count_often(choir_strategy *group, int worker, void *user)
{
	turn t = { .of = user, .worker = worker };
	for (; t.step < 20 * STEPS; t.step++)
		CHOIR_TRY(choir_strategy_run(group, count, &t, NULL, NULL));
	return CHOIR_OK;
}

// spec: 2.14
TEST(two_workers_lose_nothing_under_locks)
{
	for (int shards = 0; shards < 4; shards += 3) {
		choir_strategy *s = open("parameter_server", 2, CHOIR_ON, shards);
		job j = { .only = -1 };
		open_job(&j, s, CHOIR_SGD, ROWS);
		float *before = fetch(j.table);
		float *zeros = calloc(ELEMENTS, sizeof *zeros);
		choir_frame *f = choir_frame_new(NULL);
		works(choir_variable_assign(
				j.table, choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(ROWS, WIDTH), zeros)));
		choir_frame_free(f);
		works(choir_strategy_run_workers(s, count_often, &j));
		float *after = fetch(j.table);
		static int64_t taken[ROWS];
		memset(taken, 0, sizeof taken);
		for (int k = 0; k < 20 * STEPS; k++)
			for (int i = 0; i < IDS; i++)
				taken[(7 * i + k) % 40] += 2;
		for (int64_t i = 0; i < ELEMENTS; i++)
			assert_true((int64_t) after[i] == taken[i / WIDTH]);
		free(before);
		free(zeros);
		free(after);
		choir_strategy_free(s);
	}
}

// Without locks every element is one that somebody wrote, and rows that nobody takes stay.
TEST(without_locks_elements_are_whole)
{
	choir_strategy *s = open("parameter_server", 2, CHOIR_OFF, 0);
	job j = { .only = -1 };
	open_job(&j, s, CHOIR_SGD, ROWS);
	choir_frame *f = choir_frame_new(NULL);
	works(choir_variable_assign(j.table, choir_number(f, 0)));
	choir_frame_free(f);
	works(choir_strategy_run_workers(s, count_often, &j));
	float *after = fetch(j.table);
	for (int64_t i = 0; i < ELEMENTS; i++) {
		const bool used = i / WIDTH < 40;
		assert_true(after[i] == (float) (int64_t) after[i] && (after[i] > 0) == used);
	}
	free(after);
	choir_strategy_free(s);
}

// ---- No copy of the table.

TEST(no_table_is_copied)
{
	const size_t table = (size_t) LARGE_ROWS * WIDTH * sizeof(float);
	for (int way = 0; way < 4; way++) {
		choir_strategy *s =
				open("parameter_server", 2, way & 1 ? CHOIR_OFF : CHOIR_ON, way & 2 ? 2 : 0);
		job j = { .only = -1 };
		open_job(&j, s, CHOIR_SGD, LARGE_ROWS);
		const uint64_t before = chi_alloc_bytes();
		works(choir_strategy_run_workers(s, train, &j));
		const uint64_t used = chi_alloc_bytes() - before;
		if (used > table / 2)
			fail_msg("%llu bytes for steps beside a table of %zu", (unsigned long long) used,
					table);
		choir_strategy_free(s);
	}
}

// ---- A row that is none.

static choir_status take_none(choir_replica *r, void *user)
{
	const job *j = user;
	const int32_t id = ROWS;
	choir_tensor *rows = choir_variable_gather(
			j->table, choir_constant(r->frame, CHOIR_I32, CHOIR_SHAPE(1), &id));
	return rows == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_status take_none_once(choir_strategy *group, int worker, void *user)
{
	return worker == 0 ? choir_strategy_run(group, take_none, user, NULL, NULL) : CHOIR_OK;
}

TEST(a_row_that_is_none)
{
	for (int way = 0; way < 2; way++) {
		choir_strategy *s = open("parameter_server", 2, way ? CHOIR_OFF : CHOIR_ON, 0);
		job j = { .only = -1 };
		open_job(&j, s, CHOIR_SGD, ROWS);
		assert_int_equal(choir_strategy_run_workers(s, take_none_once, &j), CHOIR_INVALID);
		assert_text_holds(choir_error(), "gather: index 13000*12999");
		choir_strategy_free(s);
	}
}
