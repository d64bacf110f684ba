// What a program is told: full queues, arguments and results that are too large, coordinators of
// other strategies, processes that do not come, workers' datasets.
#include "choir/source.h"

#include "coordinator/coordinator.h"
#include "coordinator/job.h"
#include "test.h"

#include <math.h>
#include <signal.h>
#include <time.h>

static choir_status build(choir_strategy *s, void *user)
{
	choir_variable **sum = user;
	(void) s; // its scope is entered
	*sum = choir_variable_new("sum", CHOIR_SCALAR,
			CHOIR_OPTIONS(choir_variable_options, .dtype = CHOIR_F64, .trainable = CHOIR_OFF,
					.aggregation = CHOIR_AGGREGATION_ONLY_FIRST_REPLICA));
	return *sum == NULL ? choir_error_status() : CHOIR_OK;
}

static double number_of(choir_values *set, const char *name)
{
	double number = NAN;
	choir_tensor *t = choir_value_tensor(choir_values_find(set, name));
	if (t == NULL || choir_tensor_to_host(t, &number, sizeof number) != CHOIR_OK)
		return NAN;
	return number;
}

static choir_status nothing(choir_closure *c, void *user)
{
	(void) c, (void) user;
	return CHOIR_OK;
}

static choir_status add(choir_closure *c, void *user)
{
	choir_frame *f = choir_values_frame(choir_closure_args(c));
	nanosleep(&(struct timespec){ .tv_nsec = 3000000 }, NULL);
	return choir_variable_assign_add(*(choir_variable **) user, choir_number(f, 1));
}

static choir_status fails(choir_closure *c, void *user)
{
	(void) c, (void) user;
	return choir_fail(CHOIR_INVALID, "this closure fails");
}

static choir_dataset *numbers(const choir_input_context *context, void *user)
{
	static const float column[] = { 1, 2, 3, 4 };
	(void) context, (void) user;
	const choir_column columns[] = { { .name = "n", .dtype = CHOIR_F32, .data = column } };
	return choir_dataset_batch(
			choir_dataset_repeat(choir_memory_dataset_new(4, 1, columns, true), -1), 2);
}

static choir_status reads(choir_closure *c, void *user)
{
	choir_values *batch = NULL;
	(void) user;
	CHOIR_TRY(choir_distributed_dataset_next(choir_closure_dataset(c, "numbers"), &batch));
	choir_tensor *t =
			choir_sum(choir_value_local(choir_values_find(batch, "n"), 0), CHOIR_ALL_AXES);
	const choir_status status = choir_closure_return(c, "sum", choir_cast(t, CHOIR_F64));
	choir_values_free(batch);
	return status;
}

static choir_dataset *broken(const choir_input_context *context, void *user)
{
	(void) context, (void) user;
	choir_fail(CHOIR_IO, "these numbers are broken");
	return NULL;
}

static choir_status reads_broken(choir_closure *c, void *user)
{
	(void) user;
	if (choir_closure_dataset(c, "nothing") != NULL || choir_error_status() != CHOIR_NOT_FOUND)
		return choir_fail(CHOIR_INTERNAL, "a closure's function is no dataset");
	return choir_closure_dataset(c, "broken") == NULL ? choir_error_status() : CHOIR_OK;
}

// Returns as many f32 as number says.
static choir_status returns(choir_closure *c, void *user)
{
	(void) user;
	const int64_t n = (int64_t) number_of(choir_closure_args(c), "number");
	choir_frame *f = choir_values_frame(choir_closure_args(c));
	return choir_closure_return(c, "zeros", choir_fill(f, CHOIR_F32, CHOIR_SHAPE(n), 0));
}

static const choir_function functions[] = { { "nothing", nothing, NULL }, { "add", add, NULL },
	{ "fails", fails, NULL }, { "reads", reads, NULL }, { "reads_broken", reads_broken, NULL },
	{ "returns", returns, NULL }, { "numbers", NULL, numbers }, { "broken", NULL, broken },
	{ NULL, NULL, NULL } };

typedef struct {
	job j;
	choir_coordinator_options options;
	choir_task *task;
	choir_strategy *s;
	choir_coordinator *c;
	choir_variable *sum;
	int queue;
} world;

