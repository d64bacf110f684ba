// Training by a coordinator's job: --strategy parameter_server with several processes. A closure
// is one step with one batch, which the coordinator names by its pass and number. So each batch is
// used once in a pass, whichever workers die or join, and a resume continues with the next batch.
#include "train/train.h"

#include "output.h"

#include <choir/coordinator.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN_FLIGHT = 64, SKIPS = 16 };

struct job {
	choir_coordinator *coordinator;
	choir_remote_value *value[IN_FLIGHT]; // of scheduled closures, a ring
	int64_t rows[IN_FLIGHT];
	int64_t scheduled, taken; // of this process
	double loss, accuracy; // sums of this epoch
	int64_t examples; // in these sums
	// A worker's place in the data.
	choir_input_position begin;
	int64_t pass, batch;
	char options[400];
};

static uint64_t hash_value(const option *o)
{
	static char value[RECORDED_SIZE];
	uint64_t hash = 14695981039346656037u; // FNV-1a (Fowler, Noll, Vo)
	const size_t n = options_value(o, value, sizeof value);
	for (size_t i = 0; i < n && i < sizeof value; i++)
		hash = (hash ^ (unsigned char) value[i]) * 1099511628211u;
	return hash;
}

static bool is_checked(const option *o)
{
	return o->recorded || o->to == &train_given->replicas || o->to == &train_given->lock_free;
}

enum { MAX_OPTIONS = 128 };
static uint64_t standard[MAX_OPTIONS];

void train_note_defaults(void)
{
	for (size_t i = 0; i < train_command.n && i < MAX_OPTIONS; i++)
		standard[i] = hash_value(&train_command.options[i]);
}

// What all processes compare. The hash comes first, because a long text is cut.
static void write_options(char *text, size_t size)
{
	uint64_t all = 0;
	size_t at = (size_t) snprintf(text, size, "choir train %016llx", 0ULL);
	for (size_t i = 0; i < train_command.n && i < MAX_OPTIONS; i++) {
		const option *o = &train_command.options[i];
		char value[64] = "";
		const uint64_t hash = hash_value(o);
		if (!is_checked(o) || hash == standard[i])
			continue;
		all = all * 31 + (hash ^ i);
		if (options_value(o, value, sizeof value) >= sizeof value)
			snprintf(value, sizeof value, "...");
		if (at < size)
			at += (size_t) snprintf(text + at, size - at, " %s %s", o->name, value);
	}
	char hash[17];
	snprintf(hash, sizeof hash, "%016llx", (unsigned long long) all);
	memcpy(text + strlen("choir train "), hash, 16);
}

static choir_status open_examples(training *t)
{
	share *own = &t->share[0];
	if (own->examples != NULL)
		return CHOIR_OK;
	CHOIR_TRY(train_open_share(t, t->strategy, 0));
	t->job->begin.size = sizeof t->job->begin;
	return choir_distributed_dataset_save(own->examples, &t->job->begin);
}

// A few batches that others train are read; more are jumped over.
static choir_status seek(training *t, int64_t pass, int64_t batch)
{
	job *j = t->job;
	share *own = &t->share[0];
	const int64_t ahead = batch - j->batch;
	if (pass != j->pass || ahead < 0 || ahead > SKIPS) {
		choir_input_position to = j->begin;
		to.pass = pass;
		to.elements = to.steps = batch;
		CHOIR_TRY(choir_distributed_dataset_restore(own->examples, &to));
		j->pass = pass;
		j->batch = batch;
	}
	for (; j->batch < batch; j->batch++)
		CHOIR_TRY(choir_distributed_dataset_next(own->examples, &own->batch));
	return CHOIR_OK;
}

static int64_t argument(choir_closure *c, const char *name)
{
	const choir_tensor *t = choir_value_tensor(choir_values_find(choir_closure_args(c), name));
	return t == NULL ? -1 : (int64_t) choir_tensor_number(t);
}

static choir_status return_metric(choir_closure *c, const char *name, choir_metric *m)
{
	choir_frame *f = choir_values_frame(choir_closure_args(c));
	const double result = choir_metric_result(m);
	CHOIR_TRY(choir_metric_reset(m));
	return choir_closure_return(c, name, choir_number(f, result));
}

