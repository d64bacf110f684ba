// A training of the command: what was asked for, what it is made of and how far it is. train.c
// runs it, train_setup.c makes its parts, train_report.c tells of it.
#pragma once

#include "train/best.h"
#include "bench/breakdown.h"
#include "model/model_memory.h"
#include "command_options.h"
#include "data/source.h"

extern const char *const train_optimizers[]; // ending in NULL

typedef struct {
	const char *model, *widths, *data, *target, *strategy, *devices, *parameter_devices;
	const char *optimizer, *schedule, *nonfinite, *bad_rows, *auto_shard, *save;
	const char *init, *init_map, *freeze;
	const char *trace, *log, *checkpoint, *unsaved;
	model_size size;
	int64_t train_examples, batch, replicas, cores, workers, epochs, patience, warmup;
	int64_t checkpoint_every, keep;
	double rate, clip, timeout; // timeout: seconds; 0: none
	uint64_t seed;
	bool lock_free, lowest_set, show_split, json;
} train_options;

// What one worker trains with: its share of the examples.
typedef struct {
	choir_distributed_dataset *examples; // made by the worker
	choir_values *batch;
	int64_t done; // of this epoch
	int64_t steps; // so far
} share;

// That a training was started again with other options than before, at last after a step.
enum { CHANGES_SIZE = 1000 };
typedef struct {
	int64_t after; // all steps after this one have had the same options
	char text[CHANGES_SIZE]; // "--rate 0.1 (was 0.01)"; "": it was never
} option_changes;

typedef struct {
	train_options *given;
	source data;
	table_plan *table; // NULL: inputs are not standardised
	int64_t train_examples, test_examples;
	choir_cluster *cluster; // NULL: this process alone
	choir_strategy *strategy;
	share *share; // of each worker
	choir_distributed_dataset *test;
	model model;
	const char *metadata; // of the model, for what is saved
	const char *weights; // a file that the model must fit to; NULL: it is a new one
	choir_optimizer *optimizer;
	choir_metric *loss, *score; // score: accuracy, or for text the loss of the test set
	choir_values *batch;
	double since; // when the epoch on its way began
	double seconds, shown; // of training, so far; when progress was shown
	int64_t epochs; // so far, with the one on its way
	int64_t earlier; // examples of the epoch on its way that another process has trained on
	int64_t trained; // examples that this one has, in the epochs before
	double last_loss, last_score; // last_score: NAN without a test set
	memory_plan memory;
	best_weights best;
	double best_score;
	int64_t best_epoch; // 0: none yet
	int64_t worse; // epochs since the best
	breakdown breakdown; // of the trace
	double logged_sum; // of the losses of the epoch's first logged_done examples: the last row's
	int64_t logged_done, logged_epoch;
	choir_checkpoint_manager *checkpoints; // NULL: none are made
	option_changes changes;
	bool resumed; // in the middle of an epoch
	bool stopped; // as asked, behind a checkpoint
	// Is shown the losses of each replica's examples before the way back; NULL: nobody is.
	void (*inspect_losses)(choir_replica *r, choir_tensor *losses, void *user);
	void *inspect_user;
} training;

// The command: its options set *train_given.
extern const command train_command;
extern train_options *const train_given;

// The workers of this training, where a launcher has started several (train_cluster.c); which of
// them this is, and its strategy. Closing: how the training went, of which the others are told.
choir_status train_open_cluster(training *t);
void train_close_cluster(training *t, choir_status status);
// Whether all workers have the same files of data, where all of them read everything.
choir_status train_compare_files(const training *t);
bool train_is_chief(const training *t); // it alone speaks and writes
bool train_is_one_of_many(const training *t);
const char *train_strategy(const training *t);

// Makes all that t->given asks for; nothing of it is trained yet.
choir_status train_make(training *t);
void train_free(training *t);
// What each replica does in a step; user is the training.
choir_status train_step(choir_replica *r, void *user);

// The test examples, and room for the shares of the workers; of one alone also the share.
choir_status train_make_input(training *t);
// Makes the share of a worker, whose strategy group is.
choir_status train_open_share(training *t, choir_strategy *group, int worker);
// Names of policies, in the order of choir_auto_shard.
extern const char *const train_shards[];
// Whether workers read files of their own.
bool train_shards_files(const training *t);
// If it is asked for.
choir_status train_show_split(const training *t, int worker);

// How far it is, at most ten times a second, where standard output is a terminal. done: the
// examples of one worker in this epoch; the others are about as far.
void train_show_progress(training *t, int64_t done);
// Examples a second of this process in the epoch on its way, of which done are done.
double train_rate(const training *t, int64_t done);
void train_report_start(const training *t);
void train_report_epoch(const training *t);
void train_report_end(const training *t);
// A warning of the library (choir_log_fn), or of ours.
void train_report_warning(choir_log_level level, const char *line, void *user);
// Spans and scalars, if they are asked for (train_trace.c). A trace that cannot be written fails
// the command at its end. status: how the training went; the failure of that goes before.
choir_status train_trace_start(training *t);
choir_status train_trace_stop(training *t, choir_status status);
void train_trace_step(training *t, const share *own); // after each step of worker 0
void train_trace_epoch(const training *t);
// Checkpoints, where they are asked for (train_checkpoint.c): takes the directory and goes on from
// what is there; behind a step and behind an epoch, CHOIR_CANCELLED where the program is to stop;
// at the end.
choir_status train_open_checkpoints(training *t);
choir_status train_checkpoint_step(training *t);
choir_status train_checkpoint_epoch(training *t);
choir_status train_close_checkpoints(training *t);
// What a checkpoint says of the options of its training (recorded.c): writes it, as lines of its
// metadata; and finds what has changed since the newest one, after step steps, or had changed
// before. *now: it has since.
enum { RECORDED_SIZE = 1 << 15 };
choir_status train_write_options(const training *t, char *text, size_t size);
choir_status train_find_changes(
		const training *t, int64_t steps, option_changes *changes, bool *now);
// The i-th checkpoint of a list, if a training of this command has made it: behind which step it
// is; false: it has not. Sets *train_given as it was for that training: what decides what is
// computed. CHOIR_CORRUPT: it names a value that an option cannot have. And what had changed.
bool train_checkpoint_steps(const choir_checkpoint_list *l, size_t i, int64_t *steps);
choir_status train_recall(const choir_checkpoint_list *l, size_t i);
void train_recall_changes(const choir_checkpoint_list *l, size_t i, option_changes *changes);
// Numbers that the optimizer keeps beside each weight.
int train_slots(const training *t);
