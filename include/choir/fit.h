// The training loop: choir_fit trains a model on a distributed dataset for several passes,
// choir_evaluate measures it, and choir_predict computes its results. They are loops over
// choir_strategy_run, with the same bits as a loop by hand (docs/howto.md has both). The library
// prints nothing: a callback shows progress.
//
// A model says what a step is: the layer or function that makes results from a batch, the loss,
// the optimizer and the metrics. This is what Keras' compile takes. With several workers
// (cluster.h) all make the same calls with the same options and callbacks.
//
// Threads: the program's, in cross-replica context, while no run is under way. A replica's part
// of a step runs on the threads of its strategy.
#pragma once

#include "checkpoint.h"
#include "input.h"
#include "layer.h"
#include "metric.h"
#include "optimizer.h"

CHOIR_C_BEGIN

typedef struct choir_model choir_model;

// Makes the results of a replica's examples (choir_replica_arg), as an expression in r's frame.
typedef choir_tensor *choir_forward_fn(choir_replica *r, void *user);
// A loss of nn.h, such as choir_sparse_softmax_cross_entropy: one number per example. A loss with
// more axes is averaged over all axes but the first.
typedef choir_tensor *choir_loss_fn(choir_tensor *labels, choir_tensor *results);

// The parts of a model.
typedef struct {
	size_t size;
	const char *name; // of the loss metric ("NAME/loss") and in checkpoints; NULL: "model"
	choir_layer *layer; // is applied to the column .input
	choir_forward_fn *forward; // in place of .layer
	void *user; // of forward
	// Columns of the dataset. NULL: the first is the input, the second the labels, and examples
	// have no weights.
	const char *input, *labels, *sample_weights;
	choir_loss_fn *loss; // NULL: only choir_predict works
	choir_optimizer *optimizer; // NULL: choir_fit does not work
	// Metrics of labels and results, all kinds but MEAN. choir_fit also counts them while it
	// trains. Each belongs to one model.
	choir_metric *const *metrics;
	size_t n_metrics;
	// A factor of the loss for each class, 0 to n_classes - 1, if labels are classes. Copied.
	const double *class_weights;
	size_t n_classes;
	// The layer whose regularization loss (layer.h) is added to the loss, in training and in
	// evaluation. NULL: .layer.
	choir_layer *regularized;
} choir_model_options;

// Makes a model in the current strategy, which owns it. The loss of an example is multiplied by
// its sample weight and the weight of its class; the loss of a step is the sum of these products
// divided by the global batch, as in Keras. A checkpoint of the strategy (checkpoint.h) keeps how
// far choir_fit has come.
// CHOIR_INVALID: neither or both of layer and forward; a metric of kind MEAN; a name in use; a
// class weight that is negative or not finite. CHOIR_STATE: in a replica.
choir_model *choir_model_new(const choir_model_options *o);

// Logs: named numbers. choir_fit sets "loss", "learning_rate", and a log with each metric's name.
// A validation sets "val_loss" and, with "val_" before the name, each metric's log.

// The newest value of a log, or NAN. In a callback of a batch, "loss" and metrics are those of
// the epoch so far; reading one waits for its devices, and with several workers all must read it.
double choir_model_log(choir_model *m, const char *name);
// The number of logs, and the i-th name (NULL: out of range).
size_t choir_model_logs(const choir_model *m);
const char *choir_model_log_name(const choir_model *m, size_t i);
// The number of epochs that choir_fit has completed since it began, and what a log was after the
// epoch (from 1): NAN if there is no such epoch or log, or no validation followed it.
int64_t choir_model_epochs(const choir_model *m);
double choir_model_history(const choir_model *m, const char *name, int64_t epoch);
// The epoch with the best value of early stopping so far; 0: none.
int64_t choir_model_best_epoch(const choir_model *m);

// Asks choir_fit to stop after the current step; the epoch is then incomplete and adds nothing to
// the history. In a callback of an epoch's end it stops after that epoch. With several workers one
// that asks stops all; outside of callbacks of batches this takes effect at the epoch's end.
// Threads: any.
void choir_model_stop(choir_model *m);

// Where a training is.
typedef struct {
	choir_model *model;
	int64_t epoch, epochs; // from 1; of how many
	int64_t batch; // of the epoch, from 1; 0: before the first
	int64_t batches; // in an epoch; CHOIR_UNKNOWN_CARDINALITY: unknown
	int64_t step; // batches since the training began
} choir_fit_event;

// A failure ends choir_fit with its status; with several workers it ends the job.
typedef choir_status choir_callback_fn(const choir_fit_event *e, void *user);

// Functions of the program, called on its thread; each may be NULL. Functions of a beginning are
// called in the order of the array, those of an end in the same order.
typedef struct {
	size_t size;
	choir_callback_fn *train_begin, *train_end;
	choir_callback_fn *epoch_begin, *epoch_end; // the end comes after the validation
	choir_callback_fn *batch_begin, *batch_end;
	void *user;
} choir_callback;

