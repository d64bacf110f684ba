// Coordinators, workers and servers as processes: training to the bits of one process, deaths,
// stops, failures of closures, other programs.
#include "choir/checkpoint.h"
#include "choir/coordinator.h"
#include "choir/layer.h"
#include "choir/optimizer.h"
#include "choir/weights.h"

#include "base/process_memory.h"
#include "coordinator/job.h"
#include "value/variable.h"
#include "test.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// The program: a layer, an optimizer, and a variable that closures change by hand.
typedef struct {
	choir_layer *layer, *table;
	int64_t rows; // of the table; 0: no table
	int64_t units; // of the layer; 0: 2
	choir_optimizer *optimizer;
	choir_variable *sum;
	choir_optimizer_kind kind;
	bool stops; // the process, when a step has read its values
} program;

static choir_status build(choir_strategy *s, void *user)
{
	program *p = user;
	CHOIR_SCOPE (s) {
		if (p->rows > 0)
			p->table = choir_embedding_new("table", p->rows, 3);
		p->layer = choir_dense_new("layer", 3, p->units > 0 ? p->units : 2, CHOIR_LINEAR);
		p->optimizer = choir_optimizer_new(p->kind, NULL);
		p->sum = choir_variable_new("sum", CHOIR_SCALAR,
				CHOIR_OPTIONS(choir_variable_options, .dtype = CHOIR_F64, .trainable = CHOIR_OFF,
						.aggregation = CHOIR_AGGREGATION_ONLY_FIRST_REPLICA));
	}
	return p->layer == NULL || p->optimizer == NULL || p->sum == NULL ? choir_error_status()
																	  : CHOIR_OK;
}

static choir_status step(choir_replica *r, void *user)
{
	const program *p = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *y = choir_layer_apply(p->layer, choir_replica_arg(r, "x"));
	choir_tensor *loss = choir_mean(choir_square(y), CHOIR_ALL_AXES);
	CHOIR_TRY(choir_replica_return(r, "loss", loss));
	if (p->stops)
		raise(SIGSTOP);
	return choir_optimizer_minimize(p->optimizer, loss, tape);
}

// A training step on a batch that depends on number.
static choir_status train_on(choir_strategy *s, program *p, double number, double *loss)
{
	choir_values *batch = choir_values_new(s), *results = NULL;
	float x[4 * 3];
	for (int i = 0; i < 12; i++)
		x[i] = (float) sin(i + number);
	choir_tensor *t = choir_constant(choir_values_frame(batch), CHOIR_F32, CHOIR_SHAPE(4, 3), x);
	choir_status status = choir_values_split(batch, "x", t);
	if (status == CHOIR_OK)
		status = choir_strategy_run(s, step, p, batch, &results);
	if (status == CHOIR_OK)
		status = choir_tensor_to_host(
				choir_cast(choir_value_local(choir_values_find(results, "loss"), 0), CHOIR_F64),
				loss, sizeof *loss);
	choir_values_free(batch);
	choir_values_free(results);
	return status;
}

static double number_of(choir_values *set, const char *name)
{
	double number = NAN;
	choir_tensor *t = choir_value_tensor(choir_values_find(set, name));
	if (t == NULL || choir_tensor_to_host(t, &number, sizeof number) != CHOIR_OK)
		return NAN;
	return number;
}

static choir_status train(choir_closure *c, void *user)
{
	double loss = 0;
	CHOIR_TRY(train_on(
			choir_closure_strategy(c), user, number_of(choir_closure_args(c), "number"), &loss));
	choir_frame *f = choir_values_frame(choir_closure_args(c));
	return choir_closure_return(c, "loss", choir_number(f, loss));
}

// As train, but the worker stops between its pull and its push.
static choir_status train_late(choir_closure *c, void *user)
{
	program *p = user;
	p->stops = true;
	const choir_status status = train(c, user);
	p->stops = false;
	return status;
}

// As train, but the layer's inputs are rows of the table.
static choir_status row_step(choir_replica *r, void *user)
{
	const program *p = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *rows = choir_layer_apply(p->table, choir_replica_arg(r, "id"));
	choir_tensor *loss =
			choir_mean(choir_square(choir_layer_apply(p->layer, rows)), CHOIR_ALL_AXES);
	return choir_optimizer_minimize(p->optimizer, loss, tape);
}