static choir_status train_batch(training *t, choir_closure *c)
{
	share *own = &t->share[0];
	CHOIR_TRY(open_examples(t));
	CHOIR_TRY(seek(t, argument(c, "pass"), argument(c, "batch")));
	CHOIR_TRY(choir_distributed_dataset_next(own->examples, &own->batch));
	t->job->batch++;
	CHOIR_TRY(choir_strategy_run(t->strategy, train_step, t, own->batch, NULL));
	CHOIR_TRY(return_metric(c, "loss", t->loss));
	return t->data.text || train_is_regression(t)
			? CHOIR_OK
			: return_metric(c, "accuracy", t->train_accuracy);
}

// The set belongs to the strategy, which lives as long as the job.
static choir_status run_batch(choir_closure *c, void *user)
{
	training *t = user;
	const choir_status status = train_batch(t, c);
	if (status != CHOIR_OK)
		t->job->pass = -1; // the place is unknown
	choir_values_free(t->share[0].batch);
	t->share[0].batch = NULL;
	return status;
}

static const choir_function functions[] = { { "train_batch", run_batch, NULL },
	{ NULL, NULL, NULL } };

static choir_status build(choir_strategy *s, void *user)
{
	training *t = user;
	t->strategy = s;
	return train_make_parts(t);
}

static choir_coordinator_options job_options(training *t)
{
	return (choir_coordinator_options){ .size = sizeof(choir_coordinator_options),
		.functions = functions,
		.build = build,
		.user = t,
		.program = t->job->options };
}

// Under choir run a signal to stop goes to all processes, and the coordinator has to save first.
static void wait_for_coordinator(void)
{
	const char *supervised = getenv("CHOIR_RUN");
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
	for (size_t i = 0; supervised != NULL && i < sizeof signals / sizeof signals[0]; i++)
		(void) signal(signals[i], SIG_IGN);
}

choir_status train_serve(training *t)
{
	const choir_coordinator_options o = job_options(t);
	t->given->save = t->given->checkpoint = t->given->run = NULL;
	t->given->trace = t->given->log = NULL;
	wait_for_coordinator();
	CHOIR_TRY(train_open_data(t));
	const choir_strategy_options s = train_strategy_options(t);
	const choir_status status = choir_task_serve(t->task, &s, &o);
	t->strategy = NULL; // freed
	free(t->share);
	t->share = NULL;
	return status;
}

bool train_serves(const training *t)
{
	return t->task != NULL && strcmp(choir_task_type(t->task), "coordinator") != 0;
}

static choir_status check_options(const train_options *o)
{
	const char *wrong = o->workers > 0			 ? "--workers"
			: o->show_split						 ? "--show-split"
			: strcmp(o->auto_shard, "data") != 0 ? "--auto-shard"
			: o->parameter_devices != NULL		 ? "--parameter-devices"
												 : NULL;
	return wrong == NULL
			? CHOIR_OK
			: choir_fail(CHOIR_INVALID, "%s: is not for a job of several processes; leave it out",
					  wrong);
}

choir_status train_open_job(training *t)
{
	if (strcmp(t->given->strategy, "parameter_server") != 0)
		return CHOIR_OK;
	const double seconds = t->given->timeout;
	t->task = choir_task_new(CHOIR_OPTIONS(choir_task_options,
			.start_timeout = seconds < 0 ? 0
					: seconds == 0		 ? 1e6
										 : seconds));
	if (t->task == NULL && choir_error_status() == CHOIR_NOT_FOUND)
		return CHOIR_OK; // one process
	if (t->task == NULL)
		return choir_error_status();
	CHOIR_TRY(check_options(t->given));
	t->job = calloc(1, sizeof *t->job);
	if (t->job == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "choir train: out of memory");
	t->job->pass = -1;
	write_options(t->job->options, sizeof t->job->options);
	return CHOIR_OK;
}

choir_status train_coordinate(training *t)
{
	const choir_coordinator_options o = job_options(t);
	t->job->coordinator = choir_coordinator_new(t->strategy, t->task, &o);
	return t->job->coordinator == NULL ? choir_error_status() : CHOIR_OK;
}

