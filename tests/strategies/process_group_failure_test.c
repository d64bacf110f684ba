// Multi-worker mirrored where something is wrong: workers that differ are named before a number is
// used, who fails is named everywhere, and nobody waits for somebody who does not come.
#include "process_group.h"
#include "plain_kernels.h"
#include "../../suites/strategy_program.h"
#include "short.h"

#include "base/alloc.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
					 : peers_last_or_heard(CHOIR_STATE, "worker 1", ".seed");
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
	return worker == 2 ? peers_last_failure(CHOIR_NOT_FOUND, "nothing:7", "cpu:0")
					   : peers_last_failure(CHOIR_CANCELLED, "worker 2", "nothing");
}

static const char *too_few_replicas(choir_strategy *s, int worker, void *user)
{
	const char *words = user;
	(void) worker;
	return s != NULL ? words : peers_last_failure(CHOIR_INVALID, words, "each");
}

// spec: 2.17
TEST(test_strategies_that_differ)
{
	peers_run(&(peers_job){
			.replicas = 4, .place = { 2, "cpu:0" }, .fn = seeds_differ, .options = another_seed });
	peers_run(&(peers_job){ .replicas = 4,
			.place = { 3, "cpu:0" },
			.fn = device_is_bad,
			.options = a_bad_device });
	peers_run(&(peers_job){ .replicas = 2,
			.place = { 3, "cpu:0" },
			.fn = too_few_replicas,
			.user = (char[]){ "2 replicas*3 workers of the cluster" } });
	peers_run(&(peers_job){ .replicas = 1,
			.place = { 2, "cpu:0" },
			.fn = too_few_replicas,
			.user = (char[]){ "1 replica*2 workers of the cluster" } });
	choir_cluster *alone =
			choir_cluster_new(CHOIR_OPTIONS(choir_cluster_options, .transport = "alone"));
	assert_non_null(alone);
	assert_null(
			choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options, .cluster = alone)));
	assert_int_equal(choir_error_status(), CHOIR_INVALID);
	assert_text_holds(choir_error(), ".cluster");
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
					 : peers_last_or_heard(CHOIR_STATE, "worker 1", "variable \"w\"");
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
	if (v == NULL || choir_tensor_to_host(choir_variable_read(v, f), now, sizeof now) != CHOIR_OK)
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
					CHOIR_OPTIONS(
							choir_optimizer_options, .learning_rate = worker == 2 ? 0.2 : 0.1));
	return o != NULL ? "optimizers with other rates"
					 : peers_last_or_heard(CHOIR_STATE, "worker 2", "rate 0.2");
}

// In a digit that messages do not show.
static const char *digits_differ(choir_strategy *s, int worker, void *user)
{
	choir_optimizer *o = NULL;
	(void) user;
	if (s != NULL)
		CHOIR_SCOPE (s)
			o = choir_optimizer_new(CHOIR_ADAM,
					CHOIR_OPTIONS(choir_optimizer_options,
							.learning_rate = worker == 1 ? 0.1 * (1 + 1e-12) : 0.1));
	return o != NULL ? "optimizers with other rates"
					 : peers_last_or_heard(CHOIR_STATE, "worker 1", "all digits of its numbers");
}

static const char *powers_differ(choir_strategy *s, int worker, void *user)
{
	const choir_schedule schedule = { .size = sizeof schedule,
		.kind = CHOIR_SCHEDULE_POLYNOMIAL,
		.steps = 10,
		.power = worker == 1 ? 2 : 0 };
	choir_optimizer *o = NULL;
	(void) user;
	if (s != NULL)
		CHOIR_SCOPE (s)
			o = choir_optimizer_new(
					CHOIR_ADAM, CHOIR_OPTIONS(choir_optimizer_options, .schedule = &schedule));
	return o != NULL ? "optimizers with other schedules"
					 : peers_last_or_heard(CHOIR_STATE, "worker 1", "all digits of its numbers");
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
					 : peers_last_or_heard(CHOIR_STATE, "worker 1", "loss scale fixed from 1024");
}

static const char *groups_differ(choir_strategy *s, int worker, void *user)
{
	const choir_parameter_group group = { .size = sizeof group,
		.names = worker == 1 ? "*/gamma" : "*/bias",
		.weight_decay = CHOIR_ZERO };
	choir_optimizer *o = NULL;
	(void) user;
	if (s != NULL)
		CHOIR_SCOPE (s)
			o = choir_optimizer_new(CHOIR_ADAMW,
					CHOIR_OPTIONS(choir_optimizer_options, .groups = &group, .n_groups = 1));
	return o != NULL ? "optimizers with other groups"
					 : peers_last_or_heard(CHOIR_STATE, "worker 1", "1 groups of contents");
}

