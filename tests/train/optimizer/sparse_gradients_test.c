// Gradients that are slices change variables to the bits that the larger tensors would.
#include "train/problem.h"

#include "base/alloc.h"
#include "choir/op.h"
#include "train/optimizer/optimizer.h"
#include "short.h"
#include "test.h"

#include <math.h>
#include <string.h>

enum { TABLE = 9, WIDTH = 3, REPLICAS = 3, STEPS = 4 };

typedef struct {
	choir_optimizer *optimizer;
	choir_variable *v, *w;
	int t;
	bool dense, merged; // larger tensors; in a merge call
	bool mixed; // larger tensors from replica 1 alone
} job;

// Rows 0, 2, 4, .. and one that stands twice; no rows at all in replica 1 of every other step.
static choir_tensor *gradient(choir_replica *r, const job *j)
{
	const int id = choir_replica_id(r);
	const int64_t n = id == 1 && j->t % 2 == 1 ? 0 : 4;
	const int64_t rows[] = { 0, 2 * id, 4, 2 * id };
	float values[4 * WIDTH];
	for (int i = 0; i < 4 * WIDTH; i++)
		values[i] = (float) sin(1.0 + 3 * id + 5 * j->t + 7 * i);
	choir_tensor *t = choir_indexed_slices(
			choir_constant(r->frame, CHOIR_F32, CHOIR_SHAPE(n, WIDTH), values),
			choir_constant(r->frame, CHOIR_I64, CHOIR_SHAPE(n), rows), TABLE);
	return j->dense || (j->mixed && id == 1) ? choir_to_dense(t) : t;
}

static choir_status apply_merged(choir_cross *x, void *user)
{
	const job *j = user;
	choir_value *const gradients[] = { choir_cross_arg(x, "v"), choir_cross_arg(x, "w") };
	choir_variable *const variables[] = { j->v, j->w };
	return choir_optimizer_distributed_apply(j->optimizer, x, 2, variables, gradients);
}

static choir_status step(choir_replica *r, void *user)
{
	const job *j = user;
	choir_tensor *v = gradient(r, j), *w = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 0.5);
	if (j->merged) {
		choir_replica_set_arg(r, "v", v);
		choir_replica_set_arg(r, "w", w);
		return choir_replica_merge_call(r, apply_merged, user);
	}
	CHOIR_TRY(choir_optimizer_add_gradient(j->optimizer, r, j->v, v));
	CHOIR_TRY(choir_optimizer_add_gradient(j->optimizer, r, j->w, w));
	return choir_optimizer_apply_gradients(j->optimizer, r);
}

static void train(const char *devices, choir_optimizer_kind kind, double clip, bool dense,
		bool merged, float have[TABLE * WIDTH])
{
	choir_strategy *s = mirrored(devices, REPLICAS);
	job j = { .dense = dense, .merged = merged };
	CHOIR_SCOPE (s) {
		j.v = choir_variable_new("v", CHOIR_SHAPE(TABLE, WIDTH), NULL);
		j.w = choir_variable_new("w", CHOIR_SHAPE(2), NULL);
		j.optimizer = choir_optimizer_new(
				kind, CHOIR_OPTIONS(choir_optimizer_options, .global_clip_norm = clip));
	}
	assert_non_null(j.optimizer);
	for (; j.t < STEPS; j.t++)
		if (choir_strategy_run(s, step, &j, NULL, NULL) != CHOIR_OK)
			fail_msg("%s: %s", devices, choir_error());
	fetch_variable(j.v, have, TABLE * WIDTH * sizeof *have);
	choir_strategy_free(s);
}

// spec: 2.9, A28, C26
TEST(the_bits_of_the_larger_tensors)
{
	static const char *const layouts[] = { "cpu:0", "cpu:0,cpu:1", "far:0,far:1" };
	for (int kind = CHOIR_SGD; kind <= CHOIR_LION; kind++)
		for (int clipped = 0; clipped < 2; clipped++) {
			float expected[TABLE * WIDTH], have[TABLE * WIDTH];
			const double clip = clipped == 0 ? 0 : 0.75;
			train("cpu:0", (choir_optimizer_kind) kind, clip, true, false, expected);
			for (int i = 0; i < 3; i++)
				for (int merged = 0; merged < 2; merged++) {
					train(layouts[i], (choir_optimizer_kind) kind, clip, false, merged == 1, have);
					assert_memory_equal(have, expected, sizeof have);
				}
		}
}

