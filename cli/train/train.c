// choir train: from examples to a trained, tested and saved model. The steps are plain functions
// for one replica (train_step, test_step); how many replicas there are and what carries them is
// the strategy's.
#include "commands.h"
#include "command_options.h"
#include "report.h"
#include "train/train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const schedules[] = { "constant", "cosine", NULL };
static const char *const nonfinite[] = { "stop", "skip", "go_on", NULL };
static const char *const bad_rows[] = { "stop", "skip", NULL };
static const char *const unsaved[] = { "stop", "go_on", NULL };

static train_options given = { .data = "mnist",
	.strategy = "mirrored",
	.optimizer = "adam",
	.schedule = "constant",
	.nonfinite = "stop",
	.unsaved = "stop",
	.bad_rows = "stop",
	.auto_shard = "data",
	.timeout = 60,
	.epochs = 5,
	.seed = 1 };
train_options *const train_given = &given;

// clang-format off
static const option options[] = {
	{ .name = "--model", .value = "model", .kind = OPTION_CHOICE, .to = &given.model,
		.choices = model_kinds, .recorded = true,
		.help = "mlp, cnn, resnet20 or, for text, gpt (cnn; mlp where\nan example is a list of "
				"numbers)" },
	{ .name = "--widths", .value = "LIST", .kind = OPTION_TEXT, .to = &given.widths,
		.recorded = true, .help = "of its layers (mlp: 512,512; cnn: 32,64,128)" },
	{ .name = "--width", .value = "N", .kind = OPTION_INTEGER, .to = &given.size.width,
		.min = 1, .max = MAX_WIDTH, .recorded = true,
		.help = "gpt: numbers at each place (128);\nresnet20: channels of the first third (16)" },
	{ .name = "--layers", .value = "N", .kind = OPTION_INTEGER, .to = &given.size.layers,
		.min = 1, .max = MAX_LAYERS, .recorded = true,
		.help = "gpt: blocks (4); resnet20: layers, 6 n + 2 (20)" },
	{ .name = "--heads", .value = "N", .kind = OPTION_INTEGER, .to = &given.size.heads,
		.min = 1, .max = MAX_WIDTH, .recorded = true,
		.help = "gpt: of attention; they divide the width (4)" },
	{ .name = "--context", .value = "N", .kind = OPTION_INTEGER, .to = &given.size.context,
		.min = 1, .max = MAX_CONTEXT, .recorded = true,
		.help = "gpt: bytes that it sees at once (128)" },
	{ .name = "--dropout", .value = "X", .kind = OPTION_NUMBER, .to = &given.size.dropout,
		.zero = true, .recorded = true, .help = "gpt: less than 1 (none)" },
	{ .name = "--data", .value = "DATA", .kind = OPTION_TEXT, .to = &given.data, .recorded = true,
		.help = source_help },
	{ .name = "--target", .value = "COLUMN", .kind = OPTION_TEXT, .to = &given.target,
		.recorded = true, .help = "of data with columns: what to learn (label, or\nthe last)" },
	{ .name = "--wrong-rows", .value = "policy", .kind = OPTION_CHOICE, .to = &given.bad_rows,
		.choices = bad_rows, .recorded = true,
		.help = "what cannot be read (csv:, tfrecord:), or has no\n"
				"label that can be: stop, or skip and count (stop)" },
	{ .name = "--train-examples", .value = "N", .kind = OPTION_INTEGER,
		.to = &given.train_examples, .min = 1, .recorded = true,
		.help = "the rest are the test set (four fifths; of text,\n"
				"in windows of the context, nine tenths)" },
	{ .name = "--batch", .value = "G", .kind = OPTION_INTEGER, .to = &given.batch, .min = 1,
		.max = 1 << 24, .recorded = true,
		.help = "examples of a step, of all its replicas together\n(128; gpt: 16)" },
	{ .name = "--strategy", .value = "NAME", .kind = OPTION_TEXT, .to = &given.strategy,
		.help = "one_device, mirrored, central_storage or\nparameter_server (mirrored)" },
	{ .name = "--workers", .value = "N", .kind = OPTION_INTEGER, .to = &given.workers, .min = 1,
		.max = 1024, .help = "parameter_server: loops that do not wait for each\nother (1)" },
	{ .name = "--parameter-devices", .value = "LIST", .kind = OPTION_TEXT,
		.to = &given.parameter_devices,
		.help = "central_storage, parameter_server: that hold the\nvariables (cpu:0)" },
	{ .name = "--lock-free", .kind = OPTION_FLAG, .to = &given.lock_free,
		.help = "parameter_server: updates without locks" },
	{ .name = "--replicas", .value = "R", .kind = OPTION_INTEGER, .to = &given.replicas,
		.min = 1, .max = 1 << 16, .help = "(one for each device named; else 1)" },
	{ .name = "--devices", .value = "LIST", .kind = OPTION_TEXT, .to = &given.devices, .own = true,
		.help = "that carry them: cpu:0,cpu:1 (a cpu for each replica,\nat most one a core)" },
	{ .name = "--cores", .value = "N", .kind = OPTION_INTEGER, .to = &given.cores, .min = 1,
		.max = 1 << 10, .own = true, .help = "that share the work of a device (1)" },
	{ .name = "--lowest-instruction-set", .kind = OPTION_FLAG, .to = &given.lowest_set,
		.help = "under mpirun: where processors differ, all use what\nall have" },
	{ .name = "--timeout", .value = "S", .kind = OPTION_NUMBER, .to = &given.timeout,
		.zero = true,
		.help = "under mpirun: seconds that a worker waits for another\none before the training "
				"ends; 0: no limit (60)" },
	{ .name = "--epochs", .value = "E", .kind = OPTION_INTEGER, .to = &given.epochs, .min = 1,
		.max = INT32_MAX, .recorded = true,
		.help = "passes over the training examples (5)" },
	{ .name = "--optimizer", .value = "optimizer", .kind = OPTION_CHOICE, .to = &given.optimizer,
		.choices = train_optimizers, .recorded = true,
		.help = "sgd, momentum, adam, adamw or rmsprop (adam)" },
	{ .name = "--rate", .value = "X", .kind = OPTION_NUMBER, .to = &given.rate, .recorded = true,
		.help = "learning rate (1e-3; sgd and momentum: 1e-2)" },
	{ .name = "--schedule", .value = "schedule", .kind = OPTION_CHOICE, .to = &given.schedule,
		.choices = schedules, .recorded = true,
		.help = "of the rate: constant, or cosine down to 0 (constant)" },
	{ .name = "--warmup", .value = "N", .kind = OPTION_INTEGER, .to = &given.warmup,
		.max = INT32_MAX, .recorded = true,
		.help = "steps in which the rate grows from 0 (none)" },
	{ .name = "--clip", .value = "X", .kind = OPTION_NUMBER, .to = &given.clip, .zero = true,
		.recorded = true, .help = "largest norm of all gradients together (no limit)" },
	{ .name = "--nonfinite", .value = "policy", .kind = OPTION_CHOICE, .to = &given.nonfinite,
		.choices = nonfinite, .recorded = true,
		.help = "at a gradient that is not finite: stop, skip that\nstep on all replicas, or go "
				"on (stop)" },
	{ .name = "--patience", .value = "N", .kind = OPTION_INTEGER, .to = &given.patience,
		.max = INT32_MAX,
		.help = "stop after N epochs that were no better on the test\nset, and go back to the "
				"best (none)" },
	{ .name = "--seed", .value = "S", .kind = OPTION_SEED, .to = &given.seed, .recorded = true,
		.help = "of weights, order and drawn data (1)" },
	{ .name = "--init", .value = "FILE", .kind = OPTION_TEXT, .to = &given.init, .recorded = true,
		.help = "begin with the weights that it has (safetensors),\nand say which it has not" },
	{ .name = "--init-map", .value = "FILE", .kind = OPTION_TEXT, .to = &given.init_map,
		.recorded = true,
		.help = "lines of TENSOR VARIABLE [AXES]: how the weights of\n--init are called here; "
				"* is any text" },
	{ .name = "--freeze", .value = "NAMES", .kind = OPTION_TEXT, .to = &given.freeze,
		.recorded = true, .help = "patterns of weights that stay as they are: token/*,*/bias" },
	{ .name = "--save", .value = "FILE", .kind = OPTION_TEXT, .to = &given.save,
		.help = "write the weights there (safetensors)" },
	{ .name = "--trace", .value = "FILE", .kind = OPTION_TEXT, .to = &given.trace,
		.help = "write where the time went (Chrome's trace format,\nhttps://ui.perfetto.dev), and "
				"print it as a table; under mpirun\nworker N writes FILE.N" },
	{ .name = "--log", .value = "FOLDER", .kind = OPTION_TEXT, .to = &given.log,
		.help = "write loss, accuracy and rates there as they come\n(event files, for "
				"TensorBoard)" },
	{ .name = "--checkpoint", .value = "DIR", .kind = OPTION_TEXT, .to = &given.checkpoint,
		.help = "save all there, each epoch and when stopped by SIGTERM,\n"
				"SIGINT or SIGHUP; go on from what is there" },
	{ .name = "--checkpoint-every", .value = "N", .kind = OPTION_INTEGER,
		.to = &given.checkpoint_every, .help = "and every N steps" },
	{ .name = "--keep", .value = "N", .kind = OPTION_INTEGER, .to = &given.keep, .min = 1,
		.max = 1 << 20, .help = "keep the last N checkpoints (5)" },
	{ .name = "--unsaved", .value = "policy", .kind = OPTION_CHOICE, .to = &given.unsaved,
		.choices = unsaved,
		.help = "where a checkpoint cannot be saved (no space, say):\nstop, or go_on without it "
				"(stop)" },
	{ .name = "--auto-shard", .value = "policy", .kind = OPTION_CHOICE, .to = &given.auto_shard,
		.choices = train_shards, .recorded = true,
		.help = "what each of several processes reads: everything, and\n"
				"keeps its replicas' examples (data) or all (off); or\n"
				"files of its own, if there are any (auto), or always\n(file). (data)" },
	{ .name = "--show-split", .kind = OPTION_FLAG, .to = &given.show_split,
		.help = "say which examples each replica trains on" },
	{ .name = "--json", .kind = OPTION_FLAG, .to = &given.json, .help = "one JSON object a line" },
};
// clang-format on
const command train_command = {
	.name = "choir train",
	.operands = "",
	.about = "Trains a classifier of images or a model of text, tests it on the examples that\n"
			 "it was not trained on, and says its accuracy, or bits per byte, and a hash of\n"
			 "its weights. The weights depend on the data, the seed, the replicas and the\n"
			 "batch, and not on the devices; with --workers also on who comes first. Started by\n"
			 "mpirun -n N, N processes share the replicas, to the same weights; all of them need\n"
			 "the same options, but for --devices and --cores.",
	.n = sizeof options / sizeof options[0],
	.options = options,
};

