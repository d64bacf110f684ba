// Gradients that are rows of a large variable stay rows between workers, and change it to the bits
// that one worker does.
#include "process_group.h"
#include "short.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "test.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 3, STEPS = 6, REPLICAS = 4, MAX_ROWS = 400 };

typedef struct {
	choir_optimizer_kind kind;
	double clip;
	int64_t rows; // of the table
	uint64_t lacks; // which allocation from the first step on fails; 0: none
	float expected[MAX_ROWS * WIDTH], small[2];
} job;

typedef struct {
	const job *of;
	choir_optimizer *optimizer;
	choir_variable *table, *w;
	int step;
} training;

// Some rows, one of them twice; none in replica 1 of every third step; in the last many.
static choir_tensor *gradient(choir_replica *r, const training *t)
{
	const int id = choir_replica_id(r);
	const int64_t n = t->step == 5 ? t->of->rows : id == 1 && t->step % 3 == 1 ? 0 : 4;
	int64_t row[MAX_ROWS];
	float values[MAX_ROWS * WIDTH];
	for (int64_t i = 0; i < n; i++)
		row[i] = i == 3 ? 2 : (5 * i + id * id + t->step) % t->of->rows;
	for (int64_t i = 0; i < n * WIDTH; i++)
		values[i] = (float) sin(1.0 + 3 * id + 5 * t->step + 7 * (double) i);
	choir_tensor *slices = choir_indexed_slices(
			choir_constant(r->frame, CHOIR_F32, CHOIR_SHAPE(n, WIDTH), values),
			choir_constant(r->frame, CHOIR_I64, CHOIR_SHAPE(n), row), t->of->rows);
	return t->step == 4 && id == 2 ? choir_to_dense(slices) : slices; // one gives a tensor
}

static choir_status step(choir_replica *r, void *user)
{
	const training *t = user;
	choir_tensor *w = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 0.5 + choir_replica_id(r));
	if (choir_optimizer_add_gradient(t->optimizer, r, t->table, gradient(r, t)) != CHOIR_OK ||
			choir_optimizer_add_gradient(t->optimizer, r, t->w, w) != CHOIR_OK)
		return choir_error_status();
	return choir_optimizer_apply_gradients(t->optimizer, r);
}

static const char *fetch(choir_variable *v, void *to, size_t bytes)
{
	choir_frame *f = choir_frame_new(NULL);
	const choir_status status = choir_tensor_to_host(choir_variable_read(v, f), to, bytes);
	choir_frame_free(f);
	return status == CHOIR_OK ? NULL : choir_error();
}

static const char *train(choir_strategy *s, const job *j, float table[], float small[2])
{
	training t = { .of = j };
	if (s == NULL)
		return choir_error();
	CHOIR_SCOPE (s) {
		t.table = choir_variable_new("table", CHOIR_SHAPE(j->rows, WIDTH), NULL);
		t.w = choir_variable_new("w", CHOIR_SHAPE(2), NULL);
		t.optimizer = choir_optimizer_new(
				j->kind, CHOIR_OPTIONS(choir_optimizer_options, .global_clip_norm = j->clip));
	}
	if (j->lacks > 0 && choir_strategy_is_chief(s))
		chi_alloc_fail(j->lacks, false);
	for (; t.optimizer != NULL && t.step < STEPS; t.step++)
		if (choir_strategy_run(s, step, &t, NULL, NULL) != CHOIR_OK)
			return choir_error();
	if (t.optimizer == NULL)
		return choir_error();
	const char *wrong = fetch(t.table, table, (size_t) j->rows * WIDTH * sizeof *table);
	return wrong != NULL ? wrong : fetch(t.w, small, 2 * sizeof *small);
}

static const char *train_here(choir_strategy *s, int worker, void *user)
{
	const job *j = user;
	float table[MAX_ROWS * WIDTH], small[2];
	(void) worker;
	const char *wrong = train(s, j, table, small);
	if (wrong != NULL)
		return wrong;
	if (memcmp(small, j->small, sizeof small) != 0)
		return "the small variable is another";
	return memcmp(table, j->expected, (size_t) j->rows * WIDTH * sizeof *table) == 0
			? NULL
			: "the table is another";
}