static void wait_for_workers(const world *w, int workers)
{
	for (int i = 0; choir_coordinator_workers(w->c) != workers && i < 5000; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_int_equal(choir_coordinator_workers(w->c), workers);
}

// A server and a worker.
static void open_world(world *w, int window)
{
	w->options = (choir_coordinator_options){ .size = sizeof w->options,
		.functions = functions,
		.build = build,
		.user = &w->sum,
		.window = window,
		.queue = w->queue,
		.program = "coordinator" };
	w->j.options = &w->options;
	job_open(&w->j, 1, false);
	job_start(&w->j, "ps", 0, NULL);
	job_start(&w->j, "worker", 0, NULL);
	job_coordinate(&w->j, &w->task, &w->s, &w->c);
	wait_for_workers(w, 1);
}

static void close_world(world *w)
{
	job_end(&w->j, w->task, w->s, w->c);
}

static double read_sum(const world *w)
{
	double sum = NAN;
	choir_frame *f = choir_frame_new(NULL);
	choir_tensor *t = choir_variable_read(w->sum, f);
	if (t == NULL || choir_tensor_to_host(t, &sum, sizeof sum) != CHOIR_OK)
		sum = NAN;
	choir_frame_free(f);
	return sum;
}

static void read_numbers(world *w, double sum, choir_remote_value **value)
{
	choir_values *result;
	assert_int_equal(choir_coordinator_schedule(w->c, "reads", NULL, value), CHOIR_OK);
	assert_int_equal(choir_coordinator_fetch(w->c, *value, &result), CHOIR_OK);
	assert_true(number_of(result, "sum") == sum);
}

// A worker that has died takes no results with it, and its successor reads from the beginning.
// spec: D17, D18, 2.16
TEST(workers_have_their_own_datasets)
{
	world w = { .sum = NULL };
	open_world(&w, 0);
	static const double sums[] = { 3, 7, 3, 3 };
	choir_remote_value *value[5];
	choir_values *result;
	for (int i = 0; i < 3; i++)
		read_numbers(&w, sums[i], &value[i]);
	assert_int_equal(choir_coordinator_schedule(w.c, "reads", NULL, &value[4]), CHOIR_OK);
	assert_int_equal(choir_coordinator_join(w.c), CHOIR_OK);
	assert_int_equal(kill(w.j.pid[1], SIGKILL), 0);
	assert_int_equal(job_wait(&w.j, 1), -1);
	wait_for_workers(&w, 0);
	job_start(&w.j, "worker", 0, NULL);
	read_numbers(&w, sums[3], &value[3]);
	assert_int_equal(choir_coordinator_fetch(w.c, value[1], &result), CHOIR_OK);
	assert_true(number_of(result, "sum") == 7);
	assert_int_equal(choir_coordinator_fetch(w.c, value[4], &result), CHOIR_OK);
	assert_true(number_of(result, "sum") == 7);
	assert_int_equal(choir_coordinator_schedule(w.c, "reads_broken", NULL, NULL), CHOIR_OK);
	assert_int_equal(choir_coordinator_join(w.c), CHOIR_IO);
	assert_text_holds(choir_error(), "numbers are broken*worker");
	for (int i = 0; i < 5; i++)
		choir_remote_value_free(value[i]);
	close_world(&w);
}

// spec: D17, 2.16
TEST(a_full_queue_blocks_and_done_does_not)
{
	enum { QUEUE = 4 };
	world w = { .queue = QUEUE };
	bool done = true;
	open_world(&w, CHOIR_ZERO);
	assert_int_equal(kill(w.j.pid[1], SIGSTOP), 0);
	assert_int_equal(choir_coordinator_schedule(w.c, "add", NULL, NULL), CHOIR_OK);
	assert_int_equal(choir_coordinator_done(w.c, &done), CHOIR_OK);
	assert_false(done);
	assert_int_equal(kill(w.j.pid[1], SIGCONT), 0);
	for (int i = 0; i < 8 * QUEUE; i++) {
		assert_int_equal(choir_coordinator_schedule(w.c, "add", NULL, NULL), CHOIR_OK);
		chi_mutex_lock(&w.c->network.lock);
		const size_t waiting = w.c->dispatch.closures.waiting.n;
		chi_mutex_unlock(&w.c->network.lock);
		assert_in_range(waiting, 0, QUEUE);
	}
	assert_int_equal(choir_coordinator_join(w.c), CHOIR_OK);
	assert_int_equal(choir_coordinator_done(w.c, &done), CHOIR_OK);
	assert_true(done);
	assert_true(read_sum(&w) == 8 * QUEUE + 1);
	assert_int_equal(choir_coordinator_schedule(w.c, "fails", NULL, NULL), CHOIR_OK);
	choir_status status = CHOIR_OK;
	for (int i = 0; i < 5000 && status == CHOIR_OK; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		status = choir_coordinator_done(w.c, &done);
	}
	assert_int_equal(status, CHOIR_INVALID);
	assert_int_equal(choir_coordinator_done(w.c, &done), CHOIR_OK); // told once
	close_world(&w);
}

// Whoever sends more than fits is told, and no worker and no connection ends for it.
// spec: D17, 2.16
TEST(arguments_and_results_have_a_limit)
{
	const double most = (64 << 20) / sizeof(float);
	world w = { .sum = NULL };
	choir_remote_value *value;
	choir_values *result;
	open_world(&w, 0);
	choir_values *args = choir_values_new(w.s);
	choir_tensor *t =
			choir_fill(choir_values_frame(args), CHOIR_F32, CHOIR_SHAPE((int64_t) most), 0);
	assert_int_equal(choir_values_set(args, "much", choir_tensor_as_value(t)), CHOIR_OK);
	assert_int_equal(choir_coordinator_schedule(w.c, "nothing", args, NULL), CHOIR_INVALID);
	assert_text_holds(choir_error(), "much*67108864");
	choir_values_free(args);
	assert_int_equal(job_schedule(w.s, w.c, "returns", most, &value), CHOIR_OK);
	assert_int_equal(choir_coordinator_fetch(w.c, value, &result), CHOIR_INVALID);
	assert_text_holds(choir_error(), "zeros*67108864*worker 0");
	choir_remote_value_free(value);
	assert_int_equal(choir_coordinator_join(w.c), CHOIR_INVALID);
	assert_int_equal(job_schedule(w.s, w.c, "returns", most - 1024, &value), CHOIR_OK);
	if (choir_coordinator_fetch(w.c, value, &result) != CHOIR_OK)
		fail_msg("%s", choir_error());
	assert_int_equal(choir_coordinator_workers(w.c), 1);
	choir_remote_value_free(value);
	close_world(&w);
}

// spec: D17, 2.16
TEST(a_coordinator_needs_a_strategy_of_its_own)
{
	world w = { .sum = NULL };
	open_world(&w, 0);
	assert_null(choir_coordinator_new(w.s, w.task, &w.options));
	assert_int_equal(choir_error_status(), CHOIR_STATE);
	assert_text_holds(choir_error(), "a coordinator already");
	choir_strategy *others[] = { NULL, choir_mirrored_strategy_new(NULL),
		choir_parameter_server_strategy_new(
				CHOIR_OPTIONS(choir_strategy_options, .workers = 2, .replicas = 2)) };
	static const char *const facts[] = { "NULL", "mirrored*parameter_server", "2 workers" };
	for (int i = 0; i < 3; i++) {
		assert_null(choir_coordinator_new(others[i], w.task, &w.options));
		assert_int_equal(choir_error_status(), CHOIR_INVALID);
		assert_text_holds(choir_error(), facts[i]);
		choir_strategy_free(others[i]);
	}
	assert_int_equal(choir_coordinator_schedule(w.c, "nothing", NULL, NULL), CHOIR_OK);
	assert_int_equal(choir_coordinator_join(w.c), CHOIR_OK);
	close_world(&w);
}

// The job ends while the second worker waits for a server that does not answer.
// spec: D17, 2.16
TEST(a_worker_ends_well_before_it_has_reached_all_servers)
{
	world w = { .sum = NULL };
	open_world(&w, 0);
	assert_int_equal(kill(w.j.pid[0], SIGSTOP), 0);
	job_start(&w.j, "worker", 0, NULL);
	wait_for_workers(&w, 2);
	choir_coordinator_free(w.c);
	w.c = NULL;
	assert_int_equal(kill(w.j.pid[0], SIGCONT), 0);
	close_world(&w);
}

// A job without servers, or without workers, and processes without a coordinator.
// spec: D17, 2.16
TEST(who_does_not_come_is_said)
{
	world w = { .sum = NULL };
	static const char *const types[] = { "worker", "ps" };
	w.options = (choir_coordinator_options){
		.size = sizeof w.options, .functions = functions, .build = build, .user = &w.sum
	};
	w.j = (job){ .options = &w.options, .patience = 0.3 };
	job_open(&w.j, 1, false);
	for (int i = 0; i < 2; i++) {
		choir_task *alone = job_task(&w.j, types[i], 0);
		assert_int_equal(choir_task_serve(alone, NULL, &w.options), CHOIR_TIMEOUT);
		assert_text_holds(choir_error(), "no coordinator*0.3 s");
		choir_task_free(alone);
	}
	for (int servers = 0; servers < 2; servers++) {
		choir_strategy *s = choir_parameter_server_strategy_new(NULL);
		choir_task *task = job_task(&w.j, "coordinator", 0);
		w.j.patience = 8;
		const int ps = servers == 0 ? -1 : job_start(&w.j, "ps", 0, NULL);
		w.j.patience = 0.3;
		assert_null(choir_coordinator_new(s, task, &w.options));
		assert_int_equal(choir_error_status(), CHOIR_TIMEOUT);
		assert_text_holds(choir_error(), servers == 0 ? "0 of 1 ps*0 workers" : "0 workers");
		choir_strategy_free(s);
		choir_task_free(task);
		if (ps >= 0)
			kill(w.j.pid[ps], SIGKILL);
	}
	job_close(&w.j);
}