// ---- What each replica does.

choir_status train_step(choir_replica *r, void *user)
{
	const training *t = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *scores = model_apply(&t->model, choir_replica_arg(r, t->data.input));
	choir_tensor *labels = choir_replica_arg(r, t->data.label);
	choir_tensor *losses = model_losses(&t->model, scores, labels);
	if (t->inspect_losses != NULL)
		t->inspect_losses(r, losses, t->inspect_user);
	CHOIR_TRY(choir_metric_update(t->loss, losses, NULL));
	return choir_optimizer_minimize(t->optimizer, tape, choir_replica_mean(r, losses));
}

static choir_status test_step(choir_replica *r, void *user) // no tape: evaluation
{
	const training *t = user;
	choir_tensor *scores = model_apply(&t->model, choir_replica_arg(r, t->data.input));
	choir_tensor *labels = choir_replica_arg(r, t->data.label);
	if (t->data.text)
		return choir_metric_update(t->score, model_losses(&t->model, scores, labels), NULL);
	return choir_metric_update(t->score, scores, labels);
}

// ---- Passes over the data.

// An epoch of one worker: a loop over its share of the examples.
static choir_status work(choir_strategy *group, int worker, void *user)
{
	training *t = user;
	share *own = &t->share[worker];
	choir_status status;
	if (own->examples == NULL) {
		CHOIR_TRY(train_open_share(t, group, worker));
		CHOIR_TRY(train_show_split(t, worker));
	}
	if (!t->resumed)
		own->done = 0;
	while ((status = choir_distributed_dataset_next(own->examples, &own->batch)) == CHOIR_OK) {
		own->steps++;
		status = choir_strategy_run(group, train_step, t, own->batch, NULL);
		if (status != CHOIR_OK)
			return choir_fail(status, "step %lld: %s", (long long) own->steps, choir_error());
		own->done += t->given->batch;
		if (worker != 0)
			continue;
		train_trace_step(t, own);
		train_show_progress(t, own->done);
		CHOIR_TRY(train_checkpoint_step(t));
	}
	return status == CHOIR_END ? choir_distributed_dataset_rewind(own->examples) : status;
}

