// choir train: train_step and test_step are functions of one replica. The strategy decides how
// many replicas run them, and where.
#include "commands.h"
#include "command_options.h"
#include "precision_option.h"
#include "output.h"
#include "train/train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const schedules[] = { "constant", "cosine", NULL };
static const char *const nonfinite[] = { "error", "skip", "ignore", NULL };
static const char *const tasks[] = { "auto", "classification", "regression", NULL }; // as task
static const char *const bad_rows[] = { "error", "skip", NULL };
static const char *const missing[] = { "drop", "impute", NULL };
static const char *const normalizations[] = { "none", "batch", NULL };
static const char *const class_weights[] = { "none", "balanced", NULL };
static const char *const augments[] = { "none", "crop", "flip", "both", NULL };
static const char *const unsaved[] = { "error", "ignore", NULL };

static train_options given = { .data = "mnist",
	.strategy = "mirrored",
	.optimizer = "adam",
	.schedule = "constant",
	.nonfinite = "error",
	.unsaved = "error",
	.bad_rows = "error",
	.missing = "drop",
	.normalization = "none",
	.class_weights = "none",
	.augment = "none",
	.max_categories = 64,
	.task = "auto",
	.auto_shard = "data",
	.timeout = 60,
	.seed = 1 };
train_options *const train_given = &given;

