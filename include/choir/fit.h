// The training loop: choir_fit trains a model on a distributed dataset, choir_evaluate measures
// the model, and choir_predict computes its results. They give the bits of a loop by hand
// (docs/howto.md), and print nothing.
//
// A model has a layer or a function that makes results from a batch, a loss, an optimizer and
// metrics. Several workers (cluster.h) make the same calls with the same options and callbacks.
//
// Threads: one at a time, in cross-replica context, outside of runs.
#pragma once

#include "checkpoint.h"
#include "input.h"
#include "layer.h"
#include "metric.h"
#include "optimizer.h"

CHOIR_C_BEGIN

typedef struct choir_model choir_model;

// Makes the results of a replica's examples (choir_replica_arg), in r's frame.
typedef choir_tensor *choir_forward_fn(choir_replica *r, void *user);
// A loss of nn.h: one number per example. Choir averages further axes.
typedef choir_tensor *choir_loss_fn(choir_tensor *labels, choir_tensor *results);

// The parts of a model.
typedef struct {
	size_t size;
	const char *name; // for the loss metric ("NAME/loss") and checkpoints; NULL: "model"
	choir_layer *layer; // is applied to the column .input
	choir_forward_fn *forward; // in place of .layer
	void *user; // of the functions
	// Columns of the dataset. NULL: columns 0 and 1, and no weights. sample_weights has a weight
	// for each example, or for each loss ([n, t] for losses [n, t]); a last axis of 1 may be
	// missing or extra.
	const char *input, *labels, *sample_weights;
	choir_loss_fn *loss; // NULL: only choir_predict works
	choir_optimizer *optimizer; // NULL: choir_fit does not work
	// Metrics that compare labels with results (not MEAN and confusion matrices). Each belongs to
	// one model.
	choir_metric *const *metrics;
	size_t n_metrics;
	// If labels are classes, 0 to n_classes - 1: factors of their losses. As in Keras, not in
	// val_loss and choir_evaluate. Copied.
	const double *class_weights;
	size_t n_classes;
	// The layer whose regularization loss (layer.h) is added to the loss, also in evaluation.
	// NULL: .layer.
	choir_layer *regularized;
	// A replica's steps in place of those with .loss. They update the metrics, which may be a MEAN
	// and alone name the logs. train_step also minimizes. Without .layer and .forward,
	// choir_predict does not work.
	choir_replica_fn *train_step, *test_step;
	// Off: checkpoints do not keep the progress (choir_model_set_progress). Default: on.
	choir_toggle saved;
	// The column of the lengths of sequences with padding (nn.h): choir_layer_apply_sequences
	// applies .layer. If results are [n, t, .., c], the loss and the metrics get time steps as
	// examples, [n t, .., c], without padding: an example's loss is the mean of its time steps.
	// .forward's results have time steps if their rank is 3 or more. NULL: none.
	const char *lengths;
} choir_model_options;

// Makes a model in the current strategy. As in Keras, a step's loss is the sum of the examples'
// losses, times their sample and class weights, over the global batch (not the weights). A
// checkpoint of the strategy (checkpoint.h) keeps choir_fit's progress. CHOIR_INVALID: both or
// none of layer and forward; a name in use. CHOIR_STATE: in a replica.
choir_model *choir_model_new(const choir_model_options *o);

// Logs are named numbers. choir_fit sets "loss", "learning_rate", and a log of each metric's name.
// Validations set "val_loss" and "val_NAME".

// The newest value of a log, or NAN. In a callback of a batch, "loss" and metrics are of the epoch
// so far; the call waits for the devices, and all workers make it.
double choir_model_log(choir_model *m, const char *name);
size_t choir_model_logs(const choir_model *m);
const char *choir_model_log_name(const choir_model *m, size_t i);
// Epochs completed since the training began.
int64_t choir_model_epochs(const choir_model *m);
// The value of a log after this epoch, from 1. NAN: no such epoch or log; no validation after it.
double choir_model_history(const choir_model *m, const char *name, int64_t epoch);
// The best epoch of early stopping so far; 0: none.
int64_t choir_model_best_epoch(const choir_model *m);