static choir_status train_rows_on(choir_strategy *s, program *p, double number)
{
	choir_values *batch = choir_values_new(s);
	int32_t id[6];
	for (int i = 0; i < 6; i++)
		id[i] = (int32_t) ((i * i + (int) number * 2) % 7);
	choir_status status = choir_values_split(
			batch, "id", choir_constant(choir_values_frame(batch), CHOIR_I32, CHOIR_SHAPE(6), id));
	if (status == CHOIR_OK)
		status = choir_strategy_run(s, row_step, p, batch, NULL);
	choir_values_free(batch);
	return status;
}

// Returns an element of a row that no closure looks up, from this worker's memory.
static choir_status train_rows(choir_closure *c, void *user)
{
	program *p = user;
	CHOIR_TRY(train_rows_on(
			choir_closure_strategy(c), p, number_of(choir_closure_args(c), "number")));
	const choir_variable *v = choir_layer_variable(p->table, 0);
	v = v->shards > 0 ? v->shard[v->shards - 1] : v;
	const float *memory = v->copy[0].buffer->memory;
	choir_frame *f = choir_values_frame(choir_closure_args(c));
	return choir_closure_return(
			c, "unread", choir_number(f, (double) memory[v->shape.dim[0] * 3 - 1]));
}

// Adds 1 to the sum, then computes for a while, then adds 1 again.
static choir_status add(choir_closure *c, void *user)
{
	const program *p = user;
	choir_frame *f = choir_values_frame(choir_closure_args(c));
	CHOIR_TRY(choir_variable_assign_add(p->sum, choir_number(f, 1)));
	nanosleep(&(struct timespec){ .tv_nsec = 3000000 }, NULL);
	CHOIR_TRY(choir_variable_assign_add(p->sum, choir_number(f, 1)));
	return choir_closure_return(c, "worker", choir_number(f, choir_closure_worker(c)));
}

static choir_status fails(choir_closure *c, void *user)
{
	(void) c, (void) user;
	return choir_fail(CHOIR_INVALID, "this closure fails");
}

static choir_status nothing(choir_closure *c, void *user)
{
	(void) c, (void) user;
	return CHOIR_OK;
}

static choir_status deadly(choir_closure *c, void *user)
{
	(void) c, (void) user;
	_exit(7);
}

static choir_status scatters(choir_closure *c, void *user)
{
	const program *p = user;
	choir_frame *f = choir_values_frame(choir_closure_args(c));
	const int32_t row = 0;
	return choir_variable_scatter(choir_layer_variable(p->layer, 0), CHOIR_SCATTER_ADD,
			choir_constant(f, CHOIR_I32, CHOIR_SHAPE(1), &row),
			choir_fill(f, CHOIR_F32, CHOIR_SHAPE(1, 2), 1));
}

static const choir_function functions[] = {
	{ "train", train, NULL },
	{ "train_late", train_late, NULL },
	{ "train_rows", train_rows, NULL },
	{ "add", add, NULL },
	{ "fails", fails, NULL },
	{ "nothing", nothing, NULL },
	{ "deadly", deadly, NULL },
	{ "scatters", scatters, NULL },
	{ NULL, NULL, NULL },
};

typedef struct {
	job j;
	program p;
	choir_strategy_options strategy_options;
	choir_coordinator_options options;
	choir_task *task;
	choir_strategy *s;
	choir_coordinator *c;
	bool servers_refuse, workers_refuse; // they cannot read others' memory
} world;