// clang-format off
static const option options[] = {
	{ .name = "--data", .value = "DATA", .kind = OPTION_TEXT, .to = &given.data, .recorded = true,
		.help = data_learn_help },
	{ .name = "--target", .value = "COLUMN", .kind = OPTION_TEXT, .to = &given.target,
		.recorded = true,
		.help = "column to learn, if the data have columns; for a regression\n"
				"also several columns with commas (label, else the last)" },
	{ .name = "--task", .value = "NAME", .kind = OPTION_CHOICE, .to = &given.task,
		.choices = tasks, .recorded = true,
		.help = "task for the target of a CSV file: classification,\n"
				"regression, or auto: a regression if the numbers are not\n"
				"all whole or there are several targets (auto)" },
	{ .name = "--bad-rows", .alias = "--wrong-rows", .value = "POLICY", .kind = OPTION_CHOICE,
		.to = &given.bad_rows, .choices = bad_rows, .recorded = true,
		.help = "policy for rows that cannot be read (csv:, tfrecord:), rows\n"
				"with an invalid label, and images that cannot be decoded:\n"
				"error, or skip and count (error)" },
	{ .name = "--missing", .value = "POLICY", .kind = OPTION_CHOICE, .to = &given.missing,
		.choices = missing, .recorded = true,
		.help = "csv: policy for rows without a value in an input column:\n"
				"drop, or impute, which takes the mean and adds an input\n"
				"that marks missing values (drop)" },
	{ .name = "--missing-values", .value = "LIST", .kind = OPTION_TEXT,
		.to = &given.missing_values, .recorded = true, .help = missing_values_help },
	{ .name = "--separator", .value = "CHAR", .kind = OPTION_TEXT, .to = &given.separator,
		.recorded = true, .help = separator_help },
	{ .name = "--decimal", .value = "MARK", .kind = OPTION_CHOICE, .to = &given.decimal,
		.choices = decimal_names, .recorded = true, .help = decimal_help },
	{ .name = "--max-categories", .value = "N", .kind = OPTION_INTEGER,
		.to = &given.max_categories, .min = 1, .max = MAX_INPUTS, .recorded = true,
		.help = "csv: ignore text columns with more than N different texts\n(64)" },
	{ .name = "--image-size", .value = "N", .kind = OPTION_INTEGER, .to = &given.image_size,
		.min = 1, .max = 1 << 14, .recorded = true,
		.help = "images: height and width in pixels (224)" },
	{ .name = "--augment", .value = "NAME", .kind = OPTION_CHOICE, .to = &given.augment,
		.choices = augments, .recorded = true,
		.help = "random changes of images in each epoch: none, crop (shift\n"
				"by up to an eighth), flip (left to right), or both (none)" },
	{ .name = "--train-examples", .value = "N", .kind = OPTION_INTEGER,
		.to = &given.train_examples, .min = 1, .recorded = true,
		.help = "number of training examples (4/5 of the data; text: 9/10\n"
				"of the windows); the rest is the test set" },
	{ .name = "--model", .value = "NAME", .kind = OPTION_CHOICE, .to = &given.model,
		.choices = model_kinds, .recorded = true,
		.help = "model: mlp, cnn, resnet20, resnet18, mobilenet; gpt or lstm\n"
				"for text (cnn; images: resnet18; mlp if an example is a\n"
				"list of numbers)" },
	{ .name = "--widths", .value = "LIST", .kind = OPTION_TEXT, .to = &given.widths,
		.recorded = true, .help = "layer widths (mlp: 512,512; cnn: 32,64,128)" },
	{ .name = "--width", .value = "N", .kind = OPTION_INTEGER, .to = &given.size.width,
		.min = 1, .max = MAX_WIDTH, .recorded = true,
		.help = "embedding size (gpt: 128; lstm: 256), or channels of the\n"
				"first stage (resnet20: 16; resnet18: 64; mobilenet: 32)" },
	{ .name = "--layers", .value = "N", .kind = OPTION_INTEGER, .to = &given.size.layers,
		.min = 1, .max = MAX_LAYERS, .recorded = true,
		.help = "blocks (gpt: 4; lstm: 1), or layers of a resnet20: 6 n + 2\n"
				"for an integer n (20)" },
	{ .name = "--heads", .value = "N", .kind = OPTION_INTEGER, .to = &given.size.heads,
		.min = 1, .max = MAX_WIDTH, .recorded = true,
		.help = "gpt: attention heads, a divisor of the width (4)" },
	{ .name = "--context", .value = "N", .kind = OPTION_INTEGER, .to = &given.size.context,
		.min = 1, .max = MAX_CONTEXT, .recorded = true,
		.help = "context length in bytes (gpt: 128; lstm: 64)" },
	{ .name = "--dropout", .value = "X", .kind = OPTION_NUMBER, .to = &given.size.dropout,
		.zero = true, .recorded = true, .help = "gpt, lstm, mlp: dropout rate, less than 1 (0)" },
	{ .name = "--normalization", .value = "NAME", .kind = OPTION_CHOICE,
		.to = &given.normalization, .choices = normalizations, .recorded = true,
		.help = "mlp: none, or batch normalization before each activation\n(none)" },
	{ .name = "--class-weights", .value = "NAME", .kind = OPTION_CHOICE,
		.to = &given.class_weights, .choices = class_weights, .recorded = true,
		.help = "factor of an example's loss: none, or balanced, which is\n"
				"examples / (classes * examples of its class) (none)" },
	{ .name = "--epochs", .value = "E", .kind = OPTION_INTEGER, .to = &given.epochs, .min = 1,
		.max = INT32_MAX, .recorded = true,
		.help = "passes over the training examples (5; csv: at least 30\nsteps)" },
	{ .name = "--batch", .value = "G", .kind = OPTION_INTEGER, .to = &given.batch, .min = 1,
		.max = 1 << 24, .recorded = true,
		.help = "global batch size: examples per step over all replicas\n(128; text: 16)" },
	{ .name = "--optimizer", .value = "NAME", .kind = OPTION_CHOICE, .to = &given.optimizer,
		.choices = train_optimizers, .recorded = true,
		.help = "optimizer: sgd, momentum, adam, adamw, rmsprop, nadam,\n"
				"adagrad, lion or lamb (adam)" },
	{ .name = "--learning-rate", .alias = "--rate", .value = "X", .kind = OPTION_NUMBER,
		.to = &given.rate, .recorded = true,
		.help = "learning rate (1e-3; sgd and momentum: 1e-2)" },
	{ .name = "--weight-decay", .value = "X", .kind = OPTION_NUMBER, .to = &given.weight_decay,
		.recorded = true,
		.help = "decay of the weights, times the learning rate, per step\n"
				"(adamw: 0.01; lion, lamb: none)" },
	{ .name = "--schedule", .value = "NAME", .kind = OPTION_CHOICE, .to = &given.schedule,
		.choices = schedules, .recorded = true,
		.help = "learning-rate schedule: constant, or cosine decay to 0\n(constant)" },
	{ .name = "--warmup", .value = "N", .kind = OPTION_INTEGER, .to = &given.warmup,
		.max = INT32_MAX, .recorded = true,
		.help = "number of steps of linear warmup from 0 (0)" },
	{ .name = "--clip", .value = "X", .kind = OPTION_NUMBER, .to = &given.clip, .zero = true,
		.recorded = true, .help = "maximum global norm of the gradients; 0: no limit (0)" },
	{ .name = "--nonfinite", .value = "POLICY", .kind = OPTION_CHOICE, .to = &given.nonfinite,
		.choices = nonfinite, .recorded = true,
		.help = "policy for a gradient that is not finite: error, skip the\n"
				"step on all replicas, or ignore (error)" },
	{ .name = "--precision", .value = "NAME", .kind = OPTION_CHOICE, .to = &given.precision,
		.choices = precision_names, .recorded = true, .help = precision_help },
	{ .name = "--wire", .value = "DTYPE", .kind = OPTION_CHOICE, .to = &given.wire,
		.choices = wire_names, .recorded = true, .help = wire_help },
	{ .name = "--patience", .value = "N", .kind = OPTION_INTEGER, .to = &given.patience,
		.max = INT32_MAX,
		.help = "stop after N epochs without a better test score and\n"
				"restore the best weights; 0: never (0)" },
	{ .name = "--seed", .value = "S", .kind = OPTION_SEED, .to = &given.seed, .recorded = true,
		.help = "seed of initial weights, shuffling and synthetic data (1)" },
	{ .name = "--init", .value = "FILE", .kind = OPTION_TEXT, .to = &given.init, .recorded = true,
		.help = "load initial weights from a safetensors file, and list\n"
				"missing weights and unexpected tensors" },
	{ .name = "--init-map", .value = "FILE", .kind = OPTION_TEXT, .to = &given.init_map,
		.recorded = true,
		.help = "names and layouts in --init: torch, torchvision (resnet18),\n"
				"keras, or a file of lines TENSOR VARIABLE [AXES], in which\n"
				"* stands for any text" },
	{ .name = "--freeze", .value = "NAMES", .kind = OPTION_TEXT, .to = &given.freeze,
		.recorded = true, .help = "do not train weights that match a pattern, as in\n"
				"token/*,*/bias" },
	{ .name = "--save", .value = "FILE", .kind = OPTION_TEXT, .to = &given.save,
		.help = "write the trained weights to a safetensors file" },
	{ .name = "--checkpoint", .value = "DIR", .kind = OPTION_TEXT, .to = &given.checkpoint,
		.help = "save the training state after each epoch and on SIGTERM,\n"
				"SIGINT or SIGHUP; resume from the newest checkpoint" },
	{ .name = "--checkpoint-every", .value = "N", .kind = OPTION_INTEGER,
		.to = &given.checkpoint_every,
		.help = "also save a checkpoint every N steps; 0: never (0)" },
	{ .name = "--max-to-keep", .alias = "--keep", .value = "N", .kind = OPTION_INTEGER,
		.to = &given.keep, .min = 1, .max = 1 << 20,
		.help = "number of newest checkpoints to keep (5)" },
	{ .name = "--unsaved", .value = "POLICY", .kind = OPTION_CHOICE, .to = &given.unsaved,
		.choices = unsaved,
		.help = "policy for a checkpoint that cannot be saved (disk full):\n"
				"error, or ignore and go on (error)" },
	{ .name = "--strategy", .value = "NAME", .kind = OPTION_TEXT, .to = &given.strategy,
		.help = "strategy: one_device, mirrored, central_storage or\n"
				"parameter_server (mirrored)" },
	{ .name = "--replicas", .value = "R", .kind = OPTION_INTEGER, .to = &given.replicas,
		.min = 1, .max = 1 << 16,
		.help = replicas_help },
	{ .name = "--devices", .value = "LIST", .kind = OPTION_TEXT, .to = &given.devices, .own = true,
		.help = "devices for the replicas, as in cpu:0,cpu:1 (CHOIR_DEVICES,\n"
				"else all accelerators, else one CPU device per replica, at\n"
				"most one per processor)" },
	{ .name = "--cores", .value = "N", .kind = OPTION_INTEGER, .to = &given.cores, .min = 1,
		.max = 1 << 10, .own = true, .help = "threads per device (1)" },
	{ .name = "--workers", .value = "N", .kind = OPTION_INTEGER, .to = &given.workers, .min = 1,
		.max = 1024, .help = "parameter_server: number of asynchronous workers (1)" },
	{ .name = "--parameter-devices", .value = "LIST", .kind = OPTION_TEXT,
		.to = &given.parameter_devices,
		.help = "central_storage, parameter_server: devices that hold the\nvariables (cpu:0)" },
	{ .name = "--lock-free", .kind = OPTION_FLAG, .to = &given.lock_free,
		.help = "parameter_server: update variables without locks" },
	{ .name = "--auto-shard", .value = "POLICY", .kind = OPTION_CHOICE, .to = &given.auto_shard,
		.choices = train_shards, .recorded = true,
		.help = "policy under mpirun (data):\n"
				"data: a process reads all examples and keeps those of its\n"
				"replicas\n"
				"off: a process reads and keeps all examples\n"
				"file: a process reads only its own files\n"
				"auto: as file if the data are in files, else as data" },
	{ .name = "--lowest-instruction-set", .kind = OPTION_FLAG, .to = &given.lowest_set,
		.help = "under mpirun on different processors: use the lowest of\n"
				"their instruction sets" },
	{ .name = "--timeout", .value = "S", .kind = OPTION_NUMBER, .to = &given.timeout,
		.zero = true,
		.help = "under mpirun: seconds to wait for another worker before\n"
				"the training fails; 0: no limit (60)" },
	{ .name = "--trace", .value = "FILE", .kind = OPTION_TEXT, .to = &given.trace,
		.help = "write a trace in Chrome's format (https://ui.perfetto.dev)\n"
				"and print where the time went; under mpirun worker N > 0\n"
				"writes FILE.N" },
	{ .name = "--log", .value = "DIR", .kind = OPTION_TEXT, .to = &given.log,
		.help = "write loss, accuracy and rates as TensorBoard event files" },
	{ .name = "--run", .value = "DIR", .kind = OPTION_TEXT, .to = &given.run,
		.help = "write what choir report shows: events, traces and\n"
				"TensorBoard event files (instead of --trace and --log)" },
	{ .name = "--show-split", .kind = OPTION_FLAG, .to = &given.show_split,
		.help = "print which examples each replica trains on" },
	{ .name = "--verbose", .kind = OPTION_FLAG, .to = &given.verbose,
		.help = "also print which operations run in 16 bits" },
	{ .name = "--json", .kind = OPTION_FLAG, .to = &given.json, .help = json_help },
};
// clang-format on
const command train_command = {
	.name = "choir train",
	.operands = "",
	.about =
			"Trains a model of images, tables or text, tests it and saves its weights.\n\n"
			"It prints the accuracy, or the bits per byte of a text, on test examples, and a\n"
			"hash of the weights. The weights depend on the data, the seed, the number of\n"
			"replicas and the batch size. They do not depend on the devices. With --workers they\n"
			"also depend on the order in which updates arrive. Under mpirun -n N, N processes\n"
			"share the replicas and compute the same weights. All processes need the same\n"
			"options except --devices and --cores.",
	.examples = { "choir train --data digits --replicas 2 --save digits.safetensors",
			"choir train --model gpt --data text:plays.txt --optimizer adamw --epochs 10" },
	.n = sizeof options / sizeof options[0],
	.options = options,
};