static choir_status train_epoch(training *t)
{
	const int64_t done = t->resumed ? t->share[0].done : 0; // its last batch may not be full
	t->earlier = done < t->train_examples ? done : t->train_examples;
	t->since = now();
	CHOIR_TRY(choir_strategy_run_workers(t->strategy, work, t));
	t->resumed = false; // all of them only read it
	t->trained += t->train_examples - t->earlier;
	t->seconds += now() - t->since;
	t->last_loss = choir_metric_result(t->loss);
	return choir_metric_reset(t->loss);
}

static choir_status test(training *t)
{
	choir_status status;
	t->last_score = NAN;
	if (t->test == NULL)
		return CHOIR_OK;
	while ((status = choir_distributed_dataset_next(t->test, &t->batch)) == CHOIR_OK)
		CHOIR_TRY(choir_strategy_run(t->strategy, test_step, t, t->batch, NULL));
	if (status != CHOIR_END)
		return status;
	t->last_score = choir_metric_result(t->score);
	if (t->data.text)
		t->last_score /= log(2); // from nats to bits
	CHOIR_TRY(choir_metric_reset(t->score));
	return choir_distributed_dataset_rewind(t->test);
}

// Keeps the weights if they are the best so far.
static choir_status compare(training *t)
{
	const bool better = t->best_epoch == 0 ||
			(t->data.text ? t->last_score < t->best_score : t->last_score > t->best_score);
	if (given.patience == 0)
		return CHOIR_OK;
	t->worse = better ? 0 : t->worse + 1;
	if (!better)
		return CHOIR_OK;
	t->best_epoch = t->epochs;
	t->best_score = t->last_score;
	return best_keep(&t->best, t->model.net);
}

