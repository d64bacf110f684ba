// Multi-worker mirrored: however many workers carry the replicas, and however many devices they
// have, a training has the same bits, and what is wrong is refused everywhere.
#include "process_group.h"
#include "plain_kernels.h"
#include "../../suites/strategy_program.h"
#include "short.h"

#include "base/atomic.h"
#include "base/thread.h"
#include "cluster/worker_threads.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const chi_program *find(const char *name)
{
	for (int i = 0; i < chi_strategy_program_count; i++)
		if (strcmp(chi_strategy_programs[i].name, name) == 0)
			return &chi_strategy_programs[i];
	fail_msg("there is no program \"%s\"", name);
	return NULL;
}

typedef struct {
	const chi_program *p;
	double hash[2];
} training;

// The last two numbers of a training are the hash of its weights.
static choir_status train(choir_strategy *s, const chi_program *p, double hash[2])
{
	chi_record *r = calloc(1, sizeof *r);
	choir_status status = s == NULL ? choir_error_status() : p->run(s, r);
	for (int i = 0; status == CHOIR_OK && i < 2; i++)
		hash[i] = r->number[r->n - 2 + i];
	free(r);
	return status;
}

static const char *train_here(choir_strategy *s, int worker, void *user)
{
	const training *t = user;
	double hash[2] = { 0, 0 };
	(void) worker;
	if (train(s, t->p, hash) != CHOIR_OK)
		return choir_error();
	if (choir_strategy_replicas(s) != 4)
		return "there are not 4 replicas";
	const char *ops = choir_cluster_workers(choir_strategy_cluster(s)) > 1 ? "workers" : "direct";
	if (strcmp(choir_strategy_cross_device_ops(s), ops) != 0)
		return choir_strategy_cross_device_ops(s);
	return hash[0] == t->hash[0] && hash[1] == t->hash[1] ? NULL : "the weights are others";
}

static void train_alone(training *t, const char *devices)
{
	double hash[2] = { 0, 0 };
	choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(
			choir_strategy_options, .replicas = 4, .devices = devices, .seed = 11, .timeout = 20));
	assert_int_equal(train(s, t->p, hash), CHOIR_OK);
	choir_strategy_free(s);
	assert_true(t->hash[0] == 0 || (t->hash[0] == hash[0] && t->hash[1] == hash[1]));
	memcpy(t->hash, hash, sizeof hash);
}

// As many replicas as the workers have devices.
static void one_a_device(choir_strategy_options *o, int worker, void *user)
{
	(void) worker, (void) user;
	o->replicas = 0;
}

// spec: 2.17
TEST(test_same_bits)
{
	static const char *const names[] = { "train with adam", "train with a norm" };
	static const peers_place places[] = { { 1, "cpu:0,cpu:1" }, { 2, "cpu:0" },
		{ 2, "cpu:0,cpu:1" }, { 4, "cpu:0" }, { 3, "cpu:0,cpu:1" }, { 3, "cpu:1" },
		{ 2, "cpu:0,far:0" }, { 3, "far:0,far:1" }, { 3, "cpu:0,cpu:1;cpu:0" },
		{ 2, "cpu:0;cpu:0,cpu:1,far:0" } };
	for (int i = 0; i < 2; i++) {
		training t = { .p = find(names[i]) };
		train_alone(&t, "cpu:0");
		train_alone(&t, "cpu:0,cpu:1");
		train_alone(&t, "cpu:0,cpu:1,cpu:2,cpu:3");
		for (size_t k = 0; k < sizeof places / sizeof places[0]; k++)
			peers_run(&(peers_job){ .replicas = 4,
					.place = places[k],
					.seed = k + 1,
					.fn = train_here,
					.options = k < 8 ? NULL : one_a_device,
					.user = &t });
	}
}

static choir_status return_id(choir_replica *r, void *user)
{
	(void) user;
	return choir_replica_return(r, "id", choir_number(r->frame, choir_replica_id(r)));
}