void train_close_job(training *t)
{
	job *j = t->job;
	for (; j != NULL && j->taken < j->scheduled; j->taken++)
		choir_remote_value_free(j->value[j->taken % IN_FLIGHT]);
	if (j != NULL)
		choir_coordinator_free(j->coordinator);
	free(j);
	t->job = NULL;
}

static choir_status schedule(training *t, int64_t batch)
{
	job *j = t->job;
	const int64_t left = t->train_examples - batch * t->given->batch;
	const int i = (int) (j->scheduled % IN_FLIGHT);
	choir_values *args = choir_values_new(t->strategy);
	choir_frame *f = args == NULL ? NULL : choir_values_frame(args);
	choir_status status = args == NULL ? choir_error_status() : CHOIR_OK;
	if (status == CHOIR_OK)
		status = choir_values_set(
				args, "pass", choir_tensor_as_value(choir_number(f, (double) (t->epochs - 1))));
	if (status == CHOIR_OK)
		status = choir_values_set(
				args, "batch", choir_tensor_as_value(choir_number(f, (double) batch)));
	if (status == CHOIR_OK)
		status = choir_coordinator_schedule(j->coordinator, "train_batch", args, &j->value[i]);
	choir_values_free(args);
	if (status != CHOIR_OK) {
		choir_remote_value_free(j->value[i]);
		j->value[i] = NULL;
		return status;
	}
	j->rows[i] = left < t->given->batch ? left : t->given->batch;
	j->scheduled++;
	return CHOIR_OK;
}

static double result_of(choir_values *results, const char *name)
{
	const choir_tensor *t = choir_value_tensor(choir_values_find(results, name));
	return t == NULL ? 0 : choir_tensor_number(t);
}

// Waits for the oldest step.
static choir_status take(training *t)
{
	job *j = t->job;
	share *own = &t->share[0];
	choir_values *results;
	const int i = (int) (j->taken % IN_FLIGHT);
	CHOIR_TRY(choir_coordinator_fetch(j->coordinator, j->value[i], &results));
	own->loss = result_of(results, "loss");
	j->loss += own->loss * (double) j->rows[i];
	if (!t->data.text && !train_is_regression(t))
		j->accuracy += result_of(results, "accuracy") * (double) j->rows[i];
	j->examples += j->rows[i];
	choir_remote_value_free(j->value[i]);
	j->taken++;
	own->steps++;
	own->done += t->given->batch;
	train_show_progress(t, own->done);
	return train_trace_step(t, NULL);
}

static choir_status take_all(training *t)
{
	while (t->job->taken < t->job->scheduled)
		CHOIR_TRY(take(t));
	return choir_coordinator_join(t->job->coordinator);
}

// A checkpoint is saved when no step runs, so it has all steps up to its own.
choir_status train_job_steps(const choir_fit_event *e, void *user)
{
	training *t = user;
	job *j = t->job;
	const share *own = &t->share[0];
	const int64_t size = t->given->batch, every = t->given->checkpoint_every;
	const int64_t batches = (t->train_examples + size - 1) / size;
	for (int64_t batch = own->done / size; batch < batches; batch++) {
		CHOIR_TRY(schedule(t, batch));
		const int64_t under_way = j->scheduled - j->taken;
		if (train_must_stop())
			choir_model_stop(e->model);
		if (train_must_stop() || (every > 0 && (own->steps + under_way) % every == 0))
			return take_all(t);
		if (under_way == IN_FLIGHT)
			CHOIR_TRY(take(t));
	}
	CHOIR_TRY(take_all(t));
	const double examples = j->examples > 0 ? (double) j->examples : 1;
	t->last.loss = j->loss / examples;
	t->last.accuracy = j->accuracy / examples;
	j->loss = j->accuracy = 0;
	j->examples = 0;
	return CHOIR_END;
}

void train_report_staleness(const training *t)
{
	double mean;
	int64_t max;
	if (t->job == NULL)
		return;
	choir_coordinator_staleness(t->job->coordinator, &mean, &max);
	if (!t->given->json) {
		printf("staleness: %.2f updates on average, at most %lld\n", mean, (long long) max);
		return;
	}
	json_number("staleness", mean);
	json_integer("staleness_max", max);
}
