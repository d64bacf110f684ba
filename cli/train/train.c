// choir train: train_step and test_step are functions of one replica. The strategy decides how
// many replicas run them, and where.
#include "commands.h"
#include "precision_option.h"
#include "output.h"
#include "train/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const schedules[] = { "constant", "cosine", NULL };
static const char *const nonfinite[] = { "error", "skip", "ignore", NULL };
static const char *const tasks[] = { "auto", "classification", "regression", NULL }; // as task
static const char *const bad_rows[] = { "error", "skip", NULL };
static const char *const missing[] = { "drop", "impute", NULL };
static const char *const normalizations[] = { "none", "batch", NULL };
static const char *const class_weights[] = { "none", "balanced", NULL };
static const char *const starts[] = { "linear", "random", NULL };
static const char *const augments[] = { "none", "crop", "flip", "both", NULL };
static const char *const unsaved[] = { "error", "ignore", NULL };

static train_options given = { .data = "mnist",
	.strategy = "mirrored",
	.optimizer = "adam",
	.nonfinite = "error",
	.unsaved = "error",
	.bad_rows = "error",
	.missing = "drop",
	.normalization = "none",
	.class_weights = "none",
	.augment = "none",
	.start = "linear",
	.max_categories = 64,
	.task = "auto",
	.auto_shard = "data",
	.timeout = -1,
	.seed = 1 };
train_options *const train_given = &given;

