// Multi-worker mirrored where something is wrong: workers that differ are named before a number is
// used, who fails is named everywhere, and nobody waits for somebody who does not come.
#include "peers.h"
#include "plain_kernels.h"
#include "programs.h"
#include "short.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// NULL if this thread's last failure has this status and all of the words.
static const char *last_failure(choir_status status, const char *first, const char *second)
{
	static _Thread_local char text[1000];
	if (choir_error_status() == status && strstr(choir_error(), first) != NULL &&
			strstr(choir_error(), second) != NULL)
		return NULL;
	snprintf(text, sizeof text, "not %s with \"%s\" and \"%s\": %.600s", choir_status_name(status),
			first, second, choir_error());
	return text;
}

// The same of what one worker finds and all others may find by themselves, or hear of it.
static const char *last_or_heard(choir_status status, const char *first, const char *second)
{
	return last_failure(
			choir_error_status() == CHOIR_CANCELLED ? CHOIR_CANCELLED : status, first, second);
}

// ---- Making strategies.

static void another_seed(choir_strategy_options *o, int worker, void *user)
{
	(void) user;
	o->seed += worker == 1;
}

static const char *seeds_differ(choir_strategy *s, int worker, void *user)
{
	(void) worker, (void) user;
	return s != NULL ? "other seeds were accepted"
					 : last_or_heard(CHOIR_STATE, "worker 1", ".seed");
}

static void a_bad_device(choir_strategy_options *o, int worker, void *user)
{
	(void) user;
	if (worker == 2)
		o->devices = "cpu:0,nothing:7";
}

static const char *device_is_bad(choir_strategy *s, int worker, void *user)
{
	(void) user;
	if (s != NULL)
		return "a device that there is not";
	return worker == 2 ? last_failure(CHOIR_NOT_FOUND, "nothing", "")
					   : last_failure(CHOIR_CANCELLED, "worker 2", "nothing");
}

static const char *too_few_replicas(choir_strategy *s, int worker, void *user)
{
	const char *words = user;
	(void) worker;
	return s != NULL ? words : last_failure(CHOIR_INVALID, words, "each needs one");
}

// spec: 2.17
static void test_strategies_that_differ(void **state)
{
	(void) state;
	peers_run(&(peers_job){
			.replicas = 4, .place = { 2, "cpu:0" }, .fn = seeds_differ, .options = another_seed });
	peers_run(&(peers_job){ .replicas = 4,
			.place = { 3, "cpu:0" },
			.fn = device_is_bad,
			.options = a_bad_device });
	peers_run(&(peers_job){ .replicas = 2,
			.place = { 3, "cpu:0" },
			.fn = too_few_replicas,
			.user = (char[]){ "strategy: 2 replicas for 3 workers of the cluster" } });
	peers_run(&(peers_job){ .replicas = 1,
			.place = { 2, "cpu:0" },
			.fn = too_few_replicas,
			.user = (char[]){ "strategy: 1 replica for 2 workers of the cluster" } });
	choir_cluster *alone =
			choir_cluster_new(CHOIR_OPTIONS(choir_cluster_options, .transport = "alone"));
	assert_non_null(alone);
	assert_null(
			choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options, .cluster = alone)));
	assert_int_equal(choir_error_status(), CHOIR_INVALID);
	assert_non_null(strstr(choir_error(), "no .cluster"));
	choir_strategy *s = choir_multi_worker_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .cluster = alone, .replicas = 3));
	assert_non_null(s);
	assert_ptr_equal(choir_strategy_cluster(s), alone);
	assert_int_equal(choir_strategy_replicas(s), 3);
	assert_true(choir_strategy_is_chief(s));
	choir_strategy_free(s);
	choir_cluster_free(alone);
}

// ---- Variables.

static const char *shapes_differ(choir_strategy *s, int worker, void *user)
{
	choir_variable *v = NULL;
	(void) user;
	if (s != NULL)
		CHOIR_SCOPE (s)
			v = choir_variable_new("w", CHOIR_SHAPE(3, worker == 1 ? 5 : 4), NULL);
	return v != NULL ? "variables of other shapes"
					 : last_or_heard(CHOIR_STATE, "worker 1", "variable \"w\"");
}