static choir_tensor *weigh(const training *t, choir_tensor *labels, choir_tensor *losses)
{
	if (t->class_weights == NULL || losses == NULL)
		return losses;
	choir_tensor *weights = choir_constant(
			choir_tensor_frame(losses), CHOIR_F32, CHOIR_SHAPE(t->data.classes), t->class_weights);
	return choir_multiply(losses, choir_gather(weights, labels));
}

choir_status train_step(choir_replica *r, void *user)
{
	const training *t = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *scores = model_apply(&t->model, choir_replica_arg(r, t->data.input));
	choir_tensor *labels = choir_replica_arg(r, t->data.label);
	choir_tensor *losses = weigh(t, labels, model_losses(&t->model, labels, scores));
	if (t->inspect_losses != NULL)
		t->inspect_losses(r, losses, t->inspect_user);
	CHOIR_TRY(choir_metric_update(t->loss, losses, NULL));
	if (!t->data.text && !train_is_regression(t))
		CHOIR_TRY(choir_metric_update(t->train_accuracy, labels, scores));
	choir_tensor *loss = choir_replica_average_loss(r, losses);
	if (t->given->log != NULL)
		CHOIR_TRY(choir_replica_return(r, "loss", loss));
	return choir_optimizer_minimize(t->optimizer, loss, tape);
}