static const char *eight_copies(choir_strategy *s, int worker, void *user)
{
	choir_variable *v = NULL;
	choir_values *results = NULL;
	(void) user;
	if (s == NULL)
		return choir_error();
	CHOIR_SCOPE (s)
		v = choir_variable_new("v", CHOIR_SHAPE(2), NULL);
	if (choir_strategy_replicas(s) != 8 || choir_variable_copies(v) != 4)
		return "not 4 copies for 4 of 8 replicas";
	for (int i = 0; i < 4; i++)
		if (choir_variable_device(v, i) != choir_strategy_worker_device(s, i))
			return "a copy that is not on the device of its replica";
	if (choir_strategy_is_chief(s) != (worker == 0))
		return "another chief than worker 0";
	if (choir_strategy_run(s, return_id, NULL, NULL, &results) != CHOIR_OK)
		return choir_error();
	choir_value *id = choir_values_find(results, "id"); // of its own replicas only
	bool own = choir_value_local_count(id) == 4;
	for (int i = 0; own && i < 4; i++)
		own = (int) choir_tensor_number(choir_value_local(id, i)) == 4 * worker + i;
	choir_values_free(results);
	return own ? NULL : "other local results than those of its replicas";
}

// "If you have two workers and each worker has 4 GPUs, it will create 8 copies."
// spec: B4, B3, B23
TEST(test_two_workers_of_four_devices)
{
	peers_run(&(peers_job){ .place = { 2, "far:0,far:1,far:2,far:3" },
			.fn = eight_copies,
			.options = one_a_device });
}

typedef struct {
	const chi_program *p;
	chi_record model;
} comparison;

static const char *compare_here(choir_strategy *s, int worker, void *user)
{
	static _Thread_local char text[400];
	const comparison *c = user;
	const char *wrong = NULL;
	(void) worker;
	chi_record *own = calloc(1, sizeof *own);
	own->cluster = choir_strategy_cluster(s);
	if (s == NULL || c->p->run(s, own) != CHOIR_OK)
		wrong = choir_error();
	int i = 0;
	while (i < own->n && i < c->model.n &&
			memcmp(&own->number[i], &c->model.number[i], sizeof own->number[i]) == 0)
		i++;
	if (wrong == NULL && (i < own->n || i < c->model.n)) {
		snprintf(text, sizeof text, "%s: number %d of %d is %.17g, not %.17g of %d", c->p->name, i,
				own->n, own->number[i], c->model.number[i], c->model.n);
		wrong = text;
	}
	if (wrong == choir_error()) {
		snprintf(text, sizeof text, "%s: %.300s", c->p->name, choir_error());
		wrong = text;
	}
	free(own);
	return wrong;
}

static void compare(const chi_program *p, int replicas, const peers_place *places, size_t n)
{
	static comparison c;
	c.p = p;
	c.model.n = 0;
	choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
			.replicas = replicas, .devices = "cpu:0", .seed = 11, .timeout = 20));
	assert_int_equal(p->run(s, &c.model), CHOIR_OK);
	choir_strategy_free(s);
	for (size_t i = 0; i < n; i++)
		if (places[i].workers <= replicas)
			peers_run(&(peers_job){ .replicas = replicas,
					.place = places[i],
					.seed = i,
					.fn = compare_here,
					.user = &c });
}

// spec: 2.17
TEST(test_every_program)
{
	static const peers_place places[] = { { 1, "cpu:0" }, { 2, "far:0,cpu:1" },
		{ 2, "cpu:0;cpu:0,cpu:1" }, { 3, "cpu:0,cpu:1" }, { 2, "cpu:0" }, { 2, "cpu:0,cpu:1" },
		{ 4, "cpu:0" }, { 2, "far:0" } };
	enum { PLACES = SHORT ? 4 : sizeof places / sizeof places[0] };
	for (int i = 0; i < chi_strategy_program_count; i++)
		for (int replicas = 2; replicas <= 4 && !chi_strategy_programs[i].goes_on;
				replicas += 1 + SHORT)
			compare(&chi_strategy_programs[i], replicas, places, PLACES);
}

// ---- What is refused.

typedef struct {
	const chi_program *p;
	chi_atomic32 refused; // workers that found it by themselves
} refusal;