static const char *the_chiefs_values(choir_strategy *s, int worker, void *user)
{
	const float own[3] = { (float) worker, 1, 2 };
	float now[3] = { -1, -1, -1 };
	choir_variable *v = NULL;
	(void) user;
	CHOIR_SCOPE (s)
		v = choir_variable_new(
				"w", CHOIR_SHAPE(3), CHOIR_OPTIONS(choir_variable_options, .initial_value = own));
	choir_frame *f = choir_frame_new(NULL);
	if (v == NULL || choir_tensor_fetch(choir_variable_read(v, f), now, sizeof now) != CHOIR_OK)
		return choir_error();
	choir_frame_free(f);
	return now[0] == 0 && now[1] == 1 && now[2] == 2 ? NULL : "not the values of worker 0";
}

static const char *rates_differ(choir_strategy *s, int worker, void *user)
{
	choir_optimizer *o = NULL;
	(void) user;
	if (s != NULL)
		CHOIR_SCOPE (s)
			o = choir_optimizer_new(CHOIR_ADAM,
					CHOIR_OPTIONS(choir_optimizer_options, .rate = worker == 2 ? 0.2 : 0.1));
	return o != NULL ? "optimizers with other rates"
					 : last_or_heard(CHOIR_STATE, "worker 2", "rate 0.2");
}

static const char *scales_differ(choir_strategy *s, int worker, void *user)
{
	const choir_loss_scale scale = {
		.size = sizeof scale, .kind = CHOIR_LOSS_SCALE_FIXED, .initial = 1024
	};
	choir_optimizer *o = NULL;
	(void) user;
	if (s != NULL)
		CHOIR_SCOPE (s)
			o = choir_optimizer_new(CHOIR_SGD,
					CHOIR_OPTIONS(
							choir_optimizer_options, .loss_scale = worker == 1 ? &scale : NULL));
	return o != NULL ? "optimizers with other loss scales"
					 : last_or_heard(CHOIR_STATE, "worker 1", "loss scale fixed from 1024");
}

static const char *groups_differ(choir_strategy *s, int worker, void *user)
{
	const choir_parameter_group group = { .size = sizeof group,
		.names = worker == 1 ? "*/gamma" : "*/bias",
		.weight_decay = CHOIR_NONE };
	choir_optimizer *o = NULL;
	(void) user;
	if (s != NULL)
		CHOIR_SCOPE (s)
			o = choir_optimizer_new(CHOIR_ADAMW,
					CHOIR_OPTIONS(choir_optimizer_options, .groups = &group, .n_groups = 1));
	return o != NULL ? "optimizers with other groups"
					 : last_or_heard(CHOIR_STATE, "worker 1", "1 groups of contents");
}

// spec: 2.17
static void test_variables(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < 4; seed++) {
		peers_run(&(peers_job){
				.replicas = 4, .place = { 3, "cpu:0" }, .seed = seed, .fn = the_chiefs_values });
		peers_run(&(peers_job){
				.replicas = 4, .place = { 2, "cpu:0" }, .seed = seed, .fn = shapes_differ });
		peers_run(&(peers_job){
				.replicas = 4, .place = { 3, "cpu:0" }, .seed = seed, .fn = rates_differ });
		peers_run(&(peers_job){
				.replicas = 4, .place = { 2, "cpu:0" }, .seed = seed, .fn = scales_differ });
		peers_run(&(peers_job){
				.replicas = 4, .place = { 2, "cpu:0" }, .seed = seed, .fn = groups_differ });
	}
}

// ---- Replicas that fail.

static choir_status fail_as_two(choir_replica *r, void *user)
{
	const choir_status *status = user;
	choir_tensor *x = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), 1);
	if (choir_replica_id(r) == 2)
		return choir_fail(*status, "the disk is full");
	return choir_replica_all_reduce(r, CHOIR_SUM, x) == NULL ? choir_error_status() : CHOIR_OK;
}

static const char *one_fails(choir_strategy *s, int worker, void *user)
{
	choir_status *status = user;
	if (s == NULL)
		return last_failure(CHOIR_CANCELLED, "replica 2: the disk is full", "worker");
	const int first = choir_strategy_first_replica(s);
	const bool mine = first <= 2 && 2 < first + choir_strategy_local_replicas(s);
	if (choir_strategy_run(s, fail_as_two, status, NULL, NULL) == CHOIR_OK)
		return "the run went well";
	const char *wrong = last_failure(mine ? *status : CHOIR_CANCELLED,
			"replica 2: the disk is full", mine || worker < 0 ? "" : "worker");
	if (wrong != NULL)
		return wrong;
	// It is over.
	return choir_strategy_run(s, fail_as_two, status, NULL, NULL) != CHOIR_OK ? NULL
																			  : "it went on";
}