// R2 has no unit, so it may be that of standardized numbers, where all targets weigh the same.
static choir_status test_numbers(const training *t, choir_tensor *labels, choir_tensor *scores)
{
	choir_tensor *targets = choir_reshape(labels, *choir_tensor_shape(scores));
	choir_tensor *meant = model_numbers(&t->model, targets);
	choir_tensor *found = model_numbers(&t->model, scores);
	for (int64_t i = 0; train_watches_loss(t) && i < (int64_t) t->data.targets; i++) {
		CHOIR_TRY(choir_metric_update(
				t->each_error[i], choir_slice(meant, 1, i, 1), choir_slice(found, 1, i, 1)));
		CHOIR_TRY(choir_metric_update(
				t->each_r2[i], choir_slice(targets, 1, i, 1), choir_slice(scores, 1, i, 1)));
	}
	CHOIR_TRY(choir_metric_update(t->score, meant, found));
	CHOIR_TRY(choir_metric_update(t->absolute_error, meant, found));
	return choir_metric_update(t->r2, targets, scores);
}

static choir_status test_step(choir_replica *r, void *user) // without a tape
{
	const training *t = user;
	choir_tensor *scores = model_apply(&t->model, choir_replica_arg(r, t->data.input));
	choir_tensor *labels = choir_replica_arg(r, t->data.label);
	choir_tensor *losses = model_losses(&t->model, labels, scores);
	if (t->data.text)
		return choir_metric_update(t->score, losses, NULL);
	CHOIR_TRY(choir_metric_update(t->test_loss, losses, NULL));
	if (train_is_regression(t))
		return test_numbers(t, labels, scores);
	if (t->confusion != NULL)
		CHOIR_TRY(choir_metric_update(t->confusion, labels, scores));
	return choir_metric_update(t->score, labels, scores);
}