static void wait_for_workers(const world *w, int workers)
{
	for (int i = 0; choir_coordinator_workers(w->c) != workers && i < 5000; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_int_equal(choir_coordinator_workers(w->c), workers);
}

// Starts a job with some workers. The coordinator is this process.
static void open_world(world *w, int servers, int workers, bool tcp, int window)
{
	w->strategy_options.size = sizeof w->strategy_options;
	w->strategy_options.seed = 5;
	w->options = (choir_coordinator_options){ .size = sizeof w->options,
		.functions = functions,
		.build = build,
		.user = &w->p,
		.window = window,
		.attempts = 3 };
	w->j.strategy = &w->strategy_options;
	w->j.options = &w->options;
	job_open(&w->j, servers, tcp);
	chi_process_memory_refuse(w->servers_refuse);
	for (int i = 0; i < servers; i++)
		job_start(&w->j, "ps", i, NULL);
	chi_process_memory_refuse(w->workers_refuse);
	for (int i = 0; i < workers; i++)
		job_start(&w->j, "worker", 0, NULL);
	chi_process_memory_refuse(false);
	job_coordinate(&w->j, &w->task, &w->s, &w->c);
	wait_for_workers(w, workers);
}

static void close_world(world *w)
{
	job_end(&w->j, w->task, w->s, w->c);
}

static double read_sum(world *w)
{
	double sum = NAN;
	choir_frame *f = choir_frame_new(NULL);
	choir_tensor *t = choir_variable_read(w->p.sum, f);
	if (t == NULL || choir_tensor_to_host(t, &sum, sizeof sum) != CHOIR_OK)
		sum = NAN;
	choir_frame_free(f);
	return sum;
}

// The hash after some steps in one process.
static uint64_t train_here(
		const choir_strategy_options *o, const program *like, int steps, double *loss)
{
	program p = { .kind = like->kind, .units = like->units };
	choir_strategy *s = choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .seed = o->seed, .replicas = o->replicas));
	assert_int_equal(build(s, &p), CHOIR_OK);
	for (int i = 0; i < steps; i++)
		assert_int_equal(train_on(s, &p, i, loss), CHOIR_OK);
	const uint64_t hash = choir_strategy_hash(s);
	choir_strategy_free(s);
	return hash;
}

// spec: D17, 2.15, 2.16
TEST(one_worker_without_a_window_trains_to_the_bits_of_one_process)
{
	static const choir_optimizer_kind kinds[] = { CHOIR_SGD, CHOIR_ADAM };
	for (int servers = 1; servers <= 2; servers++)
		for (int tcp = 0; tcp < 2; tcp++) {
			world w = { .p = { .kind = kinds[tcp], .units = 2000 },
				.servers_refuse = (servers == 2) != tcp,
				.workers_refuse = servers == 1 && tcp };
			double loss = 0;
			choir_values *result;
			choir_remote_value *value = NULL;
			w.strategy_options.replicas = 2;
			open_world(&w, servers, 1, tcp, CHOIR_ZERO);
			const uint64_t expected = train_here(&w.strategy_options, &w.p, 6, &loss);
			for (int i = 0; i < 6; i++) {
				choir_remote_value_free(value);
				assert_int_equal(job_schedule(w.s, w.c, "train", i, &value), CHOIR_OK);
			}
			assert_int_equal(choir_coordinator_join(w.c), CHOIR_OK);
			assert_int_equal(choir_coordinator_fetch(w.c, value, &result), CHOIR_OK);
			assert_true(number_of(result, "loss") == loss);
			assert_true(choir_strategy_hash(w.s) == expected);
			choir_remote_value_free(value);
			close_world(&w);
		}
}

// spec: D16, 2.15
TEST(of_a_table_only_rows_travel)
{
	for (int i = 0; i < 6; i++) {
		world w = { .p = { .kind = i % 2 == 0 ? CHOIR_SGD : CHOIR_ADAM, .rows = 40 },
			.workers_refuse = i % 3 == 0 };
		program here = w.p;
		w.strategy_options.replicas = 1 + i % 3;
		w.strategy_options.partition = i < 3 ? CHOIR_PARTITION_NONE : CHOIR_PARTITION_FIXED;
		w.strategy_options.max_shards = i < 3 ? 0 : 2;
		open_world(&w, 2, 1, false, CHOIR_ZERO);
		choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
				.seed = w.strategy_options.seed, .replicas = w.strategy_options.replicas));
		assert_int_equal(build(s, &here), CHOIR_OK);
		choir_frame *f = choir_frame_new(NULL);
		choir_tensor *sevens = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(40, 3), 7);
		assert_int_equal(
				choir_variable_assign(choir_layer_variable(w.p.table, 0), sevens), CHOIR_OK);
		assert_int_equal(
				choir_variable_assign(choir_layer_variable(here.table, 0), sevens), CHOIR_OK);
		choir_frame_free(f);
		for (int k = 0; k < 4; k++) {
			choir_remote_value *value;
			choir_values *result;
			assert_int_equal(job_schedule(w.s, w.c, "train_rows", k, &value), CHOIR_OK);
			if (choir_coordinator_fetch(w.c, value, &result) != CHOIR_OK)
				fail_msg("%s", choir_error());
			assert_true(fabs(number_of(result, "unread")) < 1); // not 7
			choir_remote_value_free(value);
			assert_int_equal(train_rows_on(s, &here, k), CHOIR_OK);
		}
		double mean;
		int64_t max;
		choir_coordinator_staleness(w.c, &mean, &max);
		assert_true(mean == 0 && max == 0); // one worker
		assert_true(choir_strategy_hash(w.s) == choir_strategy_hash(s));
		choir_strategy_free(s);
		close_world(&w);
	}
}