// spec: 2.9, 2.17
TEST(the_bits_of_one_worker)
{
	static const peers_place places[] = { { 2, "cpu:0" }, { 2, "cpu:0,cpu:1" },
		{ 3, "cpu:0,cpu:1" }, { 4, "cpu:0" }, { 2, "cpu:0,far:0" } };
	static const choir_optimizer_kind kinds[] = { CHOIR_SGD, CHOIR_ADAM };
	for (int kind = 0; kind < 2; kind++)
		for (int clipped = 0; clipped < 2; clipped++) {
			static job j;
			j = (job){ .kind = kinds[kind], .clip = clipped * 0.75, .rows = 40 };
			choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(
					choir_strategy_options, .replicas = REPLICAS, .devices = "cpu:0", .seed = 11));
			const char *wrong = train(s, &j, j.expected, j.small);
			if (wrong != NULL)
				fail_msg("%s", wrong);
			choir_strategy_free(s);
			for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
				peers_run(&(peers_job){ .replicas = REPLICAS,
						.place = places[i],
						.seed = i,
						.fn = train_here,
						.user = &j });
		}
}

// ---- Where memory is missing.

static const char *train_somehow(choir_strategy *s, int worker, void *user)
{
	const job *j = user;
	float table[MAX_ROWS * WIDTH], small[2];
	(void) worker;
	const char *wrong = train(s, j, table, small);
	if (wrong != NULL)
		return wrong[0] != '\0' && choir_error_status() != CHOIR_OK ? NULL : "no reason is given";
	return memcmp(table, j->expected, (size_t) j->rows * WIDTH * sizeof *table) == 0
			? NULL
			: "it went well, but the table is another";
}

// Any allocation of either worker fails: who goes on all the same has the right rows.
TEST(every_allocation)
{
	static job j;
	j = (job){ .kind = CHOIR_ADAM, .rows = 40 };
	choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(
			choir_strategy_options, .replicas = REPLICAS, .devices = "cpu:0", .seed = 11));
	assert_null(train(s, &j, j.expected, j.small));
	choir_strategy_free(s);
	j.lacks = 1;
	uint64_t stride = STRIDE;
	for (bool failed = true; failed; j.lacks += stride, stride += j.lacks > 40) {
		peers_run(&(peers_job){ .replicas = REPLICAS,
				.place = { 2, "cpu:0,cpu:1" },
				.fn = train_somehow,
				.user = &j });
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
	}
	assert_true(j.lacks > 40);
}

// ---- What goes between workers.

typedef struct {
	int64_t rows;
	choir_optimizer *optimizer[2]; // of each worker
	choir_variable *table[2];
} large;

static choir_status give_one_row(choir_replica *r, void *user)
{
	const large *l = user;
	const int id = choir_replica_id(r);
	const int64_t row = id * 7;
	const float values[WIDTH] = { 1, 2, 3 };
	choir_tensor *slices = choir_indexed_slices(
			choir_constant(r->frame, CHOIR_F32, CHOIR_SHAPE(1, WIDTH), values),
			choir_constant(r->frame, CHOIR_I64, CHOIR_SHAPE(1), &row), l->rows);
	CHOIR_TRY(choir_optimizer_add_gradient(l->optimizer[id], r, l->table[id], slices));
	return choir_optimizer_apply_gradients(l->optimizer[id], r);
}

static const char *update_large(choir_strategy *s, int worker, void *user)
{
	large *l = user;
	if (s == NULL)
		return choir_error();
	CHOIR_SCOPE (s) {
		l->table[worker] = choir_variable_new("table", CHOIR_SHAPE(l->rows, WIDTH), NULL);
		l->optimizer[worker] = choir_optimizer_new(CHOIR_SGD, NULL);
	}
	for (int i = 0; i < STEPS; i++)
		if (l->optimizer[worker] == NULL ||
				choir_strategy_run(s, give_one_row, l, NULL, NULL) != CHOIR_OK)
			return choir_error();
	return NULL;
}