static choir_distributed_dataset *open_examples(choir_strategy *group, int worker, void *user)
{
	training *t = user;
	choir_distributed_dataset **examples = &t->share[worker].examples;
	const bool there = *examples != NULL ||
			(train_open_share(t, group, worker) == CHOIR_OK &&
					train_show_split(t, worker) == CHOIR_OK);
	return there ? *examples : NULL;
}

// Of the training, which may resume in the middle of an epoch, and of an epoch.
static choir_status begin(const choir_fit_event *e, void *user)
{
	training *t = user;
	const int64_t done = e->batch * given.batch; // the last batch may be smaller
	t->epochs = e->epoch + (e->batch > 0);
	t->share[0].done = done;
	t->earlier = done < t->train_examples ? done : t->train_examples;
	t->since = now();
	return CHOIR_OK;
}

static choir_status end_step(const choir_fit_event *e, void *user)
{
	training *t = user;
	share *own = &t->share[0];
	own->steps = e->step;
	own->done = e->batch * given.batch;
	CHOIR_TRY(train_trace_step(t, e->results));
	train_show_progress(t, own->done);
	if (train_must_stop())
		choir_model_stop(e->model);
	return CHOIR_OK;
}

static void note_times(training *t)
{
	t->trained += t->train_examples - t->earlier;
	t->epoch_seconds = now() - t->since;
	t->seconds += t->epoch_seconds;
}