// spec: 2.17
static void test_a_replica_fails(void **state)
{
	(void) state;
	static const peers_place places[] = { { 2, "cpu:0" }, { 2, "cpu:0,cpu:1" }, { 4, "cpu:0" },
		{ 3, "cpu:0,cpu:1" } };
	for (int i = 0; i < 16; i++) {
		// A program may stop with any status, also with that of who is told of another's.
		choir_status status = i / 4 == 1 ? CHOIR_CANCELLED : CHOIR_IO;
		peers_run(&(peers_job){ .replicas = 4,
				.place = places[i % 4],
				.seed = (uint64_t) i,
				.fn = one_fails,
				.user = &status });
	}
}

// ---- Collectives that differ.

typedef enum { SUM, MEAN, LONGER, INTEGERS, GATHER, SPREAD, ASSIGN, LEAVE, KINDS } kind;

typedef struct {
	kind usual, other;
	int odd; // the worker that does the other
	choir_variable *v[4];
} divergence;

typedef struct {
	kind what;
	choir_variable *v;
} order;

static choir_status do_as_told(choir_replica *r, void *user)
{
	const order *o = user;
	choir_frame *f = r->frame;
	choir_tensor *x = choir_fill(f, o->what == INTEGERS ? CHOIR_I32 : CHOIR_F32,
			CHOIR_SHAPE(o->what == LONGER ? 4 : 3), 1);
	choir_tensor *y = NULL;
	switch (o->what) {
	case SUM:
	case LONGER:
	case INTEGERS:
		y = choir_replica_all_reduce(r, CHOIR_SUM, x);
		break;
	case MEAN:
		y = choir_replica_all_reduce(r, CHOIR_MEAN, x);
		break;
	case GATHER:
		y = choir_replica_all_gather(r, x, 0);
		break;
	case SPREAD:
		y = choir_replica_broadcast(r, x, 0);
		break;
	case ASSIGN:
		return choir_variable_assign(o->v, x);
	case LEAVE:
	case KINDS:
		return CHOIR_OK;
	}
	return y == NULL ? choir_error_status() : CHOIR_OK;
}

static const char *one_differs(choir_strategy *s, int worker, void *user)
{
	const divergence *d = user;
	static _Thread_local char name[16];
	order o = { worker == d->odd ? d->other : d->usual, NULL };
	snprintf(name, sizeof name, "worker %d", d->odd);
	if (s == NULL)
		return last_failure(CHOIR_CANCELLED, name, "");
	CHOIR_SCOPE (s)
		o.v = choir_variable_new("v", CHOIR_SHAPE(3),
				CHOIR_OPTIONS(choir_variable_options, .aggregation = CHOIR_AGGREGATION_SUM));
	if (o.v == NULL)
		return last_failure(CHOIR_CANCELLED, name, "");
	const choir_status status = choir_strategy_run(s, do_as_told, &o, NULL, NULL);
	if (o.what == LEAVE)
		return status == CHOIR_OK ? NULL : choir_error();
	if (status == CHOIR_OK) {
		static _Thread_local char text[80];
		snprintf(text, sizeof text, "%d went well where %d was", (int) o.what,
				(int) (o.what == d->usual ? d->other : d->usual));
		return text;
	}
	if (status != CHOIR_STATE && status != CHOIR_CANCELLED && status != CHOIR_PEER_LOST)
		return choir_error();
	return worker == d->odd ? NULL : last_failure(status, name, "");
}

// spec: 2.17
static void test_collectives_that_differ(void **state)
{
	(void) state;
	static const peers_place places[] = { { 2, "cpu:0" }, { 2, "cpu:0,cpu:1" }, { 3, "cpu:0" } };
	for (kind usual = SUM; usual < LEAVE; usual++)
		for (kind other = SUM; other < KINDS; other++) {
			divergence d = { .usual = usual, .other = other, .odd = 1 };
			const int i = (int) usual * KINDS + (int) other;
			if (usual == other)
				continue;
			peers_run(&(peers_job){ .replicas = 4,
					.place = places[i % 3],
					.seed = (uint64_t) i,
					.fn = one_differs,
					.user = &d });
		}
}

