// A training: its options, state and parts.
#pragma once

#include "trace_breakdown.h"
#include "model/model_memory.h"
#include "command_options.h"
#include "data/training_data.h"

#include <choir/coordinator.h>

#include <stdio.h>

extern const char *const train_optimizers[]; // ending in NULL

typedef struct {
	const char *model, *widths, *data, *target, *task, *strategy, *devices, *parameter_devices;
	const char *optimizer, *schedule, *nonfinite, *bad_rows, *missing, *auto_shard, *save;
	const char *normalization, *class_weights, *augment, *start;
	const char *precision, *wire; // NULL: f32
	const char *init, *init_map, *freeze;
	const char *trace, *log, *run, *checkpoint, *unsaved;
	const char *separator, *decimal, *missing_values, *categorical; // NULL: not given
	model_size size;
	int64_t train_examples, batch, replicas, cores, workers, epochs, patience, warmup;
	int64_t checkpoint_every, keep, max_categories, image_size;
	double rate, weight_decay, clip, timeout; // timeout: seconds; 0: no limit; below: default
	uint64_t seed;
	bool lock_free, lowest_set, show_split, verbose, json;
} train_options;

// One worker's share of the examples.
typedef struct {
	choir_distributed_dataset *examples;
	choir_values *batch;
	int64_t done, steps; // examples of this epoch; steps of all epochs
	double loss; // of the last logged step
} share;

typedef struct job job; // of train_coordinator.c

// The last change of options at a resume.
enum { CHANGES_SIZE = 1000 };
typedef struct {
	int64_t after; // the step before it
	char text[CHANGES_SIZE]; // "--clip 0.1 (was 0.01)"; "": no change
} option_changes;

// Of an epoch; NAN: unknown.
typedef struct {
	double loss, accuracy; // of the training
	double score, test_loss, absolute_error, r2; // of the test
} epoch_results;

typedef struct {
	train_options *given;
	source data;
	table_plan *table; // NULL: the inputs are not standardized
	int64_t train_examples, test_examples;
	choir_cluster *cluster; // NULL: one process, or a coordinator's job
	choir_task *task; // of a coordinator's job; NULL: none
	job *job;
	choir_strategy *strategy;
	share *share; // of each worker
	choir_distributed_dataset *test;
	model model;
	choir_model *fit;
	const char *metadata; // saved with the weights
	const char *weights; // file whose size the model must match; or NULL
	choir_optimizer *optimizer;
	float *class_weights; // of the losses; NULL: 1
	choir_metric *loss, *score; // score: accuracy, or the loss of a text
	choir_metric *train_accuracy, *test_loss; // not of a text, whose loss says all
	choir_metric *absolute_error, *r2; // of a regression, whose score is the squared error
	choir_metric *each_error[MAX_TARGETS], *each_r2[MAX_TARGETS]; // of several targets
	choir_metric *auc, *precision, *recall; // of the second of two classes; else NULL
	double since; // start of the current epoch
	double seconds, shown; // training time; time of the last progress line
	int64_t epochs; // started epochs
	int64_t earlier; // examples of this epoch before the resume
	int64_t trained; // examples of earlier epochs in this process
	epoch_results last, best; // of the last epoch, and with --patience of the best one
	bool falling; // the loss of the last epoch was below that before
	double majority; // part of the test examples of a table in one class; 0: no classes
	double epoch_seconds; // of the last epoch, without its test
	memory_plan memory;
	breakdown breakdown;
	FILE *run; // with --run, of the chief: events for choir report
	choir_metric *confusion; // of a classification with few classes; NULL: none
	choir_checkpoint_manager *checkpoints; // or NULL
	option_changes changes;
	bool stopped; // by a signal
	// Called before the backward pass; or NULL.
	void (*inspect_losses)(choir_replica *r, choir_tensor *losses, void *user);
	void *inspect_user;
} training;

// The options of train_command set *train_given.
extern const command train_command;
extern train_options *const train_given;

// Joins the workers that a launcher started. Closing aborts the others if status is a failure.
choir_status train_open_cluster(training *t);
void train_close_cluster(training *t, choir_status status);
// Fails unless all workers have the same data files, or each reads its own.
choir_status train_compare_files(const training *t);
bool train_is_chief(const training *t); // only the chief prints and writes
bool train_is_one_of_many(const training *t);
bool train_is_regression(const training *t);
// Several numbers have several units, so their early stopping watches the standardized error.
bool train_watches_loss(const training *t);
const char *train_strategy(const training *t);