static choir_status begin_test(const choir_fit_event *e, void *user)
{
	training *t = user;
	(void) e;
	note_times(t);
	return t->confusion == NULL ? CHOIR_OK : choir_metric_reset(t->confusion);
}

static void note_scores(training *t)
{
	t->last.score = choir_model_log(t->fit, "val_score");
	if (t->data.text)
		t->last.score /= log(2); // from nats to bits
	t->last.test_loss = choir_model_log(t->fit, "val_test_loss");
	t->last.absolute_error = choir_model_log(t->fit, "val_absolute_error");
	t->last.r2 = choir_model_log(t->fit, "val_r2");
}

static choir_status end_epoch(const choir_fit_event *e, void *user)
{
	training *t = user;
	if (t->test == NULL)
		note_times(t);
	const double before = e->epoch > 1 ? t->last.loss : 0;
	if (t->job == NULL) {
		t->last.loss = choir_model_log(t->fit, "loss");
		t->last.accuracy = choir_model_log(t->fit, "train_accuracy");
	}
	t->falling = t->last.loss < before;
	note_scores(t);
	if (choir_model_best_epoch(t->fit) == e->epoch)
		t->best = t->last;
	train_report_epoch(t);
	train_trace_epoch(t);
	train_run_epoch(t);
	if (train_must_stop())
		choir_model_stop(e->model);
	return CHOIR_OK;
}