// spec: 2.17
TEST(test_variables)
{
	for (uint64_t seed = 0; seed < 4; seed++) {
		peers_run(&(peers_job){
				.replicas = 4, .place = { 3, "cpu:0" }, .seed = seed, .fn = the_chiefs_values });
		peers_run(&(peers_job){
				.replicas = 4, .place = { 2, "cpu:0" }, .seed = seed, .fn = shapes_differ });
		peers_run(&(peers_job){
				.replicas = 4, .place = { 3, "cpu:0" }, .seed = seed, .fn = rates_differ });
		peers_run(&(peers_job){
				.replicas = 4, .place = { 2, "cpu:0" }, .seed = seed, .fn = digits_differ });
		peers_run(&(peers_job){
				.replicas = 4, .place = { 2, "cpu:0" }, .seed = seed, .fn = powers_differ });
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

static choir_status do_nothing(choir_replica *r, void *user)
{
	(void) r, (void) user;
	return CHOIR_OK;
}

static const char *one_fails(choir_strategy *s, int worker, void *user)
{
	choir_status *status = user;
	if (s == NULL)
		return peers_last_failure(CHOIR_CANCELLED, "replica 2:", "worker");
	const int first = choir_strategy_first_replica_id(s);
	const bool mine = first <= 2 && 2 < first + choir_strategy_local_replicas(s);
	if (choir_strategy_run(s, fail_as_two, status, NULL, NULL) == CHOIR_OK)
		return "the run went well";
	const char *wrong = peers_last_failure(mine ? *status : CHOIR_CANCELLED,
			"replica 2:", mine || worker < 0 ? "the disk is full" : "worker");
	if (wrong != NULL)
		return wrong;
	// It is over, also for runs without sync points.
	if (worker >= 0 && choir_strategy_run(s, do_nothing, NULL, NULL, NULL) == CHOIR_OK)
		return "a run without sync points went on";
	return choir_strategy_run(s, fail_as_two, status, NULL, NULL) != CHOIR_OK ? NULL
																			  : "it went on";
}

// spec: 2.17
TEST(test_a_replica_fails)
{
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
		return peers_last_failure(CHOIR_CANCELLED, name, NULL);
	CHOIR_SCOPE (s)
		o.v = choir_variable_new("v", CHOIR_SHAPE(3),
				CHOIR_OPTIONS(choir_variable_options, .aggregation = CHOIR_AGGREGATION_SUM));
	if (o.v == NULL)
		return peers_last_failure(CHOIR_CANCELLED, name, NULL);
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
	return worker == d->odd ? NULL : peers_last_failure(status, name, NULL);
}

// spec: 2.17
TEST(test_collectives_that_differ)
{
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

// ---- Memory.

static const char *train_somehow(choir_strategy *s, int worker, void *user)
{
	(void) worker, (void) user;
	chi_record *r = calloc(1, sizeof *r);
	const choir_status status =
			s == NULL ? choir_error_status() : chi_strategy_programs[0].run(s, r);
	free(r);
	return status == CHOIR_OK || choir_error()[0] != '\0' ? NULL : "a failure without a text";
}

// One program from its beginning on, with every n-th allocation, more and more of them left out.
typedef struct {
	const chi_program *program;
	uint64_t n;
} lacking;

static const char *run_somehow(choir_strategy *s, int worker, void *user)
{
	const lacking *l = user;
	if (s == NULL) // the other one has its strategy already, and the n-th may be this one's
		return choir_error()[0] != '\0' ? NULL : "no strategy, and no reason";
	chi_record *r = calloc(1, sizeof *r);
	r->cluster = choir_strategy_cluster(s);
	if (worker == 0)
		chi_alloc_fail(l->n, false);
	const choir_status status = l->program->run(s, r);
	free(r);
	return status == CHOIR_OK || choir_error()[0] != '\0' ? NULL : "a failure without a text";
}

// What each program does between workers, where memory is missing: all end.
TEST(test_memory_of_programs)
{
	for (int i = 1; i < chi_strategy_program_count; i++) {
		lacking l = { .program = &chi_strategy_programs[i], .n = 1 };
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

// The n-th allocation of either worker fails, at any place of a training: both end.
TEST(test_memory)
{
	const peers_job job = { .replicas = 4, .place = { 2, "cpu:0,cpu:1" }, .fn = train_somehow };
	peers_every_allocation(job, 50);
}