// spec: D17, 2.16
TEST(updates_from_an_old_read_are_counted)
{
	enum { OTHERS = 5 };
	world w = { .p.kind = CHOIR_SGD, .j.lost_after = 30 };
	double mean;
	int64_t max;
	siginfo_t stopped = { 0 };
	open_world(&w, 1, 2, false, CHOIR_ZERO);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(job_schedule(w.s, w.c, "train_late", 0, NULL), CHOIR_OK);
		assert_int_equal(waitid(P_ALL, 0, &stopped, WSTOPPED), 0);
		for (int k = 0; k < OTHERS * (i + 1); k++) { // by the other worker
			choir_remote_value *value;
			choir_values *result;
			assert_int_equal(job_schedule(w.s, w.c, "train", k, &value), CHOIR_OK);
			assert_int_equal(choir_coordinator_fetch(w.c, value, &result), CHOIR_OK);
			choir_remote_value_free(value);
		}
		assert_int_equal(kill(stopped.si_pid, SIGCONT), 0);
		assert_int_equal(choir_coordinator_join(w.c), CHOIR_OK);
	}
	choir_coordinator_staleness(w.c, &mean, &max);
	assert_true(mean == 3.0 * OTHERS / (3 * OTHERS + 2));
	assert_int_equal(max, 2 * OTHERS);
	close_world(&w);
}

// spec: D17, 2.16
TEST(failures_are_told_once_and_cancel_what_waits)
{
	world w = { .p.kind = CHOIR_SGD };
	choir_remote_value *failed, *later, *fine;
	choir_values *result;
	bool done;
	open_world(&w, 1, 1, false, 0);
	assert_int_equal(choir_coordinator_schedule(w.c, "no such", NULL, NULL), CHOIR_NOT_FOUND);
	assert_int_equal(choir_coordinator_schedule(w.c, "add", NULL, &fine), CHOIR_OK);
	assert_int_equal(choir_coordinator_fetch(w.c, fine, &result), CHOIR_OK);
	assert_true(number_of(result, "worker") == 0);
	assert_int_equal(choir_coordinator_schedule(w.c, "fails", NULL, &failed), CHOIR_OK);
	choir_status status = CHOIR_OK;
	for (int i = 0; i < 1000 && status == CHOIR_OK; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		status = choir_coordinator_schedule(w.c, "add", NULL, &later);
		if (status == CHOIR_OK)
			choir_remote_value_free(later);
	}
	assert_int_equal(status, CHOIR_INVALID);
	assert_text_holds(choir_error(), "this closure fails*worker 0");
	assert_int_equal(choir_coordinator_fetch(w.c, later, &result), CHOIR_CANCELLED);
	assert_int_equal(choir_coordinator_fetch(w.c, failed, &result), CHOIR_INVALID);
	assert_int_equal(choir_coordinator_join(w.c), CHOIR_OK); // told once
	assert_int_equal(choir_coordinator_schedule(w.c, "scatters", NULL, NULL), CHOIR_OK);
	assert_int_equal(choir_coordinator_join(w.c), CHOIR_UNSUPPORTED);
	assert_int_equal(choir_coordinator_done(w.c, &done), CHOIR_OK);
	assert_true(done);
	assert_int_equal(choir_coordinator_fetch(w.c, fine, &result), CHOIR_OK); // it stays
	choir_remote_value_free(fine);
	choir_remote_value_free(failed);
	choir_remote_value_free(later);
	close_world(&w);
}

