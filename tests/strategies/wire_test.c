// Gradients in 16 bits between workers: each contribution and each node of the tree is rounded, so
// the bits are the same on any devices and workers; half the bytes; overflow; options that workers
// must share.
#include "process_group.h"
#include "plain_kernels.h"

#include "collective/oracle.h"
#include "short.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE, SMALL, TABLE, WIDE, VARIABLES, WIDTH = 3, ROWS = 30, STEPS = 3 };
enum { MAX = SHORT ? 9000 : 20000 }; // two chunks or three
static const char *const names[VARIABLES] = { "large", "small", "table", "wide" };
static const int64_t elements[VARIABLES] = { MAX, 7, ROWS *WIDTH, 5 };

typedef struct {
	choir_dtype wire;
	choir_optimizer_kind kind;
	double clip;
	choir_toggle overlap;
	const char *operations;
	int steps; // 0: STEPS
	float overflow; // a gradient of this size in the second step; 0: none
	const choir_loss_scale *scale;
	uint64_t hash;
} job;

typedef struct {
	const job *of;
	int step;
	choir_variable *v[VARIABLES];
	choir_optimizer *optimizer;
} training;

static float value_of(int replica, int step, int i, int64_t k)
{
	static const float of_replica[] = { 3.3f, -1.7f, 1e3f, 0.7f, -1e3f };
	return of_replica[replica % 5] + (float) ((k * 7 + i + step + replica) % 113) / 7;
}

// Rows of the table, one of them twice: in all replicas of the first step, then in some.
static choir_tensor *rows_of(choir_replica *r, int step)
{
	enum { N = 5 };
	const int id = choir_replica_id(r);
	int64_t row[N];
	float values[N * WIDTH];
	for (int i = 0; i < N; i++)
		row[i] = i == 3 ? 2 : (5 * i + id * id + step) % ROWS;
	for (int i = 0; i < N * WIDTH; i++)
		values[i] = value_of(id, step, TABLE, i);
	choir_tensor *rows = choir_indexed_slices(
			choir_constant(r->frame, CHOIR_F32, CHOIR_SHAPE(N, WIDTH), values),
			choir_constant(r->frame, CHOIR_I64, CHOIR_SHAPE(N), row), ROWS);
	return step == 0 || id % 2 == 0 ? rows : choir_to_dense(rows);
}

static choir_tensor *gradient(choir_replica *r, const training *t, int i)
{
	const float overflow = t->step == 1 ? t->of->overflow : 0;
	float *x = malloc((size_t) elements[i] * sizeof *x);
	for (int64_t k = 0; k < elements[i]; k++)
		x[k] = value_of(choir_replica_id(r), t->step, i, k);
	x[elements[i] - 1] = overflow != 0 ? overflow : x[elements[i] - 1];
	choir_tensor *g = choir_constant(r->frame, CHOIR_F32, CHOIR_SHAPE(elements[i]), x);
	free(x);
	return i == TABLE ? rows_of(r, t->step) : i == WIDE ? choir_cast(g, CHOIR_F64) : g;
}

static choir_status step(choir_replica *r, void *user)
{
	const training *t = user;
	for (int i = 0; i < VARIABLES; i++)
		CHOIR_TRY(choir_optimizer_add_gradient(t->optimizer, r, t->v[i], gradient(r, t, i)));
	return choir_optimizer_apply_gradients(t->optimizer, r);
}

static choir_status train(training *t, choir_strategy *s, const job *j)
{
	*t = (training){ .of = j };
	if (s == NULL)
		return choir_error_status();
	CHOIR_SCOPE (s) {
		for (int i = 0; i < VARIABLES; i++)
			t->v[i] = choir_variable_new(names[i],
					i == TABLE ? CHOIR_SHAPE(ROWS, WIDTH) : CHOIR_SHAPE(elements[i]),
					CHOIR_OPTIONS(
							choir_variable_options, .dtype = i == WIDE ? CHOIR_F64 : CHOIR_F32));
		t->optimizer = choir_optimizer_new(j->kind,
				CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 1,
						.global_clip_norm = j->clip, .loss_scale = j->scale));
	}
	if (t->optimizer == NULL || t->v[VARIABLES - 1] == NULL)
		return choir_error_status();
	for (; t->step < (j->steps == 0 ? STEPS : j->steps); t->step++)
		CHOIR_TRY(choir_strategy_run(s, step, t, NULL, NULL));
	return CHOIR_OK;
}

static choir_strategy *open(const job *j, const char *kind, const char *devices, int replicas)
{
	return choir_strategy_new(kind,
			CHOIR_OPTIONS(choir_strategy_options, .devices = devices, .replicas = replicas,
					.wire = j->wire, .cross_device_ops = j->operations));
}