static const option options[] = {
	{ "--data", "DATA", OPTION_TEXT, &given.data, .help = data_learn_help, .recorded = true },
	{ "--target", "COLUMN", OPTION_TEXT, &given.target,
			.help = "column to learn, if the data have columns; for a regression\n"
					"also several columns with commas (label, else the last)",
			.recorded = true },
	{ "--task", "NAME", OPTION_CHOICE, &given.task,
			.help = "task for the target of a CSV file: classification,\n"
					"regression, or auto: a regression if the numbers are not\n"
					"all whole or there are several targets (auto)",
			.choices = tasks, .recorded = true },
	{ "--bad-rows", "POLICY", OPTION_CHOICE, &given.bad_rows,
			.help = "policy for rows that cannot be read (csv:, tfrecord:), rows\n"
					"with an invalid label, and images that cannot be decoded:\n"
					"error, or skip and count (error)",
			.alias = "--wrong-rows", .choices = bad_rows, .recorded = true },
	{ "--missing", "POLICY", OPTION_CHOICE, &given.missing,
			.help = "csv: policy for rows without a value in an input column:\n"
					"drop, or impute, which takes the mean and adds an input\n"
					"that marks missing values (drop)",
			.choices = missing, .recorded = true },
	{ "--missing-values", "LIST", OPTION_TEXT, &given.missing_values, .help = missing_values_help,
			.recorded = true },
	{ "--separator", "CHAR", OPTION_TEXT, &given.separator, .help = separator_help,
			.recorded = true },
	{ "--decimal", "MARK", OPTION_CHOICE, &given.decimal, .help = decimal_help,
			.choices = decimal_names, .recorded = true },
	{ "--max-categories", "N", OPTION_INTEGER, &given.max_categories,
			.help = "csv: ignore text columns with more than N different texts\n(64)", .min = 1,
			.max = MAX_INPUTS, .recorded = true },
	{ "--categorical", "LIST", OPTION_TEXT, &given.categorical,
			.help = "csv: input columns whose numbers are codes of categories, such\n"
					"as zip codes, with commas; in any number",
			.recorded = true },
	{ "--image-size", "N", OPTION_INTEGER, &given.image_size,
			.help = "images: height and width in pixels (224)", .min = 1, .max = 1 << 14,
			.recorded = true },
	{ "--augment", "NAME", OPTION_CHOICE, &given.augment,
			.help = "random changes of images in each epoch: none, crop (shift\n"
					"by up to an eighth), flip (left to right), or both (none)",
			.choices = augments, .recorded = true },
	{ "--train-examples", "N", OPTION_INTEGER, &given.train_examples,
			.help = "number of training examples (4/5 of the data; text: 9/10\n"
					"of the windows); the rest is the test set",
			.min = 1, .recorded = true },
	{ "--model", "NAME", OPTION_CHOICE, &given.model,
			.help = "model: mlp, cnn, resnet20, resnet18, mobilenet; gpt or lstm\n"
					"for text (cnn; images: resnet18; mlp if an example is a\n"
					"list of numbers)",
			.choices = model_kinds, .recorded = true },
	{ "--widths", "LIST", OPTION_TEXT, &given.widths,
			.help = "layer widths (mlp: 512,512; cnn: 32,64,128)", .recorded = true },
	{ "--width", "N", OPTION_INTEGER, &given.size.width,
			.help = "embedding size (gpt: 128; lstm: 256), or channels of the\n"
					"first stage (resnet20: 16; resnet18: 64; mobilenet: 32)",
			.min = 1, .max = MAX_WIDTH, .recorded = true },
	{ "--layers", "N", OPTION_INTEGER, &given.size.layers,
			.help = "blocks (gpt: 4; lstm: 1), or layers of a resnet20: 6 n + 2\n"
					"for an integer n (20)",
			.min = 1, .max = MAX_LAYERS, .recorded = true },
	{ "--heads", "N", OPTION_INTEGER, &given.size.heads,
			.help = "gpt: attention heads, a divisor of the width (4)", .min = 1, .max = MAX_WIDTH,
			.recorded = true },
	{ "--context", "N", OPTION_INTEGER, &given.size.context,
			.help = "context length in bytes (gpt: 128; lstm: 64)", .min = 1, .max = MAX_CONTEXT,
			.recorded = true },
	{ "--dropout", "X", OPTION_NUMBER, &given.size.dropout,
			.help = "gpt, lstm, mlp: dropout rate, less than 1 (0)", .zero = true,
			.recorded = true },
	{ "--normalization", "NAME", OPTION_CHOICE, &given.normalization,
			.help = "mlp: none, or batch normalization before each activation\n(none)",
			.choices = normalizations, .recorded = true },
	{ "--class-weights", "NAME", OPTION_CHOICE, &given.class_weights,
			.help = "factor of an example's loss: none, or balanced, which is\n"
					"examples / (classes * examples of its class) (none)",
			.choices = class_weights, .recorded = true },
	{ "--epochs", "E", OPTION_INTEGER, &given.epochs,
			.help = "passes over the training examples (5; csv: at least 40\nsteps)", .min = 1,
			.max = INT32_MAX, .recorded = true },
	{ "--batch", "G", OPTION_INTEGER, &given.batch,
			.help = "global batch size: examples per step over all replicas\n(128; text: 16)",
			.min = 1, .max = 1 << 24, .recorded = true },
	{ "--optimizer", "NAME", OPTION_CHOICE, &given.optimizer,
			.help = "optimizer: sgd, momentum, adam, adamw, rmsprop, nadam,\n"
					"adagrad, lion or lamb (adam)",
			.choices = train_optimizers, .recorded = true },
	{ "--learning-rate", "X", OPTION_NUMBER, &given.rate,
			.help = "learning rate (1e-3; sgd and momentum: 1e-2)", .alias = "--rate",
			.recorded = true },
	{ "--weight-decay", "X", OPTION_NUMBER, &given.weight_decay,
			.help = "decay of the weights, times the learning rate, per step\n"
					"(adamw: 0.01; lion, lamb: none)",
			.recorded = true },
	{ "--schedule", "NAME", OPTION_CHOICE, &given.schedule,
			.help = "learning-rate schedule: constant, or cosine decay to 0\n"
					"(constant; csv without --epochs and --warmup: cosine for less\n"
					"than 40 steps in 5 epochs)",
			.choices = schedules, .recorded = true },
	{ "--warmup", "N", OPTION_INTEGER, &given.warmup,
			.help = "number of steps of linear warmup from 0 (0)", .max = INT32_MAX,
			.recorded = true },
	{ "--clip", "X", OPTION_NUMBER, &given.clip,
			.help = "maximum global norm of the gradients; 0: no limit (0)", .zero = true,
			.recorded = true },
	{ "--nonfinite", "POLICY", OPTION_CHOICE, &given.nonfinite,
			.help = "policy for a gradient that is not finite: error, skip the\n"
					"step on all replicas, or ignore (error)",
			.choices = nonfinite, .recorded = true },
	{ "--precision", "NAME", OPTION_CHOICE, &given.precision, .help = precision_help,
			.choices = precision_names, .recorded = true },
	{ "--wire", "DTYPE", OPTION_CHOICE, &given.wire, .help = wire_help, .choices = wire_names,
			.recorded = true },
	{ "--patience", "N", OPTION_INTEGER, &given.patience,
			.help = "stop after N epochs without a better test score and\n"
					"restore the best weights; 0: never (0)",
			.max = INT32_MAX },
	{ "--seed", "S", OPTION_SEED, &given.seed,
			.help = "seed of initial weights, shuffling and synthetic data (1)",
			.recorded = true },
	{ "--start", "NAME", OPTION_CHOICE, &given.start,
			.help = "initial weights of an mlp on a table: linear, which makes it a\n"
					"linear or logistic regression, or random (linear)",
			.choices = starts, .recorded = true },
	{ "--init", "FILE", OPTION_TEXT, &given.init,
			.help = "load initial weights from a safetensors file, and list\n"
					"missing weights and unexpected tensors",
			.recorded = true },
	{ "--init-map", "FILE", OPTION_TEXT, &given.init_map,
			.help = "names and layouts in --init: torch, torchvision (resnet18),\n"
					"keras, or a file of lines TENSOR VARIABLE [AXES], in which\n"
					"* stands for any text",
			.recorded = true },
	{ "--freeze", "NAMES", OPTION_TEXT, &given.freeze,
			.help = "do not train weights that match a pattern, as in\n"
					"token/*,*/bias",
			.recorded = true },
	{ "--save", "FILE", OPTION_TEXT, &given.save,
			.help = "write the trained weights to a safetensors file" },
	{ "--checkpoint", "DIR", OPTION_TEXT, &given.checkpoint,
			.help = "save the training state after each epoch and on SIGTERM,\n"
					"SIGINT or SIGHUP; resume from the newest checkpoint" },
	{ "--checkpoint-every", "N", OPTION_INTEGER, &given.checkpoint_every,
			.help = "also save a checkpoint every N steps; 0: never (0)" },
	{ "--max-to-keep", "N", OPTION_INTEGER, &given.keep,
			.help = "number of newest checkpoints to keep (5)", .alias = "--keep", .min = 1,
			.max = 1 << 20 },
	{ "--unsaved", "POLICY", OPTION_CHOICE, &given.unsaved,
			.help = "policy for a checkpoint that cannot be saved (disk full):\n"
					"error, or ignore and go on (error)",
			.choices = unsaved },
	{ "--strategy", "NAME", OPTION_TEXT, &given.strategy,
			.help = "strategy: one_device, mirrored, central_storage or\n"
					"parameter_server (mirrored)" },
	{ "--replicas", "R", OPTION_INTEGER, &given.replicas, .help = replicas_help, .min = 1,
			.max = 1 << 16 },
	{ "--devices", "LIST", OPTION_TEXT, &given.devices,
			.help = "devices for the replicas, as in cpu:0,cpu:1 (CHOIR_DEVICES,\n"
					"else all accelerators, else one CPU device per replica, at\n"
					"most one per processor)",
			.own = true },
	{ "--cores", "N", OPTION_INTEGER, &given.cores, .help = "threads per device (1)", .min = 1,
			.max = 1 << 10, .own = true },
	{ "--workers", "N", OPTION_INTEGER, &given.workers,
			.help = "parameter_server: number of asynchronous workers (1)", .min = 1,
			.max = 1024 },
	{ "--parameter-devices", "LIST", OPTION_TEXT, &given.parameter_devices,
			.help = "central_storage, parameter_server: devices that hold the\nvariables "
					"(cpu:0)" },
	{ "--lock-free", NULL, OPTION_FLAG, &given.lock_free,
			.help = "parameter_server: update variables without locks" },
	{ "--auto-shard", "POLICY", OPTION_CHOICE, &given.auto_shard,
			.help = "policy under mpirun (data):\n"
					"data: a process reads all examples and keeps those of its\n"
					"replicas\n"
					"off: a process reads and keeps all examples\n"
					"file: a process reads only its own files\n"
					"auto: as file if the data are in files, else as data",
			.choices = train_shards, .recorded = true },
	{ "--lowest-instruction-set", NULL, OPTION_FLAG, &given.lowest_set,
			.help = "under mpirun on different processors: use the lowest of\n"
					"their instruction sets" },
	{ "--timeout", "S", OPTION_NUMBER, &given.timeout,
			.help = "under mpirun: seconds to wait for another worker before\n"
					"the training fails; 0: no limit (300)",
			.zero = true },
	{ "--trace", "FILE", OPTION_TEXT, &given.trace,
			.help = "write a trace in Chrome's format (https://ui.perfetto.dev)\n"
					"and print where the time went; under mpirun worker N > 0\n"
					"writes FILE.N" },
	{ "--log", "DIR", OPTION_TEXT, &given.log,
			.help = "write loss, accuracy and rates as TensorBoard event files" },
	{ "--run", "DIR", OPTION_TEXT, &given.run,
			.help = "write what choir report shows: events, traces and\n"
					"TensorBoard event files (instead of --trace and --log)" },
	{ "--show-split", NULL, OPTION_FLAG, &given.show_split,
			.help = "print which examples each replica trains on" },
	{ "--verbose", NULL, OPTION_FLAG, &given.verbose,
			.help = "also print which operations run in 16 bits" },
	{ "--json", NULL, OPTION_FLAG, &given.json, .help = json_help },
};
const command train_command = {
	.name = "choir train",
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

static choir_status test_two_classes(const training *t, choir_tensor *labels, choir_tensor *ranks)
{
	CHOIR_TRY(choir_metric_update(t->auc, labels, ranks));
	CHOIR_TRY(choir_metric_update(t->precision, labels, ranks));
	return choir_metric_update(t->recall, labels, ranks);
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
	if (t->auc != NULL)
		CHOIR_TRY(test_two_classes(t, labels, model_ranks(scores)));
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
	choir_metric *metrics[9 + 2 * MAX_TARGETS] = { t->loss, t->score, t->train_accuracy,
		t->test_loss, t->absolute_error, t->r2 };
	size_t n = 6;
	for (size_t i = 0; train_watches_loss(t) && i < t->data.targets; i++) {
		metrics[n++] = t->each_error[i];
		metrics[n++] = t->each_r2[i];
	}
	if (t->auc != NULL) {
		metrics[n++] = t->auc;
		metrics[n++] = t->precision;
		metrics[n++] = t->recall;
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

// The numbers of each target, of two classes, and of a best epoch in a checkpoint of an earlier
// version, are those of another test.
static choir_status note_best(training *t)
{
	const bool best = choir_model_best_epoch(t->fit) > 0;
	const bool unknown = train_is_regression(t) && isnan(t->best.absolute_error);
	const bool each = (train_watches_loss(t) || t->auc != NULL) && t->test != NULL;
	if (best)
		t->last = t->best;
	const bool confused = t->confusion != NULL && t->given->run != NULL;
	if (!(best && (confused || unknown)) && !(each && (best || t->trained == 0)))
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
	options_read(&train_command, argc, argv, NULL);
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