// ---- Calls that fail on one worker before it has asked another.

typedef enum { OPTIONS, ARGUMENTS, RESULTS, WRONG } wrong_call;

static void a_bad_option(choir_strategy_options *o, int worker, void *user)
{
	if (*(wrong_call *) user == OPTIONS && worker == 1)
		o->timeout = -2;
}

static choir_status sum_ones(choir_replica *r, void *user)
{
	(void) user;
	choir_tensor *x = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(3), 1);
	return choir_replica_all_reduce(r, CHOIR_SUM, x) == NULL ? choir_error_status() : CHOIR_OK;
}

static const char *one_calls_wrongly(choir_strategy *s, int worker, void *user)
{
	const wrong_call what = *(wrong_call *) user;
	const char *found = what == OPTIONS ? "a timeout of -2" : "belong to another strategy";
	if (s != NULL && what == OPTIONS)
		return "a time-out that there is not";
	if (s != NULL) { // else it has heard of worker 1 already
		choir_strategy *other = choir_mirrored_strategy_new(
				CHOIR_OPTIONS(choir_strategy_options, .devices = "cpu:0"));
		choir_values *foreign = choir_values_new(other), *results = worker == 1 ? foreign : NULL;
		const choir_status status = what == ARGUMENTS
				? choir_strategy_run(s, sum_ones, NULL, worker == 1 ? foreign : NULL, NULL)
				: choir_strategy_run(s, sum_ones, NULL, NULL, &results);
		if (results != foreign)
			choir_values_free(results);
		choir_values_free(foreign);
		choir_strategy_free(other);
		if (status == CHOIR_OK)
			return "the run went well";
	}
	return worker == 1 ? last_failure(CHOIR_INVALID, found, "")
					   : last_failure(CHOIR_CANCELLED, "worker 1", found);
}

static choir_status next_batch(choir_distributed_dataset *data, choir_values *batch, int64_t *rows)
{
	CHOIR_TRY(choir_distributed_dataset_next(data, &batch));
	*rows = choir_tensor_shape(choir_value_local(choir_values_find(batch, "number"), 0))->dim[0];
	return CHOIR_OK;
}

// The second step fails on worker 1: for all of them, until they go back to the start.
static const char *one_cannot_read(choir_strategy *s, int worker, void *user)
{
	(void) user;
	const char *wrong = NULL;
	choir_strategy *other =
			choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options, .devices = "cpu:0"));
	choir_values *batch = choir_values_new(s), *foreign = choir_values_new(other);
	choir_distributed_dataset *data = choir_strategy_distribute_dataset(
			s, choir_dataset_batch(choir_range_dataset_new("number", 0, 12, 1), 4), NULL);
	int64_t rows = 0;
	for (int turn = 0; turn < 2 && wrong == NULL; turn++) {
		if (next_batch(data, batch, &rows) != CHOIR_OK || rows != 2)
			wrong = "the first step";
		for (int again = 0; again < 2 && wrong == NULL; again++) {
			choir_values *to = worker == 1 && again == 0 ? foreign : batch;
			if (next_batch(data, to, &rows) == CHOIR_OK)
				wrong = "a step that worker 1 has not";
			else
				wrong = worker == 1
						? last_failure(CHOIR_INVALID, "belongs to another strategy", "")
						: last_failure(CHOIR_CANCELLED, "worker 1", "belongs to another strategy");
		}
		if (wrong == NULL && choir_distributed_dataset_rewind(data) != CHOIR_OK)
			wrong = choir_error();
	}
	choir_values_free(batch);
	choir_values_free(foreign);
	choir_strategy_free(other);
	return wrong;
}

static const char *one_alone(choir_strategy *s, int worker, void *user)
{
	(void) worker, (void) user;
	if (choir_strategy_run_replica(s, 0, sum_ones, NULL, NULL) == CHOIR_OK)
		return "a sum alone";
	const char *wrong = last_failure(CHOIR_UNSUPPORTED, "needs all 2 replicas", "");
	return wrong != NULL || choir_strategy_run(s, sum_ones, NULL, NULL, NULL) == CHOIR_OK
			? wrong
			: choir_error();
}

static choir_status mean_of(choir_replica *r, void *user)
{
	choir_tensor *x = choir_fill(r->frame, *(choir_dtype *) user, CHOIR_SHAPE(3), 1);
	return choir_replica_all_reduce(r, CHOIR_MEAN, x) == NULL ? choir_error_status() : CHOIR_OK;
}