static bool has_patience(const training *t)
{
	return given.patience == 0 || t->worse < given.patience;
}

// ---- The whole.

static choir_status train_epochs(training *t)
{
	while (has_patience(t) && t->epochs < given.epochs) {
		t->epochs++;
		CHOIR_TRY(train_epoch(t));
		CHOIR_TRY(test(t));
		train_report_epoch(t);
		train_trace_epoch(t);
		CHOIR_TRY(compare(t));
		CHOIR_TRY(train_checkpoint_epoch(t));
	}
	if (t->best.copy != NULL)
		t->last_score = t->best_score;
	return best_restore(&t->best, t->model.net);
}

static choir_status train_and_save(training *t)
{
	CHOIR_TRY(train_open_checkpoints(t));
	CHOIR_TRY(train_epochs(t));
	CHOIR_TRY(train_close_checkpoints(t));
	return given.save == NULL // else on all workers, of which the chief writes
			? CHOIR_OK
			: choir_strategy_save(t->strategy, given.save, t->metadata);
}

static choir_status train(training *t)
{
	choir_log_set(CHOIR_LOG_WARNING, train_report_warning, NULL);
	CHOIR_TRY(train_make(t));
	train_report_start(t);
	if (t->share[0].examples != NULL)
		CHOIR_TRY(train_show_split(t, 0));
	CHOIR_TRY(train_trace_start(t));
	const choir_status status = train_and_save(t);
	const choir_status traced = train_trace_stop(t, status);
	if (status == CHOIR_OK)
		train_report_end(t);
	return traced;
}

int train_main(int argc, char **argv)
{
	const options_result result = options_read(&train_command, argc, argv, NULL);
	if (result != OPTIONS_GIVEN)
		return result == OPTIONS_HELP ? EXIT_OK : EXIT_USAGE;
	training t = { .given = &given };
	choir_status status = train_open_cluster(&t);
	if (status == CHOIR_OK)
		status = train(&t);
	if (status != CHOIR_OK)
		progress_clear();
	int code = EXIT_OK;
	if (status != CHOIR_OK && (!t.stopped || train_is_chief(&t))) // of a stop one worker speaks
		code = failed(&train_command);
	if (t.stopped)
		code = EXIT_STOPPED;
	train_free(&t);
	train_close_cluster(&t, t.stopped ? CHOIR_OK : status);
	return code;
}
