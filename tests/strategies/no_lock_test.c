// The program's functions run with no mutex of Choir's held: debug builds check it at each place
// where one is called. Here a mutex is taken before, in a child, which must abort with its name.
#include "test.h"

#ifndef NDEBUG

#include <choir/choir.h>

#include "base/lock.h"
#include "base/log.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

// Of a lower rank than all of Choir's.
static chi_mutex outermost = CHI_MUTEX_STATIC((chi_rank) 1, "outermost");

static choir_strategy *one_replica(void)
{
	return choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options, .devices = "cpu:0"));
}

static choir_variable *variable(choir_strategy *s, choir_initializer_fn *fn)
{
	choir_variable *v = NULL;
	CHOIR_SCOPE (s)
		v = choir_variable_new("v", CHOIR_SHAPE(2),
				CHOIR_OPTIONS(choir_variable_options,
						.aggregation = CHOIR_AGGREGATION_ONLY_FIRST_REPLICA,
						.initializer_fn = fn));
	return v;
}

// ---- Runs and what is called in them.

static choir_status do_nothing(choir_replica *r, void *user)
{
	(void) r, (void) user;
	return CHOIR_OK;
}

static choir_status call_replica(void)
{
	choir_strategy *s = one_replica();
	chi_mutex_lock(&outermost);
	return choir_strategy_run(s, do_nothing, NULL, NULL, NULL);
}

static choir_status merge(choir_cross *x, void *user)
{
	(void) x, (void) user;
	return CHOIR_OK;
}

static choir_status lock_and_merge(choir_replica *r, void *user)
{
	chi_mutex_lock(&outermost);
	return choir_replica_merge_call(r, merge, user);
}

static choir_status call_merge(void)
{
	return choir_strategy_run(one_replica(), lock_and_merge, NULL, NULL, NULL);
}

static choir_status update(choir_update *u, void *user)
{
	(void) u, (void) user;
	return CHOIR_OK;
}

static choir_status call_update(void)
{
	choir_strategy *s = one_replica();
	choir_variable *v = variable(s, NULL);
	choir_cross *x = choir_strategy_cross(s);
	chi_mutex_lock(&outermost);
	return choir_cross_update(x, v, NULL, update, NULL);
}

static choir_status work(choir_strategy *group, int worker, void *user)
{
	(void) group, (void) worker, (void) user;
	return CHOIR_OK;
}

static choir_status call_worker(void)
{
	choir_strategy *s = one_replica();
	chi_mutex_lock(&outermost);
	return choir_strategy_run_workers(s, work, NULL);
}

static choir_status initialize(void *out, const choir_shape *shape, void *user)
{
	(void) out, (void) shape, (void) user;
	return CHOIR_OK;
}

static choir_status call_initializer(void)
{
	choir_strategy *s = one_replica();
	chi_mutex_lock(&outermost);
	return variable(s, initialize) == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_tensor *look(choir_tensor *t, void *user)
{
	(void) user;
	return t;
}

static choir_status call_fetch(void)
{
	choir_strategy *s = one_replica();
	choir_variable *v = variable(s, NULL);
	choir_cross *x = choir_strategy_cross(s);
	chi_mutex_lock(&outermost);
	return choir_cross_fetch(x, v, choir_device_find("cpu:0"), look, NULL) == NULL
			? choir_error_status()
			: CHOIR_OK;
}

static choir_tensor *value(choir_frame *f, int replica, int count, void *user)
{
	(void) replica, (void) count, (void) user;
	return choir_number(f, 1);
}

static choir_status call_value(void)
{
	choir_values *set = choir_values_new(one_replica());
	chi_mutex_lock(&outermost);
	return choir_values_set_from_function(set, "x", value, NULL);
}

// ---- Training.

static double rate(int64_t step, void *user)
{
	(void) step, (void) user;
	return 1;
}

static choir_status call_schedule(void)
{
	const choir_schedule by = { .size = sizeof by, .kind = CHOIR_SCHEDULE_FUNCTION, .fn = rate };
	choir_optimizer *o = NULL;
	CHOIR_SCOPE (one_replica())
		o = choir_optimizer_new(CHOIR_SGD,
				CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 1, .schedule = &by));
	chi_mutex_lock(&outermost);
	return choir_optimizer_learning_rate(o) == 1 ? CHOIR_OK : choir_error_status();
}

typedef struct {
	choir_variable *v;
	choir_optimizer *o;
} giving;

static void see(choir_replica *r, choir_variable *v, choir_tensor *gradient, void *user)
{
	(void) r, (void) v, (void) gradient, (void) user;
}

static choir_status give(choir_replica *r, void *user)
{
	const giving *g = user;
	choir_tensor *gradient = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 1);
	chi_mutex_lock(&outermost);
	return choir_optimizer_add_gradient(g->o, r, g->v, gradient);
}

static choir_status call_hook(void)
{
	choir_strategy *s = one_replica();
	giving g = { .v = variable(s, NULL) };
	CHOIR_SCOPE (s)
		g.o = choir_optimizer_new(
				CHOIR_SGD, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 1));
	CHOIR_TRY(choir_strategy_set_gradient_hook(s, see, NULL));
	return choir_strategy_run(s, give, &g, NULL, NULL);
}

// ---- Operations.

static choir_tensor *formula(choir_tensor *const inputs[], void *user)
{
	(void) user;
	return inputs[0];
}