static choir_status make_fit(training *t)
{
	choir_metric *metrics[6 + 2 * MAX_TARGETS] = { t->loss, t->score, t->train_accuracy,
		t->test_loss, t->absolute_error, t->r2 };
	size_t n = 6;
	for (size_t i = 0; train_watches_loss(t) && i < t->data.targets; i++) {
		metrics[n++] = t->each_error[i];
		metrics[n++] = t->each_r2[i];
	}
	CHOIR_SCOPE (t->strategy)
		t->fit = choir_model_new(CHOIR_OPTIONS(choir_model_options, .optimizer = t->optimizer,
				.metrics = metrics, .n_metrics = n, .train_step = train_step,
				.test_step = test_step, .user = t,
				.saved = CHOIR_OFF)); // checkpoints of all versions have the same tensors
	return t->fit == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_status fit(training *t)
{
	const choir_early_stopping early = { .size = sizeof early,
		.log = train_watches_loss(t) ? "val_test_loss" : "val_score",
		.monitor = t->data.text || train_is_regression(t) ? CHOIR_MONITOR_MIN : CHOIR_MONITOR_MAX,
		.patience = given.patience,
		.restore_best_weights = CHOIR_ON };
	const choir_callback calls = { .size = sizeof calls,
		.train_begin = begin,
		.epoch_begin = begin,
		.batch_end = end_step,
		.validation_begin = begin_test,
		.epoch_end = end_epoch,
		.user = t };
	return choir_fit(t->fit, NULL,
			CHOIR_OPTIONS(choir_fit_options, .epochs = given.epochs, .validation = t->test,
					.callbacks = &calls, .n_callbacks = 1,
					.early_stopping = given.patience > 0 ? &early : NULL,
					.checkpoints = t->checkpoints, .checkpoint_every = given.checkpoint_every,
					.resume = CHOIR_OFF, .log_every = CHOIR_NONE,
					.stop_in_epochs = t->checkpoints == NULL ? CHOIR_OFF : CHOIR_ON,
					.save_at_stop = CHOIR_ON, .user = t, .save = train_save,
					.unsaved = strcmp(given.unsaved, "ignore") == 0 ? train_unsaved : NULL,
					.worker_data = t->job == NULL ? open_examples : NULL,
					.train_steps = t->job == NULL ? NULL : train_job_steps));
}

// The numbers of each target, and of a best epoch in a checkpoint of an earlier version, are those
// of another test.
static choir_status note_best(training *t)
{
	const bool best = choir_model_best_epoch(t->fit) > 0;
	const bool unknown = train_is_regression(t) && isnan(t->best.absolute_error);
	const bool each = train_watches_loss(t) && t->test != NULL;
	if (best)
		t->last = t->best;
	if (!(best && (t->confusion != NULL || unknown)) && !(each && (best || t->trained == 0)))
		return CHOIR_OK;
	if (t->confusion != NULL)
		CHOIR_TRY(choir_metric_reset(t->confusion));
	CHOIR_TRY(choir_evaluate(t->fit, t->test));
	note_scores(t);
	return CHOIR_OK;
}

static choir_status train_and_save(training *t)
{
	CHOIR_TRY(make_fit(t));
	CHOIR_TRY(train_open_checkpoints(t));
	CHOIR_TRY(fit(t));
	t->stopped = choir_model_stopped(t->fit);
	if (t->stopped)
		return choir_fail(CHOIR_CANCELLED, "stopped by a signal after step %lld; checkpoint %s",
				(long long) t->share[0].steps, choir_checkpoint_manager_latest(t->checkpoints));
	CHOIR_TRY(note_best(t));
	return given.save == NULL // all workers call it
			? CHOIR_OK
			: choir_strategy_save(t->strategy, given.save, t->metadata);
}

static choir_status train(training *t)
{
	choir_logger_set(CHOIR_LOG_WARNING, train_report_warning, NULL);
	if (train_serves(t))
		return train_serve(t);
	CHOIR_TRY(train_make(t));
	train_report_start(t);
	if (t->share[0].examples != NULL)
		CHOIR_TRY(train_show_split(t, 0));
	CHOIR_TRY(train_run_open(t));
	CHOIR_TRY(train_trace_start(t));
	const choir_status status = train_and_save(t);
	if (status != CHOIR_OK)
		train_run_failed(t);
	const choir_status traced = train_trace_stop(t, status);
	if (status == CHOIR_OK) {
		train_report_end(t);
		train_run_end(t);
	}
	return traced == CHOIR_OK ? train_run_close(t) : traced;
}

int train_main(int argc, char **argv)
{
	train_note_defaults();
	const options_result result = options_read(&train_command, argc, argv, NULL);
	if (result != OPTIONS_GIVEN)
		return result == OPTIONS_HELP ? EXIT_OK : EXIT_USAGE;
	training t = { .given = &given };
	choir_status status = train_run_prepare(&t);
	if (status == CHOIR_OK)
		status = train_open_job(&t);
	if (status == CHOIR_OK && t.task == NULL)
		status = train_open_cluster(&t);
	if (status == CHOIR_OK)
		status = train(&t);
	if (status != CHOIR_OK)
		progress_clear();
	int code = EXIT_OK;
	if (status != CHOIR_OK && (!t.stopped || train_is_chief(&t))) // the chief reports a stop
		code = failed(&train_command);
	if (t.stopped)
		code = EXIT_STOPPED;
	train_free(&t);
	train_close_cluster(&t, t.stopped ? CHOIR_OK : status);
	return code;
}