static uint64_t trained(const job *j, const char *kind, const char *devices, int replicas)
{
	training t;
	choir_strategy *s = open(j, kind, devices, replicas);
	if (train(&t, s, j) != CHOIR_OK)
		fail_msg("%s on %s: %s", kind, devices, choir_error());
	const uint64_t hash = choir_strategy_hash(s);
	choir_strategy_free(s);
	return hash;
}

static void fetch(choir_variable *v, void *to, size_t bytes)
{
	choir_frame *f = choir_frame_new(NULL);
	assert_int_equal(choir_tensor_to_host(choir_variable_read(v, f), to, bytes), CHOIR_OK);
	choir_frame_free(f);
}

// One step of SGD with a rate of 1 makes a variable the negative sum.
static void check_sum(choir_dtype wire, int replicas)
{
	enum { MOST = 6 };
	static float all[MOST * MAX], sum[MAX], got[MAX];
	const job j = { .wire = wire, .kind = CHOIR_SGD, .steps = 1 };
	training t;
	choir_strategy *s = open(&j, "mirrored", "cpu:0,cpu:1", replicas);
	assert_int_equal(train(&t, s, &j), CHOIR_OK);
	for (int r = 0; r < replicas; r++)
		for (int64_t k = 0; k < MAX; k++)
			all[r * MAX + k] = value_of(r, 0, LARGE, k);
	if (replicas == 1 || wire == CHOIR_F32)
		oracle_sum(CHOIR_F32, all, 0, replicas, MAX, sum);
	else
		oracle_sum_rounded(wire, all, replicas, MAX, sum);
	fetch(t.v[LARGE], got, sizeof got);
	for (int64_t k = 0; k < MAX; k++)
		assert_true(got[k] == -sum[k]);
	choir_strategy_free(s);
}

TEST(each_node_is_rounded)
{
	static const choir_dtype all[] = { CHOIR_F32, CHOIR_F16, CHOIR_BF16 };
	for (int i = 0; i < 3; i++)
		for (int replicas = 1; replicas <= 6; replicas += 1 + SHORT)
			check_sum(all[i], replicas);
}

static const job jobs[] = {
	{ .wire = CHOIR_BF16, .kind = CHOIR_ADAM },
	{ .wire = CHOIR_F16, .kind = CHOIR_SGD },
	{ .wire = CHOIR_BF16, .kind = CHOIR_MOMENTUM, .clip = 0.75 },
};
enum { JOBS = sizeof jobs / sizeof jobs[0] };

TEST(the_same_bits_on_any_devices)
{
	for (int i = 0; i < JOBS; i++)
		for (int replicas = 4 + SHORT; replicas <= 5; replicas++) {
			job j = jobs[i];
			const uint64_t one = trained(&j, "mirrored", "cpu:0", replicas);
			job exact = j;
			exact.wire = CHOIR_F32;
			assert_true(one != trained(&exact, "mirrored", "cpu:0", replicas));
			assert_true(one == trained(&j, "mirrored", "cpu:0,cpu:1", replicas));
			assert_true(one == trained(&j, "mirrored", "cpu:0,cpu:1,cpu:2", replicas));
			assert_true(one == trained(&j, "mirrored", "cpu:0,far:0", replicas));
			assert_true(one == trained(&j, "mirrored", "far:0", replicas));
			assert_true(one == trained(&j, "mirrored", "far:0,far:1", replicas));
			assert_true(one == trained(&j, "central_storage", "cpu:0,cpu:1", replicas));
			assert_true(one == trained(&j, "central_storage", "far:0,far:1", replicas));
			assert_true(one == trained(&j, "parameter_server", "cpu:0,cpu:1", replicas));
			for (int k = 0; k < 3; k++) {
				static const char *const operations[] = { "ring", "hierarchical_copy",
					"reduce_to_one_device" };
				j.operations = operations[k];
				assert_true(one == trained(&j, "mirrored", "cpu:0,cpu:1,cpu:2", replicas));
			}
		}
}

static const char *train_worker(choir_strategy *s, int worker, void *user)
{
	const job *j = user;
	training t;
	(void) worker;
	if (train(&t, s, j) != CHOIR_OK)
		return choir_error();
	return choir_strategy_hash(s) == j->hash ? NULL : "a worker has other weights";
}

static void set_options(choir_strategy_options *o, int worker, void *user)
{
	const job *j = user;
	(void) worker;
	o->wire = j->wire;
	o->overlap = j->overlap;
}