// Both are added up as f64.
static const char *one_has_longer_integers(choir_strategy *s, int worker, void *user)
{
	(void) user;
	choir_dtype dtype = worker == 1 ? CHOIR_I64 : CHOIR_I32;
	if (s != NULL && choir_strategy_run(s, mean_of, &dtype, NULL, NULL) == CHOIR_OK)
		return "a mean of i32 and i64";
	return last_or_heard(CHOIR_STATE, "mean, i32", "mean, i64");
}

static const char *one_has_no_optimizer(choir_strategy *s, int worker, void *user)
{
	choir_optimizer *o = NULL;
	(void) user;
	if (s != NULL)
		CHOIR_SCOPE (s)
			o = choir_optimizer_new(CHOIR_SGD,
					CHOIR_OPTIONS(choir_optimizer_options, .rate = worker == 1 ? -1 : 0.1));
	if (o != NULL)
		return "an optimizer that worker 1 has not";
	return worker == 1 ? last_failure(CHOIR_INVALID, "rate", "")
					   : last_failure(CHOIR_CANCELLED, "worker 1", "rate");
}

typedef enum { REDUCE, REDUCE_ACROSS, CONCAT, REDUCE_TO, REDUCE_ALL_TO, REDUCTIONS } reduction;

static choir_status return_ones(choir_replica *r, void *user)
{
	(void) user;
	const choir_dtype dtype = choir_replica_id(r) == 3 ? CHOIR_I32 : CHOIR_F32;
	return choir_replica_return(r, "x", choir_fill(r->frame, dtype, CHOIR_SHAPE(2), 1));
}

static bool reduces(choir_strategy *s, reduction what, choir_value *v)
{
	choir_cross *x = choir_strategy_cross(s);
	choir_reduction item = { v, choir_cross_place(x, NULL), NULL };
	switch (what) {
	case REDUCE:
		return choir_strategy_reduce(s, CHOIR_SUM, v, CHOIR_NO_AXIS) != NULL;
	case REDUCE_ACROSS:
		return choir_cross_reduce(x, CHOIR_SUM, v, CHOIR_NO_AXIS) != NULL;
	case CONCAT:
		return choir_cross_gather(x, v, 0) != NULL;
	case REDUCE_TO:
		return choir_cross_reduce_to(x, CHOIR_SUM, v, item.to) != NULL;
	case REDUCE_ALL_TO:
	case REDUCTIONS:
		return choir_cross_batch_reduce_to(x, CHOIR_SUM, 1, &item, NULL) == CHOIR_OK;
	}
	return false;
}

// Outside of runs, where only worker 1 has replicas that differ: it need not wait for the other.
static const char *one_cannot_reduce(choir_strategy *s, int worker, void *user)
{
	choir_values *all = NULL;
	const bool went_well = s != NULL &&
			choir_strategy_run(s, return_ones, NULL, NULL, &all) == CHOIR_OK &&
			reduces(s, *(reduction *) user, choir_values_find(all, "x"));
	choir_values_free(all);
	if (went_well)
		return "a sum of f32 and i32";
	return worker == 1 ? last_failure(CHOIR_INVALID, "f32", "i32")
					   : last_failure(CHOIR_CANCELLED, "worker 1", "i32");
}

// spec: 2.17
static void test_one_calls_wrongly(void **state)
{
	(void) state;
	for (wrong_call what = OPTIONS; what < WRONG; what++)
		peers_run(&(peers_job){ .replicas = 3,
				.place = { 3, "cpu:0" },
				.fn = one_calls_wrongly,
				.options = a_bad_option,
				.user = &what });
	const peers_place two = { 2, "cpu:0" };
	for (reduction what = REDUCE; what < REDUCTIONS; what++)
		peers_run(&(peers_job){
				.replicas = 4, .place = two, .fn = one_cannot_reduce, .user = &what });
	peers_run(&(peers_job){ .replicas = 2, .place = two, .fn = one_cannot_read });
	peers_run(&(peers_job){ .replicas = 2, .place = two, .fn = one_alone });
	peers_run(&(peers_job){ .replicas = 2, .place = two, .fn = one_has_longer_integers });
	peers_run(&(peers_job){ .replicas = 4, .place = two, .fn = one_has_longer_integers });
	peers_run(&(peers_job){ .replicas = 2, .place = two, .fn = one_has_no_optimizer });
}