// The first thing that a program must not do is refused with the words that one process gets, and
// all workers hear of it, wherever they are.
static const char *first_is_refused(choir_strategy *s, int worker, void *user)
{
	static _Thread_local char text[400];
	refusal *r = user;
	(void) worker;
	if (s == NULL)
		return choir_error();
	chi_record *own = calloc(1, sizeof *own);
	own->cluster = choir_strategy_cluster(s);
	own->stops = true;
	const choir_status status = r->p->run(s, own);
	snprintf(text, sizeof text, "%s: %s, %d numbers: %.300s", r->p->name,
			choir_status_name(status), own->n, choir_error());
	const bool refused = status == CHOIR_END && own->n == 1, heard = own->n == 0;
	free(own);
	if (refused)
		chi_atomic32_add(&r->refused, 1);
	return refused ||
					(heard && choir_cluster_barrier(choir_strategy_cluster(s)) == CHOIR_CANCELLED)
			? NULL
			: text;
}

// spec: 2.17
TEST(test_what_is_refused)
{
	static const peers_place places[] = { { 2, "cpu:0" }, { 2, "cpu:0;cpu:0,cpu:1" },
		{ 3, "cpu:0,cpu:1" } };
	for (int i = 0; i < chi_strategy_program_count; i++)
		for (int k = 0; k < 3 && chi_strategy_programs[i].goes_on; k++) {
			refusal r = { .p = &chi_strategy_programs[i] };
			peers_run(&(peers_job){ .replicas = 4,
					.place = places[k],
					.seed = (uint64_t) k,
					.fn = first_is_refused,
					.user = &r });
			assert_true(chi_atomic32_load(&r.refused) > 0);
		}
}

static choir_status assign_seven(choir_replica *r, void *user)
{
	return choir_variable_assign(user, choir_number(r->frame, 7));
}

static const char *seven_has_no_sum(choir_strategy *s, int worker, void *user)
{
	choir_variable *v = NULL;
	(void) worker, (void) user;
	CHOIR_SCOPE (s)
		v = choir_variable_new("sum", CHOIR_SHAPE(3),
				CHOIR_OPTIONS(choir_variable_options, .aggregation = CHOIR_AGGREGATION_SUM));
	if (choir_strategy_local_replicas(s) != 1)
		return "not a worker with one replica";
	if (v != NULL && choir_strategy_run(s, assign_seven, v, NULL, NULL) == CHOIR_OK)
		return "7 was assigned";
	return text_holds(choir_error(), "2 replicas*SUM") ? NULL : choir_error();
}

// A worker with one replica is not the only one.
// spec: 2.17, M26
TEST(test_a_number_with_sum)
{
	for (uint64_t seed = 0; seed < 4; seed++)
		peers_run(&(peers_job){
				.replicas = 2, .place = { 2, "cpu:0" }, .seed = seed, .fn = seven_has_no_sum });
}

// ---- Random programs: the same draws in every replica of every worker.

typedef struct {
	uint64_t seed;
	choir_variable *v, *part;
	choir_optimizer *o;
} dice;

static uint64_t draw(uint64_t *state, uint64_t below)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (*state >> 33) % below;
}

// Values of its own for each replica, of all magnitudes, so that the order of sums shows.
static choir_tensor *own_values(
		choir_replica *r, choir_dtype dtype, choir_shape shape, uint64_t seed)
{
	const int64_t n = choir_shape_elements(&shape);
	double *x = malloc((size_t) (n + 1) * sizeof *x);
	uint64_t state = seed * 31 + (uint64_t) choir_replica_id(r);
	for (int64_t i = 0; i < n; i++)
		x[i] = ((double) draw(&state, 2000) - 1000) / (double) (1 + draw(&state, 3000));
	choir_tensor *t = choir_cast(choir_constant(r->frame, CHOIR_F64, shape, x), dtype);
	free(x);
	return t;
}