TEST(the_same_bits_on_any_workers)
{
	static const peers_place places[] = { { 2, "cpu:0" }, { 3, "cpu:0" }, { 4, "cpu:0" },
		{ 2, "cpu:0,cpu:1" }, { 3, "cpu:0,cpu:1" }, { 4, "cpu:0,cpu:1" }, { 2, "cpu:0,far:0" } };
	for (size_t i = 0; i < JOBS * sizeof places / sizeof places[0]; i++) {
		const int replicas = 4 + (int) (i % 2);
		job j = jobs[i % JOBS];
		j.overlap = i % 4 < 2 ? CHOIR_ON : CHOIR_OFF;
		j.hash = trained(&j, "mirrored", "cpu:0", replicas);
		peers_run(&(peers_job){ .replicas = replicas,
				.place = places[i / JOBS],
				.seed = i,
				.fn = train_worker,
				.user = &j,
				.options = set_options });
	}
}

TEST(half_the_bytes)
{
	static const choir_dtype wires[] = { CHOIR_F32, CHOIR_BF16 };
	uint64_t bytes[2];
	for (int i = 0; i < 2; i++) {
		job j = { .wire = wires[i], .kind = CHOIR_SGD, .overlap = CHOIR_OFF };
		j.hash = trained(&j, "mirrored", "cpu:0", 2);
		peers_run(&(peers_job){ .replicas = 2,
				.place = { 2, "cpu:0" },
				.fn = train_worker,
				.user = &j,
				.options = set_options,
				.bytes = &bytes[i] });
	}
	const uint64_t gradients = (uint64_t) 2 * STEPS * MAX * sizeof(float);
	assert_in_range(
			bytes[0] - bytes[1], gradients / 2 - gradients / 50, gradients / 2 + gradients / 50);
}

static void set_different(choir_strategy_options *o, int worker, void *user)
{
	(void) user;
	o->wire = worker == 1 ? CHOIR_F16 : CHOIR_BF16;
}

static const char *refused(choir_strategy *s, int worker, void *user)
{
	(void) worker;
	(void) user;
	return s != NULL ? "a strategy was made"
					 : peers_last_or_heard(CHOIR_STATE, "differs: its .wire", "f16*bf16");
}

TEST(workers_need_the_same_wire)
{
	peers_run(&(peers_job){
			.replicas = 2, .place = { 2, "cpu:0" }, .fn = refused, .options = set_different });
	assert_null(
			choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options, .wire = CHOIR_I32)));
	assert_text_holds(choir_error(), "strategy: .wire is i32*CHOIR_F16 or CHOIR_BF16");
}

// Two gradients of 4e4 overflow f16 in the sum, one of 1e5 when it is added.
TEST(overflow_is_infinite)
{
	static const float large[] = { 4e4f, 1e5f };
	const choir_loss_scale scale = { .size = sizeof scale, .initial = 4 };
	for (int i = 0; i < 4; i++) {
		const job j = { .wire = CHOIR_F16,
			.kind = CHOIR_SGD,
			.steps = 2,
			.overflow = large[i % 2],
			.scale = i < 2 ? NULL : &scale };
		float got[7];
		training t;
		choir_strategy *s = open(&j, "mirrored", "cpu:0,cpu:1", 2);
		assert_int_equal(train(&t, s, &j), CHOIR_OK);
		fetch(t.v[SMALL], got, sizeof got);
		assert_true(j.scale == NULL ? isinf(got[6]) && got[6] < 0 : isfinite(got[6]));
		assert_true(choir_optimizer_loss_scale(t.optimizer) == (j.scale == NULL ? 1 : 2));
		choir_strategy_free(s);
	}
}

TEST(nan_stays_nan)
{
	const job j = { .wire = CHOIR_F16, .kind = CHOIR_SGD, .steps = 2, .overflow = NAN };
	training t;
	choir_strategy *s = open(&j, "mirrored", "cpu:0,cpu:1", 2);
	assert_int_equal(train(&t, s, &j), CHOIR_INVALID);
	assert_text_holds(choir_error(), "nan");
	choir_strategy_free(s);
}

static const char *train_somehow(choir_strategy *s, int worker, void *user)
{
	const char *wrong = train_worker(s, worker, user);
	return wrong == NULL || choir_error_status() != CHOIR_OK ? NULL : wrong;
}

TEST(every_allocation)
{
	job j = jobs[0];
	j.hash = trained(&j, "mirrored", "cpu:0", 4);
	peers_every_allocation((peers_job){ .replicas = 4,
								   .place = { 2, "cpu:0,cpu:1" },
								   .fn = train_somehow,
								   .user = &j,
								   .options = set_options },
			20);
}