// spec: D18, 2.16
TEST(killed_and_stopped_workers_lose_and_repeat_nothing)
{
	enum { CLOSURES = 300 };
	world w = { .p.kind = CHOIR_SGD, .j.lost_after = 0.4 };
	open_world(&w, 2, 3, false, 0);
	int victim = 2;
	for (int i = 0; i < CLOSURES; i++) {
		assert_int_equal(choir_coordinator_schedule(w.c, "add", NULL, NULL), CHOIR_OK);
		if (i % 60 != 30)
			continue;
		wait_for_workers(&w, 3);
		assert_int_equal(kill(w.j.pid[victim], i == 150 ? SIGSTOP : SIGKILL), 0);
		if (i != 150) {
			assert_int_equal(job_wait(&w.j, victim), -1);
		}
		victim = job_start(&w.j, "worker", 0, NULL); // another comes
		if (i == 90)
			assert_true(read_sum(&w) <= 2 * CLOSURES); // between closures
	}
	if (choir_coordinator_join(w.c) != CHOIR_OK)
		fail_msg("%s", choir_error());
	assert_true(read_sum(&w) == 2 * CLOSURES);
	// The stopped one wakes up, finds itself given up, and changes nothing.
	for (int i = 2; i < w.j.n; i++)
		if (w.j.pid[i] != 0)
			kill(w.j.pid[i], SIGCONT);
	nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
	assert_int_equal(choir_coordinator_schedule(w.c, "nothing", NULL, NULL), CHOIR_OK);
	assert_int_equal(choir_coordinator_join(w.c), CHOIR_OK);
	assert_true(read_sum(&w) == 2 * CLOSURES);
	int given_up = 0;
	choir_coordinator_free(w.c);
	w.c = NULL;
	for (int i = 0; i < w.j.n; i++)
		if (w.j.pid[i] != 0)
			given_up += job_wait(&w.j, i) != CHOIR_OK;
	assert_int_equal(given_up, 1);
	close_world(&w);
}

// spec: D18, 2.16
TEST(a_closure_that_ends_its_workers_fails)
{
	world w = { .p.kind = CHOIR_SGD };
	open_world(&w, 1, 3, false, CHOIR_ZERO);
	assert_int_equal(choir_coordinator_schedule(w.c, "deadly", NULL, NULL), CHOIR_OK);
	job_start(&w.j, "worker", 0, NULL);
	assert_int_equal(choir_coordinator_join(w.c), CHOIR_PEER_LOST);
	assert_text_holds(choir_error(), "closure 1*3");
	assert_int_equal(choir_coordinator_schedule(w.c, "add", NULL, NULL), CHOIR_OK);
	assert_int_equal(choir_coordinator_join(w.c), CHOIR_OK);
	int ended = 0;
	choir_coordinator_free(w.c);
	w.c = NULL;
	for (int i = 1; i < w.j.n; i++)
		ended += job_wait(&w.j, i) == 7;
	assert_int_equal(ended, 3); // .attempts
	close_world(&w);
}

// spec: D18, D20, 2.16
TEST(a_lost_server_ends_the_job_with_its_name)
{
	for (int stop = 0; stop < 2; stop++) {
		world w = { .p.kind = CHOIR_SGD, .j.lost_after = 0.4 };
		choir_status status = CHOIR_OK;
		open_world(&w, 2, 1, true, 0);
		assert_int_equal(choir_coordinator_schedule(w.c, "nothing", NULL, NULL), CHOIR_OK);
		assert_int_equal(choir_coordinator_join(w.c), CHOIR_OK);
		for (int i = 0; i < 20; i++)
			assert_int_equal(choir_coordinator_schedule(w.c, "add", NULL, NULL), CHOIR_OK);
		assert_int_equal(kill(w.j.pid[1], stop ? SIGSTOP : SIGKILL), 0);
		for (int i = 0; i < 5000 && status == CHOIR_OK; i++) {
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
			status = choir_coordinator_schedule(w.c, "add", NULL, NULL);
		}
		if (status != CHOIR_PEER_LOST)
			fail_msg("stop %d: %d", stop, (int) status);
		assert_text_holds(choir_error(), "ps 1");
		assert_int_equal(choir_coordinator_join(w.c), CHOIR_PEER_LOST);
		choir_coordinator_free(w.c);
		w.c = NULL;
		assert_true(job_wait(&w.j, 2) != CHOIR_OK); // the worker
		assert_int_equal(job_wait(&w.j, 0), CHOIR_PEER_LOST); // the other server
		if (stop)
			kill(w.j.pid[1], SIGKILL);
		assert_int_equal(job_wait(&w.j, 1), -1);
		close_world(&w);
	}
}

