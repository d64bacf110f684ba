// The state of choir train.
#pragma once

#include "train/best.h"
#include "breakdown.h"
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
	double rate, clip, timeout; // timeout: seconds; 0: no limit
	uint64_t seed;
	bool lock_free, lowest_set, show_split, json;
} train_options;

// One worker's share of the examples.
typedef struct {
	choir_distributed_dataset *examples; // created by the worker
	choir_values *batch;
	int64_t done; // examples of this epoch
	int64_t steps; // so far
} share;

// The options that changed when a training was resumed, the last time that any did.
enum { CHANGES_SIZE = 1000 };
typedef struct {
	int64_t after; // the options are unchanged since this step
	char text[CHANGES_SIZE]; // "--clip 0.1 (was 0.01)"; "": no change
} option_changes;

typedef struct {
	train_options *given;
	source data;
	table_plan *table; // NULL: the inputs are not standardized
	int64_t train_examples, test_examples;
	choir_cluster *cluster; // NULL: one process
	choir_strategy *strategy;
	share *share; // one per worker
	choir_distributed_dataset *test;
	model model;
	const char *metadata; // of the model, to save with its weights
	const char *weights; // file whose size the model must match; NULL: a new model
	choir_optimizer *optimizer;
	choir_metric *loss, *score; // score: test accuracy; text: test loss
	choir_values *batch;
	double since; // start time of the current epoch
	double seconds, shown; // training time; time of the last progress line
	int64_t epochs; // started epochs
	int64_t earlier; // examples of the current epoch trained before the resume
	int64_t trained; // examples trained by this process in earlier epochs
	double last_loss, last_score; // last_score: NAN without a test set
	memory_plan memory;
	best_weights best; // with --patience
	double best_score;
	int64_t best_epoch; // 0: none
	int64_t worse; // epochs since the best one
	breakdown breakdown; // spans of the trace
	double logged_sum; // sum of the losses up to the last record, over logged_done examples
	int64_t logged_done, logged_epoch;
	choir_checkpoint_manager *checkpoints; // NULL: without checkpoints
	option_changes changes;
	bool resumed; // in the middle of an epoch, not yet continued
	bool stopped; // by a signal, after a checkpoint
	// Called with the losses of each replica before the backward pass; or NULL.
	void (*inspect_losses)(choir_replica *r, choir_tensor *losses, void *user);
	void *inspect_user;
} training;

// The command. Its options set *train_given.
extern const command train_command;
extern train_options *const train_given;

// train_open_cluster joins the workers that a launcher started. train_close_cluster leaves them,
// and aborts the others if status is a failure.
choir_status train_open_cluster(training *t);
void train_close_cluster(training *t, choir_status status);
// Fails unless all workers have the same data files, or each reads its own.
choir_status train_compare_files(const training *t);
bool train_is_chief(const training *t); // only the chief prints and writes
bool train_is_one_of_many(const training *t);
const char *train_strategy(const training *t);

choir_status train_make(training *t);
void train_free(training *t);
// A training step of one replica; user is the training.
choir_status train_step(choir_replica *r, void *user);

// The test examples and, with one worker, the training examples.
choir_status train_make_input(training *t);
// Opens the share of a worker, whose strategy is group.
choir_status train_open_share(training *t, choir_strategy *group, int worker);
// Values of --auto-shard, in the order of choir_auto_shard.
extern const char *const train_shards[];
// Whether each worker reads its own files.
bool train_shards_files(const training *t);
// Prints which examples each replica reads, with --show-split.
choir_status train_show_split(const training *t, int worker);

// Prints progress on a terminal. done: examples of one worker in this epoch.
void train_show_progress(training *t, int64_t done);
// Examples per second in the current epoch, of which done are done.
double train_rate(const training *t, int64_t done);
void train_report_start(const training *t);
void train_report_epoch(const training *t);
void train_report_end(const training *t);
// Prints a warning of the library (choir_log_fn) or of the command.
void train_report_warning(choir_log_level level, const char *line, void *user);
// Spans and scalars (train_trace.c). train_trace_stop returns status if that is a failure, else
// whether the trace was written.
choir_status train_trace_start(training *t);
choir_status train_trace_stop(training *t, choir_status status);
void train_trace_step(training *t, const share *own); // after each step of worker 0
void train_trace_epoch(const training *t);
// Checkpoints (train_checkpoint.c), all without effect if there are none. train_open_checkpoints
// resumes from the newest one. The next two save after a step and after an epoch; they return
// CHOIR_CANCELLED if a signal asked the program to stop. The last waits for a save in progress.
choir_status train_open_checkpoints(training *t);
choir_status train_checkpoint_step(training *t);
choir_status train_checkpoint_epoch(training *t);
choir_status train_close_checkpoints(training *t);
// Options in checkpoints (recorded.c). train_write_options writes them as metadata.
// train_find_changes compares the current ones with the newest checkpoint, made after steps steps.
// *now: some changed; else changes has the last recorded change.
enum { RECORDED_SIZE = 1 << 15 };
choir_status train_write_options(const training *t, char *text, size_t size);
choir_status train_find_changes(
		const training *t, int64_t steps, option_changes *changes, bool *now);
// The i-th checkpoint of a list. train_checkpoint_steps finds after which step choir train made
// it; false: another program did. train_recall sets *train_given to its options; CHOIR_CORRUPT: an
// invalid value. train_recall_changes reads its recorded change.
bool train_checkpoint_steps(const choir_checkpoint_list *l, size_t i, int64_t *steps);
choir_status train_recall(const choir_checkpoint_list *l, size_t i);
void train_recall_changes(const choir_checkpoint_list *l, size_t i, option_changes *changes);
// Slots of the optimizer per weight.
int train_slots(const training *t);