// Stops choir_fit after the current step or, in epoch_end, after this epoch. An incomplete epoch
// adds nothing to the history. A call on one worker stops all (.stop_in_epochs). Threads: any, and
// signal handlers.
void choir_model_stop(choir_model *m);
// Whether a stop, on any worker, ended the last choir_fit.
bool choir_model_stopped(const choir_model *m);

// The progress of a training between two steps.
typedef struct {
	size_t size;
	int64_t epochs; // completed
	int64_t batch, step; // completed in the next epoch, and in all epochs
	// Of early stopping: the best epoch (0: none), its log, and the epochs since then.
	int64_t best_epoch;
	double best;
	int64_t waited;
} choir_fit_progress;

// The progress so far; of NULL: zeros.
choir_fit_progress choir_model_progress(const choir_model *m);
// For programs that save the progress themselves: the next choir_fit continues from p. The current
// weights become the best epoch's.
CHOIR_MUST_CHECK choir_status choir_model_set_progress(
		choir_model *m, const choir_fit_progress *p);

// The position in a training.
typedef struct {
	choir_model *model;
	int64_t epoch; // from 1
	int64_t epochs; // of the whole training
	int64_t batch; // in the epoch, from 1; 0: before the first
	int64_t batches; // in an epoch; CHOIR_UNKNOWN_CARDINALITY: unknown
	int64_t step; // batches since the training began
	choir_values *results; // in batch_end: of .train_step (choir_replica_return), or NULL
} choir_fit_event;

// If a callback fails, choir_fit fails with its status; with several workers, the job ends.
typedef choir_status choir_callback_fn(const choir_fit_event *e, void *user);

// Functions that choir_fit calls, in the order of the array. Each may be NULL.
typedef struct {
	size_t size;
	choir_callback_fn *train_begin, *train_end;
	choir_callback_fn *epoch_begin, *epoch_end; // epoch_end: after the validation
	choir_callback_fn *batch_begin, *batch_end;
	void *user;
	choir_callback_fn *validation_begin;
} choir_callback;

// Makes the training data of a worker, in its group (choir_strategy_run_workers). NULL: failed.
typedef choir_distributed_dataset *choir_worker_data_fn(
		choir_strategy *group, int worker, void *user);

// AUTO: MAX for names with "accuracy", "precision", "recall", "auc", "f1" or "r2", else MIN.
typedef enum { CHOIR_MONITOR_AUTO = 0, CHOIR_MONITOR_MIN, CHOIR_MONITOR_MAX } choir_monitor;

// Keras' ReduceLROnPlateau: after .patience epochs in a row without an improvement of a log above
// .min_delta, choir_fit multiplies the learning rate by .factor, down to .min_learning_rate, and
// counts again from 0. A checkpoint keeps the count.
typedef struct {
	size_t size;
	const char *log; // NULL: "val_loss"
	choir_monitor monitor;
	double factor; // below 1; 0: 0.1
	int64_t patience; // 0: 10
	double min_delta; // 0: 1e-4; CHOIR_ZERO: 0
	// As in Keras, cooldown - 1 epochs after a reduction are not counted.
	int64_t cooldown;
	double min_learning_rate; // 0 or more
} choir_reduce_on_plateau;

// Keras' EarlyStopping (Prechelt 1998). An epoch improves if its log is better than the best by
// more than min_delta.
typedef struct {
	size_t size;
	const char *log; // NULL: "val_loss"
	choir_monitor monitor;
	double min_delta; // 0 or more
	int64_t patience; // epochs without improvement; 0: 1
	// On: choir_fit ends with the best epoch's weights. ON_READ variables (batch normalization's
	// statistics) get the mean of that epoch's components, so val_loss may differ a little. If a
	// checkpoint lacks these weights, choir_fit warns, and the next epoch is the best so far.
	// Default: off.
	choir_toggle restore_best_weights;
} choir_early_stopping;