// A decay, which moves every row, and a replica that gives the larger tensor.
TEST(what_cannot_go_by_rows)
{
	for (int decay = 0; decay < 2; decay++) {
		float have[3][TABLE * WIDTH];
		for (int form = 0; form < 3; form++) {
			choir_strategy *s = mirrored("cpu:0,cpu:1", REPLICAS);
			job j = { .dense = form == 0, .mixed = form == 1 };
			CHOIR_SCOPE (s) {
				j.v = choir_variable_new("v", CHOIR_SHAPE(TABLE, WIDTH),
						CHOIR_OPTIONS(
								choir_variable_options, .initializer = CHOIR_INITIALIZER_ONES));
				j.w = choir_variable_new("w", CHOIR_SHAPE(2), NULL);
				j.optimizer = choir_optimizer_new(decay ? CHOIR_ADAMW : CHOIR_SGD,
						CHOIR_OPTIONS(choir_optimizer_options, .weight_decay = decay * 0.5));
			}
			assert_non_null(j.optimizer);
			for (; j.t < STEPS; j.t++)
				if (choir_strategy_run(s, step, &j, NULL, NULL) != CHOIR_OK)
					fail_msg("%s", choir_error());
			fetch_variable(j.v, have[form], sizeof have[form]);
			choir_strategy_free(s);
		}
		assert_memory_equal(have[1], have[0], sizeof have[0]);
		assert_memory_equal(have[2], have[0], sizeof have[0]);
	}
}

// ---- Tables of several slices of an update, which rows do not end at.

enum { LONG = 3000, NARROW = 7, TAKEN = 40 };

typedef struct {
	choir_optimizer *optimizer;
	choir_variable *v;
	int t;
	bool dense;
} table_job;

// Rows all over the table, of which some are the same in all replicas, some lie across the ends of
// slices, and most move only because the rule goes on without a gradient.
static choir_status step_of_table(choir_replica *r, void *user)
{
	const table_job *j = user;
	int32_t rows[TAKEN];
	float values[TAKEN * NARROW];
	for (int i = 0; i < TAKEN; i++)
		rows[i] = i < 4 ? (8192 * (i / 2 + 1)) / NARROW + i % 2
						: (i * 997 + j->t * 31 + choir_replica_id(r) * (i % 3)) % LONG;
	for (int i = 0; i < TAKEN * NARROW; i++)
		values[i] = (float) sin(1.0 + 3 * choir_replica_id(r) + 5 * j->t + 7 * i);
	choir_tensor *t = choir_indexed_slices(
			choir_constant(r->frame, CHOIR_F32, CHOIR_SHAPE(TAKEN, NARROW), values),
			choir_constant(r->frame, CHOIR_I32, CHOIR_SHAPE(TAKEN), rows), LONG);
	CHOIR_TRY(
			choir_optimizer_add_gradient(j->optimizer, r, j->v, j->dense ? choir_to_dense(t) : t));
	return choir_optimizer_apply_gradients(j->optimizer, r);
}

// The most memory that a step took beside what it begins with, in bytes.
static size_t train_table(const char *devices, choir_optimizer_kind kind,
		const choir_optimizer_options *o, bool dense, float have[LONG * NARROW])
{
	choir_strategy *s = mirrored(devices, REPLICAS);
	choir_device *d = choir_strategy_worker_device(s, 0);
	table_job j = { .dense = dense };
	size_t before = 0, max = 0;
	CHOIR_SCOPE (s) {
		j.v = choir_variable_new("v", CHOIR_SHAPE(LONG, NARROW), NULL);
		j.optimizer = choir_optimizer_new(kind, o);
	}
	assert_non_null(j.optimizer);
	for (; j.t < STEPS; j.t++) {
		if (j.t == 1) { // the slots are there
			before = chi_buffer_in_use(d);
			chi_buffer_reset_peak(d);
		}
		if (choir_strategy_run(s, step_of_table, &j, NULL, NULL) != CHOIR_OK)
			fail_msg("%s: %s", devices, choir_error());
	}
	max = chi_buffer_peak(d) - before;
	fetch_variable(j.v, have, LONG * NARROW * sizeof *have);
	choir_strategy_free(s);
	return max;
}

// spec: 2.9
TEST(every_rule_by_rows)
{
	static float expected[LONG * NARROW], have[LONG * NARROW];
	static const struct {
		choir_optimizer_kind kind;
		choir_optimizer_options o;
	} rules[] = {
		{ CHOIR_SGD, { .size = sizeof(choir_optimizer_options) } },
		{ CHOIR_MOMENTUM, { .size = sizeof(choir_optimizer_options), .nesterov = CHOIR_ON } },
		{ CHOIR_ADAM, { .size = sizeof(choir_optimizer_options) } },
		{ CHOIR_ADAMW, { .size = sizeof(choir_optimizer_options), .weight_decay = 0.1 } },
		{ CHOIR_RMSPROP, { .size = sizeof(choir_optimizer_options), .momentum = 0.5 } },
	};
	const size_t table = LONG * NARROW * sizeof(float);
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
		const size_t max = train_table("cpu:0", rules[i].kind, &rules[i].o, true, expected);
		assert_true(max >= table);
		for (int devices = 0; devices < 2; devices++) {
			const size_t rows = train_table(devices == 0 ? "cpu:0" : "cpu:0,cpu:1", rules[i].kind,
					&rules[i].o, false, have);
			assert_memory_equal(have, expected, sizeof have);
			assert_true(rows < table); // no gradient became as large as the table
		}
	}
}