// Whole numbers that tell one tensor from another, whatever its size.
static choir_tensor *print_of(choir_tensor *t)
{
	t = choir_cast(t, CHOIR_F64); // which loses nothing
	const size_t size =
			t == NULL ? 0 : (size_t) choir_shape_elements(choir_tensor_shape(t)) * sizeof(double);
	unsigned char *bytes = malloc(size + 1);
	const bool there = t != NULL && choir_tensor_to_host(t, bytes, size) == CHOIR_OK;
	uint64_t hash = size;
	for (size_t i = 0; there && i < size; i++)
		hash = (hash ^ bytes[i]) * 1099511628211u;
	free(bytes);
	if (!there)
		return NULL;
	const float print[3] = { (float) (hash & 0xfffff), (float) (hash >> 20 & 0xfffff),
		(float) (hash >> 40) };
	return choir_constant(choir_tensor_frame(t), CHOIR_F32, CHOIR_SHAPE(3), print);
}

static choir_status gather_and_reduce(choir_cross *x, void *user)
{
	const dice *d = user;
	choir_value *g = choir_cross_arg(x, "x");
	choir_value *sum = choir_cross_reduce_to(x, CHOIR_SUM, g, choir_variable_as_value(d->v));
	if (choir_cross_return(x, "all", choir_tensor_as_value(choir_cross_gather(x, g, 0))) !=
			CHOIR_OK)
		return choir_error_status();
	return choir_cross_return(x, "sum", sum);
}

static choir_tensor *merge_values(choir_replica *r, dice *d, uint64_t seed)
{
	choir_replica_set_arg(r, "x", own_values(r, CHOIR_F32, CHOIR_SHAPE(17, 3), seed));
	if (choir_replica_merge_call(r, gather_and_reduce, d) != CHOIR_OK)
		return NULL;
	choir_tensor *two[2] = { choir_replica_result(r, "all"), choir_replica_result(r, "sum") };
	return choir_concat(2, two, 0);
}

static choir_tensor *sum_slices(choir_replica *r, uint64_t seed)
{
	const int id = choir_replica_id(r);
	const int64_t rows[3] = { id % 4, (id + 2) % 5, 4 };
	choir_tensor *values = own_values(r, CHOIR_F32, CHOIR_SHAPE(3, 2), seed);
	choir_tensor *at = choir_constant(r->frame, CHOIR_I64, CHOIR_SHAPE(3), rows);
	return choir_to_dense(
			choir_replica_all_reduce(r, CHOIR_SUM, choir_indexed_slices(values, at, 5)));
}

static choir_tensor *roll(choir_replica *r, dice *d, uint64_t *state)
{
	static const int64_t sizes[] = { 1, 7, 900, 20000, 50001 };
	const uint64_t what = draw(state, 10), seed = draw(state, 1 << 30);
	const int64_t n = sizes[draw(state, 5)];
	choir_frame *f = r->frame;
	choir_tensor *two[2];
	switch (what) {
	case 0:
	case 1:
		return choir_replica_all_reduce(r, what == 0 ? CHOIR_SUM : CHOIR_MEAN,
				own_values(r, CHOIR_F32, CHOIR_SHAPE(n), seed));
	case 2:
		return choir_replica_all_reduce(
				r, CHOIR_SUM, own_values(r, CHOIR_I32, CHOIR_SHAPE(n, 2), seed));
	case 3:
		return choir_replica_all_reduce(r, CHOIR_MEAN,
				choir_with_count(
						own_values(r, CHOIR_F64, CHOIR_SHAPE(n), seed), 1 + choir_replica_id(r)));
	case 4: // unequal sizes, in the middle
		return choir_replica_all_gather(
				r, own_values(r, CHOIR_F32, CHOIR_SHAPE(2, choir_replica_id(r) % 3, 5), seed), 1);
	case 5:
		return choir_replica_broadcast(r, own_values(r, CHOIR_F32, CHOIR_SHAPE(n), seed),
				(int) (seed % (uint64_t) choir_replica_count(r)));
	case 6:
		two[0] = own_values(r, CHOIR_F32, CHOIR_SHAPE(n), seed);
		two[1] = own_values(r, CHOIR_F32, CHOIR_SHAPE(3, 4), seed + 1);
		if (choir_replica_batch_all_reduce(r, CHOIR_SUM, 2, two, two) != CHOIR_OK)
			return NULL;
		two[1] = choir_reshape(two[1], CHOIR_SHAPE(12));
		return choir_concat(2, two, 0);
	case 7:
		if (choir_variable_assign_add(d->v, own_values(r, CHOIR_F32, CHOIR_SHAPE(3), seed)) !=
				CHOIR_OK)
			return NULL;
		return choir_variable_read(d->v, f);
	case 8:
		return merge_values(r, d, seed);
	default:
		return sum_slices(r, seed);
	}
}