// Options of choir_fit.
typedef struct {
	size_t size;
	int64_t epochs; // of the whole training, including those before a restored checkpoint; 0: 1
	// Batches in an epoch. The next epoch continues after them, or begins again at the data's end.
	// 0: one pass over the data.
	int64_t steps_per_epoch;
	choir_distributed_dataset *validation; // evaluated after an epoch; NULL: none
	int64_t validation_every; // epochs; 0: 1
	const choir_callback *callbacks;
	size_t n_callbacks;
	const choir_early_stopping *early_stopping; // NULL: none
	// choir_fit saves after each epoch, with "epoch=", "step=" and every log as "NAME=VALUE" in
	// the metadata, for the manager's .best_metric. Saves inside an epoch have NAN as values. It
	// first restores the last save, if any (.resume). NULL: no saves.
	choir_checkpoint_manager *checkpoints;
	int64_t checkpoint_every; // also save after this number of steps; 0: only after epochs
	choir_toggle resume; // default: on
	const char *metadata; // further lines "key=value" for saves, or NULL
	// If a trace with .log is on (trace.h): steps between records of "train/loss" and
	// "train/learning_rate" for TensorBoard; 0: 10. An epoch's logs are "epoch/NAME". CHOIR_NONE:
	// no records.
	int64_t log_every;
	const choir_reduce_on_plateau *reduce_on_plateau; // NULL: no reductions
	// On: validations and the best weights of early stopping use the optimizer's averages
	// (ema_momentum). Unless it restores the best weights, choir_fit ends with the averages in
	// place (choir_optimizer_swap_averages), and the next choir_fit swaps them back. Default: off.
	choir_toggle use_averages;
	// On: a stop on one worker stops all after a step, for a message per step. Off: after an
	// epoch. Default: on if there are callbacks of batches. Workers of one process always stop
	// after a step.
	choir_toggle stop_in_epochs;
	choir_toggle save_at_stop; // on: choir_fit also saves after a stop in an epoch. Default: off
	void *user; // of the functions below
	// In place of choir_checkpoint_manager_save.
	choir_callback_fn *save;
	// Called if a save failed with CHOIR_IO or CHOIR_NO_MEMORY, except after a stop; perhaps only
	// on the chief. If it fails or is NULL, choir_fit fails.
	choir_callback_fn *unsaved;
	// For the workers of a parameter server, in place of data. Each worker trains an epoch with
	// its own data. Callbacks and logs of steps are those of worker 0. Several workers cannot
	// save. The model needs .input and .labels.
	choir_worker_data_fn *worker_data;
	// Trains steps in place of choir_fit, which counts no batches, as for closures
	// (coordinator.h). CHOIR_END: the epoch ends; CHOIR_OK: choir_fit saves, and calls again. data
	// may be NULL.
	choir_callback_fn *train_steps;
} choir_fit_options;

// Trains m on data. After choir_checkpoint_manager_restore_latest, or with .checkpoints, it
// continues the restored training, also inside an epoch, with the bits of an uninterrupted one.
// Else it begins a new history with epoch 1.
//
// CHOIR_INVALID: m lacks a loss or an optimizer; an unknown log; reduce_on_plateau with a FUNCTION
// schedule; use_averages without ema_momentum; endless data without steps_per_epoch; data without
// a batch; .validation for a train_step without a test_step. CHOIR_STATE also: a callback called
// choir_fit with m. Failures name the epoch and the batch.
CHOIR_MUST_CHECK choir_status choir_fit(
		choir_model *m, choir_distributed_dataset *data, const choir_fit_options *o);

// Computes a validation's logs on one pass over data, and rewinds data.
CHOIR_MUST_CHECK choir_status choir_evaluate(choir_model *m, choir_distributed_dataset *data);

// Gets results [rows, ..] in the order of the data, from example first on. Their frame is on the
// strategy's first device, and is freed when the function returns.
typedef choir_status choir_results_fn(choir_tensor *results, int64_t first, void *user);
// Calls fn for the results of each batch of one pass, then rewinds data. Each worker gets all
// results.
CHOIR_MUST_CHECK choir_status choir_predict_batches(
		choir_model *m, choir_distributed_dataset *data, choir_results_fn *fn, void *user);
// Gives the results of one pass over data, [examples, ..], in f, which keeps a failure.
choir_tensor *choir_predict(choir_model *m, choir_distributed_dataset *data, choir_frame *f);

CHOIR_C_END