// spec: 2.15, 2.16
TEST(checkpoints_are_of_one_step_and_restore_into_the_servers)
{
	char path[128];
	world w = { .p.kind = CHOIR_ADAM };
	double loss;
	w.strategy_options.partition = CHOIR_PARTITION_FIXED;
	w.strategy_options.max_shards = 2;
	open_world(&w, 2, 1, false, CHOIR_ZERO);
	snprintf(path, sizeof path, "%s/saved", w.j.folder);
	for (int i = 0; i < 3; i++)
		assert_int_equal(job_schedule(w.s, w.c, "train", i, NULL), CHOIR_OK);
	choir_checkpoint_manager *m = choir_checkpoint_manager_new(w.s, path, NULL);
	assert_non_null(m);
	assert_int_equal(choir_checkpoint_manager_save(m, NULL), CHOIR_OK); // between two closures
	assert_int_equal(choir_coordinator_join(w.c), CHOIR_OK);
	assert_int_equal(choir_checkpoint_manager_save(m, NULL), CHOIR_OK);
	const uint64_t saved = choir_strategy_hash(w.s);
	assert_true(saved == train_here(&w.strategy_options, &w.p, 3, &loss));
	for (int i = 3; i < 6; i++)
		assert_int_equal(job_schedule(w.s, w.c, "train", i, NULL), CHOIR_OK);
	const uint64_t later = choir_strategy_hash(w.s); // waits for what runs only
	(void) later;
	assert_int_equal(choir_coordinator_join(w.c), CHOIR_OK);
	const uint64_t last = choir_strategy_hash(w.s);
	assert_true(last != saved);
	assert_int_equal(choir_checkpoint_manager_restore_latest(m), CHOIR_OK);
	assert_true(choir_strategy_hash(w.s) == saved);
	for (int i = 3; i < 6; i++)
		assert_int_equal(job_schedule(w.s, w.c, "train", i, NULL), CHOIR_OK);
	assert_int_equal(choir_coordinator_join(w.c), CHOIR_OK);
	assert_true(choir_strategy_hash(w.s) == last); // slots and counters were restored, too
	choir_checkpoint_manager_free(m);
	char command[200];
	snprintf(command, sizeof command, "rm -r '%s'", path);
	assert_int_equal(system(command), 0);
	close_world(&w);
}

TEST(others_do_not_get_in)
{
	world w = { .p.kind = CHOIR_SGD };
	job stranger;
	open_world(&w, 1, 1, true, 0);
	const int other = job_start(&w.j, "worker", 0, "another program");
	assert_int_equal(job_wait(&w.j, other), CHOIR_STATE);
	choir_coordinator_options fewer = w.options; // a table without the first function
	fewer.functions = &functions[1];
	w.j.options = &fewer;
	const int differs = job_start(&w.j, "worker", 0, NULL);
	assert_int_equal(job_wait(&w.j, differs), CHOIR_STATE);
	w.j.options = &w.options;
	const int late = job_start(&w.j, "ps", 0, NULL); // there is one
	assert_int_equal(job_wait(&w.j, late), CHOIR_STATE);
	stranger = w.j;
	stranger.n = 0;
	snprintf(stranger.key, sizeof stranger.key, "%s/other", w.j.folder);
	assert_int_equal(choir_task_make_key(stranger.key), CHOIR_OK);
	const int wrong = job_start(&stranger, "worker", 0, NULL);
	assert_int_equal(job_wait(&stranger, wrong), CHOIR_INVALID);
	unlink(stranger.key);
	assert_int_equal(choir_coordinator_schedule(w.c, "nothing", NULL, NULL), CHOIR_OK);
	assert_int_equal(choir_coordinator_join(w.c), CHOIR_OK);
	close_world(&w);
}