// AUTO: MAX for logs whose name has "accuracy", "precision", "recall", "auc", "f1" or "r2" in it;
// MIN for all others.
typedef enum { CHOIR_MONITOR_AUTO = 0, CHOIR_MONITOR_MIN, CHOIR_MONITOR_MAX } choir_monitor;

// Reduces the learning rate when a log stops improving (Keras' ReduceLROnPlateau). After .patience
// epochs in a row that do not improve by more than .min_delta, choir_fit multiplies the learning
// rate by .factor (choir_optimizer_set_learning_rate). The rate does not fall below
// .min_learning_rate. The count of epochs then starts again. A checkpoint keeps the count.
typedef struct {
	size_t size;
	const char *log; // NULL: "val_loss"
	choir_monitor monitor;
	double factor; // below 1; 0: 0.1
	int64_t patience; // 0: 10
	double min_delta; // 0: 1e-4; CHOIR_ZERO: 0
	// After a reduction, the first cooldown - 1 epochs are not counted, as in Keras.
	int64_t cooldown;
	double min_learning_rate; // 0 or more
} choir_reduce_on_plateau;

// Early stopping (Prechelt 1998; Keras' EarlyStopping). An epoch improves if the monitored log is
// better than the best so far by more than min_delta. NAN never improves.
typedef struct {
	size_t size;
	const char *log; // NULL: "val_loss"
	choir_monitor monitor;
	double min_delta; // 0 or more
	int64_t patience; // stops after this number of epochs in a row that do not improve; 0: 1
	// On: at the end, choir_fit sets all weights to those after the best epoch. Default: off.
	choir_toggle restore_best_weights;
} choir_early_stopping;

// How choir_fit trains.
typedef struct {
	size_t size;
	int64_t epochs; // all of a training, including those before a checkpoint; 0: 1
	// Batches in an epoch; after the last one the next epoch goes on in the data, and at their
	// end from the start. 0: a pass over the data.
	int64_t steps_per_epoch;
	choir_distributed_dataset *validation; // is evaluated after an epoch; NULL: none
	int64_t validation_every; // epochs; 0: 1
	const choir_callback *callbacks;
	size_t n_callbacks;
	const choir_early_stopping *early_stopping; // NULL: none
	// Gets a save after each epoch. Its metadata has "epoch=", "step=" and every log as
	// "NAME=VALUE", for .best_metric of the manager. Before the first epoch, the last save is
	// restored, if there is one (.resume). NULL: nothing is saved.
	choir_checkpoint_manager *checkpoints;
	int64_t checkpoint_every; // also after this number of steps; 0: only after epochs
	choir_toggle resume; // default: on
	const char *metadata; // more lines "key=value" for saves, or NULL
	// Steps between two records of "train/loss" (the loss of that step) and "train/learning_rate"
	// for TensorBoard, if a trace with .log is on (trace.h). Each epoch's logs are recorded as
	// "epoch/NAME". 0: 10.
	int64_t log_every;
	const choir_reduce_on_plateau *reduce_on_plateau; // NULL: no reductions
	// On: validations use the optimizer's averages (ema_momentum), and so do the best weights of
	// early stopping. At the end, choir_fit puts the averages in place of the weights
	// (choir_optimizer_swap_averages), unless it restores the best weights. The next choir_fit
	// swaps them back. Default: off.
	choir_toggle use_averages;
} choir_fit_options;

// Trains m on data. After choir_checkpoint_manager_restore_latest, or with .checkpoints, it
// continues the restored training, also in the middle of an epoch. It ends with the same bits as a
// training without a stop. Otherwise it begins a new history with epoch 1.
//
// CHOIR_INVALID: m lacks a loss or an optimizer, or belongs to another strategy than data; an
// option out of range; early stopping or reduce_on_plateau names an unknown log; reduce_on_plateau
// with a FUNCTION schedule; use_averages without ema_momentum; endless data without
// steps_per_epoch; data without a batch. Failures of data, callbacks, steps and saves are returned
// with the epoch and the batch. CHOIR_STATE also: a callback called choir_fit with m.
CHOIR_MUST_CHECK choir_status choir_fit(
		choir_model *m, choir_distributed_dataset *data, const choir_fit_options *o);

// Computes the loss and the metrics of m on one pass over data, without training. choir_model_log
// has them as "val_loss" and so on. Then rewinds data.
CHOIR_MUST_CHECK choir_status choir_evaluate(choir_model *m, choir_distributed_dataset *data);

// Gets the results of the examples first to first + rows - 1 of the pass, [rows, ..], in the order
// of the data: a tensor of a frame on the strategy's first device, freed when fn returns.
typedef choir_status choir_results_fn(choir_tensor *results, int64_t first, void *user);
// Calls fn for the results of each batch of one pass over data. With several workers, all get the
// results of all. Then rewinds data.
CHOIR_MUST_CHECK choir_status choir_predict_batches(
		choir_model *m, choir_distributed_dataset *data, choir_results_fn *fn, void *user);
// The results of all examples of one pass over data, in f: [examples, ..]. NULL: a failure, which
// f keeps.
choir_tensor *choir_predict(choir_model *m, choir_distributed_dataset *data, choir_frame *f);

CHOIR_C_END