// ---- Memory.

static const char *train_somehow(choir_strategy *s, int worker, void *user)
{
	(void) worker, (void) user;
	record *r = calloc(1, sizeof *r);
	const choir_status status = s == NULL ? choir_error_status() : strategy_programs[0].run(s, r);
	free(r);
	return status == CHOIR_OK || choir_error()[0] != '\0' ? NULL : "a failure without a text";
}

// One program from its beginning on, with every n-th allocation, more and more of them left out.
typedef struct {
	const program *program;
	uint64_t n;
} lacking;

static const char *run_somehow(choir_strategy *s, int worker, void *user)
{
	const lacking *l = user;
	if (s == NULL) // the other one has its strategy already, and the n-th may be this one's
		return choir_error()[0] != '\0' ? NULL : "no strategy, and no reason";
	record *r = calloc(1, sizeof *r);
	r->cluster = choir_strategy_cluster(s);
	if (worker == 0)
		chi_alloc_fail(l->n, false);
	const choir_status status = l->program->run(s, r);
	free(r);
	return status == CHOIR_OK || choir_error()[0] != '\0' ? NULL : "a failure without a text";
}

// What each program does between workers, where memory is missing: all end.
static void test_memory_of_programs(void **state)
{
	(void) state;
	for (int i = 1; i < strategy_program_count; i++) {
		lacking l = { .program = &strategy_programs[i], .n = 1 };
		const peers_job job = { .replicas = 4,
			.place = { 2, i % 2 == 0 ? "cpu:0" : "cpu:0,cpu:1" },
			.fn = run_somehow,
			.user = &l };
		uint64_t step = STRIDE;
		for (bool failed = !l.program->goes_on; failed; l.n += step, step += l.n > 20) {
			peers_run(&job);
			failed = chi_alloc_failed();
			chi_alloc_fail(0, false);
		}
	}
}

// What is asked for outside of runs, of which a worker without memory must tell the others.
static const char *ask_somehow(choir_strategy *s, int worker, void *user)
{
	const lacking *l = user;
	choir_variable *v = NULL;
	choir_metric *mean = NULL, *matrix = NULL;
	CHOIR_SCOPE (s) {
		v = choir_variable_new("v", CHOIR_SHAPE(3),
				CHOIR_OPTIONS(choir_variable_options,
						.synchronization = CHOIR_SYNCHRONIZATION_ON_READ,
						.aggregation = CHOIR_AGGREGATION_SUM));
		mean = choir_metric_new(CHOIR_METRIC_MEAN, "mean");
		matrix = choir_confusion_matrix_new("matrix", 2);
	}
	choir_frame *f = choir_frame_new(NULL), *g = choir_frame_new(NULL);
	if (choir_cluster_barrier(choir_strategy_cluster(s)) == CHOIR_OK) { // all are ready
		if (worker == 0)
			chi_alloc_fail(l->n, false);
		choir_metric_result(mean);
		choir_metric_matrix(matrix, f);
		choir_variable_read(v, g);
		choir_strategy_hash(s);
	}
	choir_frame_free(f);
	choir_frame_free(g);
	const choir_status status = choir_error_status(); // never that the other one is just gone
	return status == CHOIR_OK || status == CHOIR_NO_MEMORY || status == CHOIR_CANCELLED
			? NULL
			: choir_error();
}

static void test_memory_outside_runs(void **state)
{
	(void) state;
	lacking l = { .n = 1 };
	for (bool failed = true; failed; l.n++) {
		peers_run(&(peers_job){
				.replicas = 4, .place = { 2, "cpu:0" }, .fn = ask_somehow, .user = &l });
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
	}
	assert_true(l.n > 10);
}

// The n-th allocation of either worker fails, at any place of a training: both end.
static void test_memory(void **state)
{
	(void) state;
	const peers_job job = { .replicas = 4, .place = { 2, "cpu:0,cpu:1" }, .fn = train_somehow };
	peers_every_allocation(job, 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strategies_that_differ),
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_a_replica_fails),
		cmocka_unit_test(test_collectives_that_differ),
		cmocka_unit_test(test_one_calls_wrongly),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_memory_outside_runs),
		cmocka_unit_test(test_memory_of_programs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