// With --strategy parameter_server, joins the job of a coordinator, if the environment names one.
// train_note_defaults: before the options are read.
void train_note_defaults(void);
choir_status train_open_job(training *t);
void train_close_job(training *t);
bool train_serves(const training *t); // as a worker or server, until the job ends (train_serve)
choir_status train_serve(training *t);
choir_status train_coordinate(training *t); // makes the parts, and waits for workers and servers
choir_callback_fn train_job_steps; // user is the training, also below
void train_report_staleness(const training *t);

choir_status train_make(training *t);
// The parts of train_make: the data, and what needs the strategy.
choir_status train_open_data(training *t);
choir_strategy_options train_strategy_options(const training *t);
choir_status train_make_parts(training *t);
void train_free(training *t);
// A step of one replica; user is the training.
choir_status train_step(choir_replica *r, void *user);

// All training examples, in a fixed order.
choir_dataset *train_examples(const training *t);
// Sets the initial weights of an mlp on a table so that it is a linear model of the inputs.
choir_status train_start_linear(const training *t);
// Finds class weights and the majority class. A job's build cannot: it is in the strategy's scope.
choir_status train_count_classes(training *t);
// Opens the test examples and, with one worker, its share.
choir_status train_make_input(training *t);
// group: the worker's strategy.
choir_status train_open_share(training *t, choir_strategy *group, int worker);
extern const char *const train_shards[]; // --auto-shard, in the order of choir_auto_shard
bool train_shards_files(const training *t);
choir_status train_show_split(const training *t, int worker);

// done, also below: examples of one worker in this epoch.
void train_show_progress(training *t, int64_t done);
// Examples per second in this epoch.
double train_rate(const training *t, int64_t done);
void train_report_start(const training *t);
void train_report_epoch(const training *t);
void train_report_end(const training *t);
// A choir_log_fn.
void train_report_warning(choir_log_level level, const char *line, void *user);
// Spans and scalars. train_trace_stop returns status if that is a failure.
choir_status train_trace_start(training *t);
choir_status train_trace_stop(training *t, choir_status status);
// results: of the step; NULL: the first share has the loss.
choir_status train_trace_step(training *t, choir_values *results);
void train_trace_epoch(const training *t);
// The directory of --run; without it these do nothing. train_run_prepare sets the places of the
// trace and the scalars, before the workers compare their options.
choir_status train_run_prepare(training *t);
choir_status train_run_open(training *t);
void train_run_step(const training *t, const share *own);
void train_run_epoch(const training *t);
void train_run_end(const training *t);
void train_run_failed(const training *t); // for the last failure
// CHOIR_IO: an event could not be written.
choir_status train_run_close(training *t);
// Objects of --json, also in the file of --run.
void train_print_epoch(const training *t);
void train_print_end(const training *t);
void train_print_start(const training *t);
// Checkpoints; without --checkpoint these do nothing. Opening resumes from the newest one.
choir_status train_open_checkpoints(training *t);
choir_callback_fn train_save, train_unsaved;
// CHOIR_INVALID: the newest undamaged checkpoint is of other data.
choir_status train_compare_data(const training *t);
bool train_must_stop(void); // a signal has asked
// Options as metadata of checkpoints. train_find_changes compares them with the newest checkpoint,
// of step steps. *now: some differ; else changes has the last recorded change.
enum { RECORDED_SIZE = 1 << 15 };
choir_status train_write_options(const training *t, char *text, size_t size);
choir_status train_find_changes(
		const training *t, int64_t steps, option_changes *changes, bool *now);
// Of the i-th checkpoint: its step (false: choir train did not write it), its options, which are
// written to *train_given (CHOIR_CORRUPT: an invalid value), and its recorded change.
bool train_checkpoint_steps(const choir_checkpoint_list *l, size_t i, int64_t *steps);
choir_status train_recall(const choir_checkpoint_list *l, size_t i);
void train_recall_changes(const choir_checkpoint_list *l, size_t i, option_changes *changes);
// Optimizer slots per weight.
int train_slots(const training *t);
