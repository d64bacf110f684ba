// The directory that --run writes for choir report: run.jsonl with an event per line, the
// traces of all workers, and event files for TensorBoard. Events are the objects of --json, and
// those of the steps, the options, the machine and the confusion matrix.
#include "output.h"
#include "train/train.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

choir_status train_run_prepare(training *t)
{
	static char trace[PATH_SIZE + 16];
	train_options *given = t->given;
	if (given->run == NULL)
		return CHOIR_OK;
	if (given->trace != NULL || given->log != NULL)
		return choir_fail(CHOIR_INVALID, "--run %.200s: also %s given; needs --run alone",
				given->run, given->trace != NULL ? "--trace" : "--log");
	if (strlen(given->run) >= PATH_SIZE - 16)
		return choir_fail(CHOIR_INVALID, "--run %.40s...: path too long", given->run);
	snprintf(trace, sizeof trace, "%s/trace.json", given->run);
	given->trace = trace;
	given->log = given->run;
	return CHOIR_OK;
}

static void write_machine(const training *t)
{
	char host[64] = "", when[32];
	const time_t now_is = time(NULL);
	struct tm utc;
	gethostname(host, sizeof host - 1);
	strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&now_is, &utc));
	const int v = choir_version();
	char version[32];
	snprintf(version, sizeof version, "%d.%d.%d", v / 10000, v / 100 % 100, v % 100);
	json_begin_event("machine");
	json_text("host", host);
	json_integer("processors", sysconf(_SC_NPROCESSORS_ONLN));
	json_text("instruction_set", choir_instruction_set());
	json_text("kernels", choir_has_feature("onednn") ? "oneDNN" : "plain");
	json_text("version", version);
	json_text("started", when);
	json_integer("workers", train_is_one_of_many(t) ? choir_cluster_workers(t->cluster) : 1);
	json_integer("replicas", choir_strategy_replicas(t->strategy));
	json_text("strategy", train_strategy(t));
	json_end();
}

static void write_options(void)
{
	char value[1024];
	json_begin_event("options");
	for (size_t i = 0; i < train_command.n; i++) {
		const option *o = &train_command.options[i];
		const size_t n = o->kind == OPTION_FLAG ? 0 : options_value(o, value, sizeof value);
		if (n > 0 && n < sizeof value)
			json_text(o->name, value);
	}
	json_end();
}

choir_status train_run_open(training *t)
{
	char path[PATH_SIZE + 16];
	if (t->given->run == NULL || !train_is_chief(t))
		return CHOIR_OK;
	if (mkdir(t->given->run, 0777) != 0 && errno != EEXIST)
		return choir_fail(
				CHOIR_IO, "--run %.300s: make the directory: %s", t->given->run, strerror(errno));
	snprintf(path, sizeof path, "%s/run.jsonl", t->given->run);
	// A resumed training continues the curves.
	t->run = fopen(path, t->given->checkpoint != NULL ? "a" : "w");
	if (t->run == NULL)
		return choir_fail(CHOIR_IO, "%.300s: %s", path, strerror(errno));
	json_to(t->run);
	write_machine(t);
	write_options();
	train_print_start(t);
	json_to(NULL);
	return fflush(t->run) == 0 ? CHOIR_OK
							   : choir_fail(CHOIR_IO, "%.300s: write: %s", path, strerror(errno));
}

void train_run_step(const training *t, const share *own)
{
	if (t->run == NULL)
		return;
	json_to(t->run);
	json_begin_event("step");
	json_integer("step", own->steps);
	json_number("loss", own->loss);
	json_number("learning_rate", choir_optimizer_learning_rate(t->optimizer));
	json_number("examples_per_s", train_rate(t, own->done * choir_strategy_workers(t->strategy)));
	json_end();
	json_to(NULL);
}

void train_run_epoch(const training *t)
{
	if (t->run == NULL)
		return;
	json_to(t->run);
	train_print_epoch(t);
	json_to(NULL);
	fflush(t->run); // choir report shows a training that goes on
}

static const char *class_of(const training *t, int64_t i, char number[24])
{
	if (t->table != NULL && (size_t) i < t->table->classes)
		return t->table->name[i];
	snprintf(number, 24, "%lld", (long long) i);
	return number;
}

static void write_confusion(const training *t)
{
	char number[24];
	choir_frame *f = choir_frame_new(NULL);
	const choir_tensor *matrix = choir_metric_confusion_matrix(t->confusion, f);
	const int64_t n = t->data.classes;
	const int64_t *row = matrix == NULL ? NULL : choir_tensor_data(matrix);
	for (int64_t i = 0; row != NULL && i < n; i++, row += n) {
		json_begin_event("class");
		json_integer("class", i);
		json_text("name", class_of(t, i, number));
		json_list("predicted", (size_t) n, row);
		json_end();
	}
	choir_frame_free(f);
}

// All workers take part in the collectives; the standard output of others goes nowhere.
void train_run_end(const training *t)
{
	if (t->given->run == NULL)
		return;
	json_to(t->run);
	if (t->confusion != NULL)
		write_confusion(t);
	train_print_end(t);
	json_to(NULL);
}

void train_run_failed(const training *t)
{
	if (t->run == NULL)
		return;
	json_to(t->run);
	json_begin_event("failed");
	json_text("text", choir_error());
	json_integer("stopped", t->stopped); // by a signal
	json_end();
	json_to(NULL);
	fflush(t->run);
}

choir_status train_run_close(training *t)
{
	FILE *run = t->run;
	t->run = NULL;
	if (run == NULL)
		return CHOIR_OK;
	const bool whole = !ferror(run);
	return fclose(run) == 0 && whole
			? CHOIR_OK
			: choir_fail(CHOIR_IO, "--run %.300s: run.jsonl could not be written", t->given->run);
}