static choir_status one_step(choir_strategy *s, job *j, choir_optimizer_kind kind)
{
	CHOIR_SCOPE (s) {
		j->v = choir_variable_new("v", CHOIR_SHAPE(TABLE, WIDTH), NULL);
		j->w = choir_variable_new("w", CHOIR_SHAPE(2), NULL);
		j->optimizer = choir_optimizer_new(kind, NULL);
	}
	return j->v == NULL || j->w == NULL || j->optimizer == NULL
			? choir_error_status()
			: choir_strategy_run(s, step, j, NULL, NULL);
}

TEST(every_allocation_fails)
{
	for (int way = 0; way < 3; way++)
		for (uint64_t n = 1;; n += SERIAL_STRIDE) {
			choir_strategy *s = mirrored("cpu:0,cpu:1", REPLICAS);
			job j = { .mixed = way == 1 };
			chi_alloc_fail(n, false);
			const choir_status status = one_step(s, &j, way == 2 ? CHOIR_ADAM : CHOIR_SGD);
			const bool failed = chi_alloc_failed();
			chi_alloc_fail(0, false);
			assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
			choir_strategy_free(s);
			if (!failed)
				break;
		}
}

static choir_status give_wrong_slices(choir_replica *r, void *user)
{
	const job *j = user;
	choir_tensor *t = gradient(r, j);
	if (j->t == 0)
		return choir_optimizer_add_gradient(j->optimizer, r, j->w, t);
	float bad[WIDTH] = { 1, (float) NAN, 1 };
	t = choir_indexed_slices(choir_constant(r->frame, CHOIR_F32, CHOIR_SHAPE(1, WIDTH), bad),
			choir_constant(r->frame, CHOIR_I32, CHOIR_SHAPE(1), (const int32_t[]){ 7 }), TABLE);
	return choir_optimizer_add_gradient(j->optimizer, r, j->v, t);
}

TEST(slices_that_do_not_fit)
{
	choir_strategy *s = mirrored("cpu:0", 1);
	job j = { 0 };
	CHOIR_SCOPE (s) {
		j.v = choir_variable_new("v", CHOIR_SHAPE(TABLE, WIDTH), NULL);
		j.w = choir_variable_new("w", CHOIR_SHAPE(2), NULL);
		j.optimizer = choir_optimizer_new(CHOIR_SGD, NULL);
	}
	assert_failed(choir_strategy_run(s, give_wrong_slices, &j, NULL, NULL), CHOIR_INVALID,
			"\"w\"*f32*[9, 3]*[2]");
	j.t = 1;
	assert_failed(choir_strategy_run(s, give_wrong_slices, &j, NULL, NULL), CHOIR_INVALID,
			"\"v\"*[7, 1]");
	choir_strategy_free(s);
}

// After a few steps, with as many rows in each.
static uint64_t allocations(
		const char *devices, choir_optimizer_kind kind, double clip, bool merged)
{
	choir_strategy *s = mirrored(devices, REPLICAS);
	job j = { .merged = merged };
	CHOIR_SCOPE (s) {
		j.v = choir_variable_new("v", CHOIR_SHAPE(TABLE, WIDTH), NULL);
		j.w = choir_variable_new("w", CHOIR_SHAPE(2), NULL);
		j.optimizer = choir_optimizer_new(
				kind, CHOIR_OPTIONS(choir_optimizer_options, .global_clip_norm = clip));
	}
	uint64_t before = 0;
	for (int i = 0; i < 60; i++) {
		if (i == 40)
			before = chi_alloc_count();
		assert_int_equal(choir_strategy_run(s, step, &j, NULL, NULL), CHOIR_OK);
	}
	const uint64_t made = chi_alloc_count() - before;
	choir_strategy_free(s);
	return made;
}

TEST(steady_steps_allocate_nothing)
{
	static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1" };
	for (int i = 0; i < 8; i++) {
		const char *on = devices[i % 2];
		const bool merged = i >= 4;
		const choir_optimizer_kind kind = i / 2 % 2 == 0 ? CHOIR_SGD : CHOIR_ADAM;
		assert_int_equal(allocations(on, kind, 0, merged), 0);
		assert_int_equal(allocations(on, kind, 0.5, merged), 0);
	}
}