// spec: 2.17
TEST(only_rows_travel)
{
	uint64_t bytes[2];
	for (int i = 0; i < 2; i++) {
		large l = { .rows = i == 0 ? 1000 : 100000 };
		peers_run(&(peers_job){ .replicas = 2,
				.place = { 2, "cpu:0" },
				.fn = update_large,
				.user = &l,
				.bytes = &bytes[i] });
	}
	assert_int_equal(bytes[1], bytes[0]);
	assert_true(bytes[0] > 0);
}

// ---- What is refused, and what is not written.

typedef struct {
	choir_variable *table;
	choir_optimizer *optimizer;
	bool tensor[2]; // what is given first and second: rows or a tensor
} pair;

static choir_tensor *one_row(choir_replica *r, bool dense)
{
	const int64_t row = 3;
	const float values[2] = { 1, 1 };
	choir_tensor *slices =
			choir_indexed_slices(choir_constant(r->frame, CHOIR_F32, CHOIR_SHAPE(1, 2), values),
					choir_constant(r->frame, CHOIR_I64, CHOIR_SHAPE(1), &row), 8);
	return dense ? choir_to_dense(slices) : slices;
}

// Between the two every replica of a device has given its first.
static choir_status give_twice(choir_replica *r, void *user)
{
	const pair *p = user;
	for (int i = 0; i < 2; i++) {
		CHOIR_TRY(
				choir_optimizer_add_gradient(p->optimizer, r, p->table, one_row(r, p->tensor[i])));
		for (int m = 0; m < 2; m++)
			if (choir_replica_all_reduce(r, CHOIR_SUM, choir_number(r->frame, 1)) == NULL)
				return choir_error_status();
	}
	return choir_optimizer_apply_gradients(p->optimizer, r);
}

static choir_status fail_late(choir_replica *r, void *user)
{
	const pair *p = user;
	CHOIR_TRY(choir_optimizer_add_gradient(p->optimizer, r, p->table, one_row(r, p->tensor[0])));
	CHOIR_TRY(choir_optimizer_apply_gradients(p->optimizer, r));
	if (choir_replica_id(r) == 0)
		return CHOIR_OK;
	chi_thread_nap(5e-3);
	return choir_fail(CHOIR_IO, "the disk is full");
}

// On one device, two, and for each kind of update, of rows alone and of all slices.
static void on_devices(void (*test)(choir_strategy *s, pair *p))
{
	for (int i = 0; i < 4; i++) {
		pair p = { NULL, NULL, { false, false } };
		choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
				.replicas = 2, .devices = i % 2 == 0 ? "cpu:0" : "cpu:0,cpu:1"));
		CHOIR_SCOPE (s) {
			p.table = choir_variable_new("table", CHOIR_SHAPE(8, 2), NULL);
			p.optimizer = choir_optimizer_new(i < 2 ? CHOIR_SGD : CHOIR_ADAM, NULL);
		}
		test(s, &p);
		choir_strategy_free(s);
	}
}

static void refuse_twice(choir_strategy *s, pair *p)
{
	for (int how = 0; how < 3; how++) {
		p->tensor[0] = how == 1;
		p->tensor[1] = how == 2;
		assert_int_equal(choir_strategy_run(s, give_twice, p, NULL, NULL), CHOIR_INVALID);
		assert_text_holds(choir_error(), "\"table\"");
	}
}

TEST(rows_given_twice)
{
	on_devices(refuse_twice);
}

static void write_nothing(choir_strategy *s, pair *p)
{
	float table[16], zeros[16] = { 0 };
	for (int dense = 0; dense < 2; dense++) {
		p->tensor[0] = dense == 1;
		assert_int_equal(choir_strategy_run(s, fail_late, p, NULL, NULL), CHOIR_IO);
		assert_text_holds(choir_error(), "the disk is full");
		assert_null(fetch(p->table, table, sizeof table));
		assert_memory_equal(table, zeros, sizeof table);
	}
}

// An update waits until the replicas of all devices have returned, whatever it is of.
TEST(rows_of_a_run_that_fails)
{
	on_devices(write_nothing);
}