static choir_status roll_often(choir_replica *r, void *user)
{
	dice *d = user;
	uint64_t state = d->seed;
	for (int i = 0; i < 12; i++) {
		char name[16];
		snprintf(name, sizeof name, "%d", i);
		if (choir_replica_return(r, name, print_of(roll(r, d, &state))) != CHOIR_OK)
			return choir_error_status();
	}
	return CHOIR_OK;
}

static uint64_t random_seed;

static choir_status random_program(choir_strategy *s, chi_record *to)
{
	dice d = { .seed = random_seed };
	choir_values *results = NULL;
	CHOIR_SCOPE (s)
		d.v = choir_variable_new("v", CHOIR_SHAPE(3),
				CHOIR_OPTIONS(choir_variable_options, .aggregation = CHOIR_AGGREGATION_MEAN));
	if (d.v == NULL)
		return choir_error_status();
	choir_status status = choir_strategy_run(s, roll_often, &d, NULL, &results);
	for (int i = 0; status == CHOIR_OK && i < 12; i++) {
		char name[16];
		snprintf(name, sizeof name, "%d", i);
		status = chi_record_leaf(to, results, name);
	}
	choir_values_free(results);
	return status;
}

// spec: 2.17
TEST(test_random)
{
	static const chi_program p = { "random", random_program, false };
	static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2",
		"far:0,cpu:0", "cpu:0;cpu:0,cpu:1" };
	for (uint64_t seed = 1; seed <= (SHORT ? 8 : 40); seed++) {
		uint64_t dealer = seed;
		random_seed = seed;
		const int replicas = 2 + (int) draw(&dealer, 7);
		const int workers = 2 + (int) draw(&dealer, (uint64_t) replicas - 1);
		const peers_place place = { workers, devices[draw(&dealer, 5)] };
		compare(&p, replicas, &place, 1);
	}
}

typedef struct {
	choir_variable *v;
	choir_optimizer *o;
} reading;

// The first replica of a worker reads, and so does the update for both devices, before the other
// has returned.
static choir_status update_and_read(choir_replica *r, void *user)
{
	reading *t = user;
	const bool first = choir_replica_id(r) % 2 == 0;
	choir_tensor *g = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(10), 1);
	CHOIR_TRY(choir_optimizer_add_gradient(t->o, r, t->v, g));
	CHOIR_TRY(choir_optimizer_apply_gradients(t->o, r));
	if (!first)
		chi_thread_nap(3e-2);
	return first && choir_variable_read(t->v, r->frame) == NULL ? choir_error_status() : CHOIR_OK;
}

static const char *come_late(choir_cluster *c, int worker, void *user)
{
	static _Thread_local char text[1000];
	reading t = { NULL, NULL };
	(void) user;
	choir_strategy *s = choir_multi_worker_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .replicas = 4, .devices = "cpu:0,cpu:1",
					.cluster = c, .overlap = CHOIR_OFF, .timeout = 0.6));
	if (s == NULL)
		return choir_error();
	CHOIR_SCOPE (s) {
		t.v = choir_variable_new("v", CHOIR_SHAPE(10), NULL);
		t.o = choir_optimizer_new(CHOIR_SGD, NULL);
	}
	if (worker == 1)
		chi_thread_nap(1.5); // a checkpoint is written
	const choir_status status = choir_strategy_run(s, update_and_read, &t, NULL, NULL);
	snprintf(text, sizeof text, "%s", choir_error());
	choir_strategy_free(s);
	return status == CHOIR_OK ? NULL : text;
}

// Between workers the cluster's time-out holds: a replica that waits for another worker keeps
// nobody here, though a device with nothing to do waits for it.
TEST(test_a_late_worker)
{
	sim *s = sim_new(&(sim_options){ .workers = 2, .seed = 1, .eager = 4096, .quiet = 20 });
	assert_non_null(s);
	worker_threads_run(s, 2, NULL, come_late, NULL);
	sim_free(s);
}