static choir_status call_formula(void)
{
	choir_tensor *x = choir_fill(choir_frame_new(NULL), CHOIR_F64, CHOIR_SHAPE(2), 1);
	chi_mutex_lock(&outermost);
	return choir_recompute(1, &x, formula, NULL) == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_status forward(size_t n, const choir_buffer in[], choir_buffer *out, void *user)
{
	(void) n, (void) in, (void) out, (void) user;
	return CHOIR_OK;
}

static choir_status call_custom(void)
{
	const choir_custom_op op = { .size = sizeof op, .forward = forward };
	choir_tensor *x = choir_fill(choir_frame_new(NULL), CHOIR_F64, CHOIR_SHAPE(2), 1);
	chi_mutex_lock(&outermost);
	return choir_custom_op_apply(&op, NULL, 1, &x) == NULL ? choir_error_status() : CHOIR_OK;
}

// ---- Data.

static choir_status read_one(choir_dataset *d)
{
	choir_values *batch = NULL;
	choir_distributed_dataset *data =
			choir_strategy_distribute_dataset(one_replica(), choir_dataset_batch(d, 2), NULL);
	chi_mutex_lock(&outermost);
	return choir_distributed_dataset_next(data, &batch);
}

static choir_dataset *numbers(void)
{
	return choir_range_dataset_new("number", 0, 8, 1);
}

static choir_status example(int64_t position, void *const out[], void *user)
{
	(void) user;
	*(int64_t *) out[0] = position;
	return CHOIR_OK;
}

static choir_status call_example(void)
{
	const choir_column column = { .name = "number", .dtype = CHOIR_I64 };
	return read_one(choir_generator_dataset_new(1, &column, example, NULL));
}

static choir_status map(const choir_component in[], choir_component out[], void *user)
{
	(void) in, (void) out, (void) user;
	return CHOIR_OK;
}

static choir_status call_map(void)
{
	return read_one(choir_dataset_map(numbers(), NULL, map, NULL));
}

static bool filter(const choir_component in[], void *user)
{
	(void) in, (void) user;
	return true;
}

static choir_status call_filter(void)
{
	return read_one(choir_dataset_filter(numbers(), filter, NULL));
}

static choir_dataset *inner(const choir_component in[], void *user)
{
	(void) in, (void) user;
	return numbers();
}

static choir_status call_interleave(void)
{
	return read_one(choir_dataset_interleave(numbers(), NULL, inner, NULL));
}

static choir_dataset *file(const char *path, void *user)
{
	(void) path, (void) user;
	return numbers();
}

static choir_status call_file(void)
{
	const char *path = "some";
	choir_files *files = choir_files_new(1, &path);
	chi_mutex_lock(&outermost);
	return choir_files_dataset_new(files, file, NULL) == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_dataset *dataset(const choir_input_context *context, void *user)
{
	(void) context, (void) user;
	return choir_dataset_batch(numbers(), 2);
}

static choir_status call_dataset(void)
{
	choir_strategy *s = one_replica();
	chi_mutex_lock(&outermost);
	return choir_strategy_distribute_datasets_from_function(s, dataset, NULL, NULL) == NULL
			? choir_error_status()
			: CHOIR_OK;
}

// ---- What Choir tells.

static void hear(choir_log_level level, const char *line, void *user)
{
	(void) level, (void) line, (void) user;
}

static choir_status call_log(void)
{
	choir_logger_set(CHOIR_LOG_WARNING, hear, NULL);
	chi_mutex_lock(&outermost);
	chi_log(CHOIR_LOG_WARNING, "a line");
	return CHOIR_OK;
}

static void span(const choir_trace_span *s, void *user)
{
	(void) s, (void) user;
}

static choir_status call_span(void)
{
	CHOIR_TRY(choir_trace_start(NULL, CHOIR_OPTIONS(choir_trace_options, .span = span)));
	CHOIR_TRY(choir_strategy_run(one_replica(), do_nothing, NULL, NULL, NULL));
	chi_mutex_lock(&outermost);
	return choir_trace_stop();
}

// Runs fn in a child; what it wrote to stderr. It must have aborted.
static void assert_caught(choir_status (*fn)(void), const char *name)
{
	static const char line[] =
			"choir: a bug: mutex outermost (rank 1) is held where the program's code is called\n";
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	fflush(NULL);
	const pid_t child = fork();
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		signal(SIGABRT, SIG_DFL);
		dup2(ends[1], STDERR_FILENO);
		if (fn() != CHOIR_OK)
			fprintf(stderr, "%s\n", choir_error());
		_exit(0);
	}
	close(ends[1]);
	char text[256];
	const ssize_t got = read(ends[0], text, sizeof text - 1);
	text[got > 0 ? got : 0] = '\0';
	close(ends[0]);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	if (strcmp(text, line) != 0 || !WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
		fail_msg("%s: status %x, \"%s\"", name, (unsigned) status, text);
}

TEST(every_function_is_checked)
{
	static const struct {
		choir_status (*fn)(void);
		const char *name;
	} calls[] = { { call_replica, "replica" }, { call_merge, "merge" }, { call_update, "update" },
		{ call_worker, "worker" }, { call_initializer, "initializer" }, { call_fetch, "fetch" },
		{ call_value, "value" }, { call_schedule, "schedule" }, { call_hook, "gradient hook" },
		{ call_formula, "formula" }, { call_custom, "custom operation" },
		{ call_example, "example" }, { call_map, "map" }, { call_filter, "filter" },
		{ call_interleave, "interleave" }, { call_file, "file" }, { call_dataset, "dataset" },
		{ call_log, "log" }, { call_span, "span" } };
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
		assert_caught(calls[i].fn, calls[i].name);
}

#else

TEST(every_function_is_checked)
{
	skip(); // only debug builds check
}

#endif
