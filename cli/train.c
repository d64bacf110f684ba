// choir train: from examples to a trained, tested and saved model. The steps are plain functions
// for one replica (train_step, test_step); how many replicas there are and what carries them is
// the strategy's.
#include "commands.h"
#include "model.h"
#include "options.h"
#include "report.h"
#include "source.h"
#include "summary.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double SHOW_SECONDS = 0.1;

static const char *const optimizers[] = { "sgd", "momentum", "adam", "adamw", NULL };

static struct {
	const char *model, *widths, *data, *target, *strategy, *devices, *parameter_devices;
	const char *optimizer, *save;
	int64_t train_examples, batch, replicas, workers, epochs;
	double rate;
	uint64_t seed;
	bool lock_free, show_split, json;
} given = {
	.model = "cnn", .data = "mnist", .strategy = "mirrored", .optimizer = "adam", .batch = 128,
	.epochs = 5, .seed = 1
};

// clang-format off
static const option options[] = {
	{ .name = "--model", .value = "model", .kind = OPTION_CHOICE, .to = &given.model,
		.choices = model_kinds, .help = "mlp or cnn (cnn)" },
	{ .name = "--widths", .value = "LIST", .kind = OPTION_TEXT, .to = &given.widths,
		.help = "of its layers (mlp: 512,512; cnn: 32,64,128)" },
	{ .name = "--data", .value = "DATA", .kind = OPTION_TEXT, .to = &given.data,
		.help = source_help },
	{ .name = "--target", .value = "COLUMN", .kind = OPTION_TEXT, .to = &given.target,
		.help = "of csv data: what to learn (label, or the last)" },
	{ .name = "--train-examples", .value = "N", .kind = OPTION_INTEGER,
		.to = &given.train_examples, .least = 1,
		.help = "the rest are the test set (four fifths)" },
	{ .name = "--batch", .value = "G", .kind = OPTION_INTEGER, .to = &given.batch, .least = 1,
		.most = 1 << 24, .help = "examples of a step, of all its replicas together (128)" },
	{ .name = "--strategy", .value = "NAME", .kind = OPTION_TEXT, .to = &given.strategy,
		.help = "one_device, mirrored, central_storage or\nparameter_server (mirrored)" },
	{ .name = "--workers", .value = "N", .kind = OPTION_INTEGER, .to = &given.workers, .least = 1,
		.most = 1024, .help = "parameter_server: loops that do not wait for each\nother (1)" },
	{ .name = "--parameter-devices", .value = "LIST", .kind = OPTION_TEXT,
		.to = &given.parameter_devices,
		.help = "central_storage, parameter_server: that hold the\nvariables (cpu:0)" },
	{ .name = "--lock-free", .kind = OPTION_FLAG, .to = &given.lock_free,
		.help = "parameter_server: updates without locks" },
	{ .name = "--replicas", .value = "R", .kind = OPTION_INTEGER, .to = &given.replicas,
		.least = 1, .most = 1 << 16, .help = "(one for each device named)" },
	{ .name = "--devices", .value = "LIST", .kind = OPTION_TEXT, .to = &given.devices,
		.help = "that carry them: cpu:0,cpu:1 (one for each core)" },
	{ .name = "--epochs", .value = "E", .kind = OPTION_INTEGER, .to = &given.epochs, .least = 1,
		.most = INT32_MAX, .help = "passes over the training examples (5)" },
	{ .name = "--optimizer", .value = "optimizer", .kind = OPTION_CHOICE, .to = &given.optimizer,
		.choices = optimizers, .help = "sgd, momentum, adam or adamw (adam)" },
	{ .name = "--rate", .value = "X", .kind = OPTION_NUMBER, .to = &given.rate,
		.help = "learning rate (1e-3; sgd and momentum: 1e-2)" },
	{ .name = "--seed", .value = "S", .kind = OPTION_SEED, .to = &given.seed,
		.help = "of weights, order and drawn data (1)" },
	{ .name = "--save", .value = "FILE", .kind = OPTION_TEXT, .to = &given.save,
		.help = "write the weights there (safetensors)" },
	{ .name = "--show-split", .kind = OPTION_FLAG, .to = &given.show_split,
		.help = "say which examples each replica trains on" },
	{ .name = "--json", .kind = OPTION_FLAG, .to = &given.json, .help = "one JSON object a line" },
};
// clang-format on
static const command self = {
	.name = "choir train",
	.operands = "",
	.about = "Trains a classifier of images, tests it on the examples that it was not trained\n"
			 "on, and says its accuracy and a hash of its weights. The weights depend on the\n"
			 "data, the seed, the replicas and the batch, and not on the devices; with several\n"
			 "workers also on who comes first.",
	.n = sizeof options / sizeof options[0],
	.options = options,
};

// What one worker trains with: its share of the examples.
typedef struct {
	choir_distributed_dataset *examples; // made by the worker
	choir_values *batch;
	int64_t done; // of this epoch
} share;

typedef struct {
	source data;
	table_plan *table; // NULL: inputs are not standardised
	int64_t train_examples, test_examples;
	choir_strategy *strategy;
	share *share; // of each worker
	int64_t epoch; // on its way
	double since; // when it began
	choir_distributed_dataset *test;
	model model;
	choir_optimizer *optimizer;
	choir_metric *loss, *accuracy;
	choir_values *batch;
	double seconds; // of training, so far
	double last_loss;
} training;

// ---- What each replica does.

static choir_status train_step(choir_replica *r, void *user)
{
	const training *t = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *scores = model_apply(&t->model, choir_replica_arg(r, "image"));
	choir_tensor *losses = choir_softmax_cross_entropy(scores, choir_replica_arg(r, "label"));
	CHOIR_TRY(choir_metric_update(t->loss, losses, NULL));
	return choir_optimizer_minimize(t->optimizer, tape, choir_replica_mean(r, losses));
}

static choir_status test_step(choir_replica *r, void *user) // no tape: evaluation
{
	const training *t = user;
	choir_tensor *scores = model_apply(&t->model, choir_replica_arg(r, "image"));
	return choir_metric_update(t->accuracy, scores, choir_replica_arg(r, "label"));
}

// ---- Passes over the data.

// Of a worker, for all: they are about as far.
static void show_progress(const training *t, int64_t done)
{
	const int64_t all = done * choir_strategy_workers(t->strategy);
	const int64_t now_done = all < t->train_examples ? all : t->train_examples;
	const double rate = (double) now_done / (now() - t->since);
	const int64_t left = t->train_examples - now_done +
			(given.epochs - t->epoch) * t->train_examples;
	progress("epoch %lld/%lld  %lld/%lld  %.0f examples/s  loss %.4f  %.0f s left",
			(long long) t->epoch, (long long) given.epochs, (long long) now_done,
			(long long) t->train_examples, rate, choir_metric_result(t->loss),
			(double) left / rate);
}

// All examples, in an order that is the same in every pass, so that those held out stay so.
static choir_dataset *ordered(const training *t)
{
	choir_dataset *d = source_examples(&t->data);
	return t->data.mixed ? choir_dataset_shuffle_once(d, t->data.examples, given.seed) : d;
}

static choir_dataset *standardized(const training *t, choir_dataset *d)
{
	const table_plan *p = t->table;
	return p == NULL ? d
			: choir_dataset_standardize(d, "image", (size_t) p->inputs, p->mean, p->deviation);
}

// Who reads what, of one worker's share; and, unasked, that a policy could not be followed.
static choir_status show_split(
		const choir_distributed_dataset *examples, int64_t workers, int worker)
{
	if (choir_distributed_dataset_fell_back(examples) && !given.json)
		printf("no files to share out: every worker reads everything\n");
	if (!given.show_split || (given.json && worker > 0))
		return CHOIR_OK;
	const size_t length = choir_distributed_dataset_describe(examples, NULL, 0);
	char *text = malloc(length + 1);
	if (text == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "--show-split: no memory");
	choir_distributed_dataset_describe(examples, text, length + 1);
	if (given.json) {
		json_begin();
		json_text("event", "split");
		json_text("text", text);
		json_end();
	} else if (workers > 1) {
		printf("worker %d takes every %lld. example from %d on, and of these:\n%s", worker,
				(long long) workers, worker, text);
	} else {
		printf("%s", text);
	}
	free(text);
	return CHOIR_OK;
}

static choir_status open_share(const training *t, choir_strategy *group, int worker)
{
	const int64_t workers = choir_strategy_workers(group);
	choir_dataset *d = standardized(t, choir_dataset_take(ordered(t), t->train_examples));
	if (workers > 1)
		d = choir_dataset_shard(d, workers, worker);
	if (t->table != NULL)
		d = choir_dataset_cache(d, NULL);
	d = choir_dataset_batch(choir_dataset_shuffle(d, t->train_examples, given.seed), given.batch);
	t->share[worker].examples = choir_strategy_distribute_dataset(group, d, NULL);
	return t->share[worker].examples == NULL
			? choir_error_status()
			: show_split(t->share[worker].examples, workers, worker);
}

// An epoch of one worker: a loop over its share of the examples.
static choir_status work(choir_strategy *group, int worker, void *user)
{
	training *t = user;
	share *own = &t->share[worker];
	double shown = t->since;
	choir_status status;
	if (own->examples == NULL)
		CHOIR_TRY(open_share(t, group, worker));
	own->done = 0;
	while ((status = choir_distributed_dataset_next(own->examples, &own->batch)) == CHOIR_OK) {
		CHOIR_TRY(choir_strategy_run(group, train_step, t, own->batch, NULL));
		own->done += given.batch;
		if (worker == 0 && !given.json && progress_on() && now() - shown > SHOW_SECONDS) {
			show_progress(t, own->done);
			shown = now();
		}
	}
	return status == CHOIR_END ? choir_distributed_dataset_rewind(own->examples) : status;
}

static choir_status train_epoch(training *t, int64_t epoch)
{
	t->epoch = epoch;
	t->since = now();
	CHOIR_TRY(choir_strategy_run_workers(t->strategy, work, t));
	t->seconds += now() - t->since;
	t->last_loss = choir_metric_result(t->loss);
	return choir_metric_reset(t->loss);
}

static void say_epoch(const training *t, int64_t epoch)
{
	const double rate = (double) (epoch * t->train_examples) / t->seconds;
	if (given.json) {
		json_begin();
		json_text("event", "epoch");
		json_integer("epoch", epoch);
		json_number("loss", t->last_loss);
		json_number("examples_per_s", rate);
		json_number("seconds", t->seconds);
		json_end();
	} else {
		progress_clear();
		printf("epoch %lld/%lld  loss %.4f  %.0f examples/s  %.0f s left\n", (long long) epoch,
				(long long) given.epochs, t->last_loss, rate,
				(double) ((given.epochs - epoch) * t->train_examples) / rate);
	}
	fflush(stdout);
}

static choir_status test(training *t, double *accuracy)
{
	choir_status status = CHOIR_END;
	*accuracy = NAN;
	while (t->test != NULL &&
			(status = choir_distributed_dataset_next(t->test, &t->batch)) == CHOIR_OK)
		CHOIR_TRY(choir_strategy_run(t->strategy, test_step, t, t->batch, NULL));
	if (t->test != NULL && status == CHOIR_END)
		*accuracy = choir_metric_result(t->accuracy);
	return status == CHOIR_END ? CHOIR_OK : status;
}

// ---- Making what a training needs.

// How many examples are for training: as many as asked for, or four fifths.
static choir_status share_examples(training *t)
{
	const int64_t all = t->data.examples, asked = given.train_examples;
	if (!t->data.labelled)
		return choir_fail(CHOIR_INVALID, "data \"%s\": training needs labels: idx:IMAGES,LABELS",
				given.data);
	if (asked > all)
		return choir_fail(CHOIR_INVALID,
				"--train-examples %lld: data \"%s\" has only %lld examples", (long long) asked,
				given.data, (long long) all);
	t->train_examples = asked != 0 ? asked : all - all / 5;
	t->test_examples = all - t->train_examples;
	return CHOIR_OK;
}

// Measures the inputs of the examples to train on.
static choir_status measure(training *t)
{
	table_plan *p = t->table;
	p->inputs = choir_shape_elements(&t->data.shape);
	choir_dataset *d = choir_dataset_take(ordered(t), t->train_examples);
	const choir_status status = d == NULL ? choir_error_status()
			: choir_dataset_moments(d, "image", (size_t) p->inputs, p->mean, p->deviation);
	choir_dataset_free(d);
	return status;
}

// The test examples; every worker makes its share of the others.
static choir_status make_input(training *t)
{
	if (t->table != NULL)
		CHOIR_TRY(measure(t));
	t->share = calloc((size_t) choir_strategy_workers(t->strategy), sizeof *t->share);
	if (t->share == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "no memory for %d workers",
				choir_strategy_workers(t->strategy));
	if (t->test_examples == 0)
		return CHOIR_OK;
	choir_dataset *d = standardized(t, choir_dataset_skip(ordered(t), t->train_examples));
	t->test = choir_strategy_distribute_dataset(
			t->strategy, choir_dataset_batch(d, given.batch), NULL);
	return t->test == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_status make_model(training *t)
{
	static const choir_optimizer_kind kinds[] = { CHOIR_SGD, CHOIR_MOMENTUM, CHOIR_ADAM,
		CHOIR_ADAMW };
	model_plan plan = { .image = t->data.shape,
		.classes = t->data.classes,
		.scale = t->data.scale,
		.table = t->table };
	size_t kind = 0;
	while (strcmp(optimizers[kind], given.optimizer) != 0)
		kind++;
	choir_scope scope;
	CHOIR_TRY(model_plan_set(&plan, given.model, given.widths));
	CHOIR_TRY(choir_scope_enter(&scope, t->strategy));
	choir_status status = model_build(&t->model, &plan);
	t->optimizer = choir_optimizer_new(
			kinds[kind], CHOIR_OPTIONS(choir_optimizer_options, .rate = given.rate));
	t->loss = choir_metric_new(CHOIR_METRIC_MEAN, "loss");
	t->accuracy = choir_metric_new(CHOIR_METRIC_ACCURACY, "accuracy");
	if (status == CHOIR_OK && (t->optimizer == NULL || t->loss == NULL || t->accuracy == NULL))
		status = choir_error_status();
	const choir_status left = choir_scope_exit(&scope);
	return status == CHOIR_OK ? left : status;
}

// Whether a file can be made where the weights are to go, asked before hours of training.
static choir_status check_save(void)
{
	char folder[PATH_SIZE];
	if (given.save == NULL)
		return CHOIR_OK;
	const char *slash = strrchr(given.save, '/');
	if (slash == NULL)
		snprintf(folder, sizeof folder, ".");
	else
		snprintf(folder, sizeof folder, "%.*s", (int) (slash - given.save + 1), given.save);
	if (access(folder, W_OK | X_OK) == 0)
		return CHOIR_OK;
	return choir_fail(
			CHOIR_IO, "--save %s: the folder %s: %s", given.save, folder, strerror(errno));
}

// What must be kept of a table with the weights.
static choir_status make_table(training *t)
{
	if (!t->data.standardized)
		return CHOIR_OK;
	if (choir_shape_elements(&t->data.shape) > MOST_INPUTS)
		return choir_fail(CHOIR_UNSUPPORTED, "data \"%s\": %lld inputs, at most %d possible",
				given.data, (long long) choir_shape_elements(&t->data.shape), MOST_INPUTS);
	t->table = calloc(1, sizeof *t->table);
	if (t->table == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "out of memory");
	snprintf(t->table->target, sizeof t->table->target, "%s", t->data.target);
	const size_t n = choir_dataset_categories(t->data.names, "label");
	for (size_t i = 0; i < n && n <= MOST_CLASS_NAMES; i++) {
		t->table->name[i] = choir_dataset_category(t->data.names, "label", (int64_t) i);
		t->table->classes = n;
	}
	return CHOIR_OK;
}

static choir_status prepare(training *t)
{
	CHOIR_TRY(check_save());
	if (given.target != NULL)
		snprintf(t->data.target, sizeof t->data.target, "%s", given.target);
	CHOIR_TRY(source_open(&t->data, given.data, given.seed));
	CHOIR_TRY(share_examples(t));
	CHOIR_TRY(make_table(t));
	t->strategy = choir_strategy_new(given.strategy,
			CHOIR_OPTIONS(choir_strategy_options, .devices = given.devices,
					.replicas = (int) given.replicas, .seed = given.seed,
					.parameter_devices = given.parameter_devices,
					.workers = (int) given.workers,
					.locked_updates = given.lock_free ? CHOIR_OFF : CHOIR_DEFAULT));
	if (t->strategy == NULL)
		return choir_error_status();
	CHOIR_TRY(make_input(t));
	return make_model(t);
}

// ---- The whole.

static void say_start(const training *t)
{
	const summary s = {
		.strategy = t->strategy,
		.model = &t->model,
		.data = given.data,
		.optimizer = given.optimizer,
		.train_examples = t->train_examples,
		.test_examples = t->test_examples,
		.batch = given.batch,
		.slots = strcmp(given.optimizer, "sgd") == 0	   ? 0
				: strcmp(given.optimizer, "momentum") == 0 ? 1
														   : 2,
	};
	if (!given.json)
		source_say(&t->data);
	summary_print(&s, given.json);
}

static void say_end(const training *t, double accuracy)
{
	const double rate = (double) (given.epochs * t->train_examples) / t->seconds;
	char hash[17];
	snprintf(hash, sizeof hash, "%016llx", (unsigned long long) choir_strategy_hash(t->strategy));
	if (given.json) {
		json_begin();
		json_text("event", "end");
		json_number("loss", t->last_loss);
		json_number("test_accuracy", accuracy);
		json_number("examples_per_s", rate);
		json_text("weights", hash);
		json_end();
		return;
	}
	if (given.save != NULL)
		printf("saved %s\n", given.save);
	if (isnan(accuracy))
		printf("no test: every example was for training\n");
	else
		printf("test accuracy %.2f %% of %lld examples\n", 100 * accuracy,
				(long long) t->test_examples);
	printf("weights %s\n", hash);
}

static choir_status train(training *t)
{
	double accuracy;
	CHOIR_TRY(prepare(t));
	say_start(t);
	for (int64_t epoch = 1; epoch <= given.epochs; epoch++) {
		CHOIR_TRY(train_epoch(t, epoch));
		say_epoch(t, epoch);
	}
	CHOIR_TRY(test(t, &accuracy));
	if (given.save != NULL) {
		static char metadata[METADATA_SIZE];
		model_plan_write(&t->model.plan, metadata);
		CHOIR_TRY(choir_strategy_save(t->strategy, given.save, metadata));
	}
	say_end(t, accuracy);
	return CHOIR_OK;
}

int train_main(int argc, char **argv)
{
	const options_result result = options_read(&self, argc, argv, NULL);
	if (result != OPTIONS_GIVEN)
		return result == OPTIONS_HELP ? EXIT_OK : EXIT_USAGE;
	training t = { .strategy = NULL };
	const choir_status status = train(&t);
	if (status != CHOIR_OK)
		progress_clear();
	const int code = status == CHOIR_OK ? EXIT_OK : failed(&self);
	for (int i = 0; t.share != NULL && i < choir_strategy_workers(t.strategy); i++)
		choir_values_free(t.share[i].batch);
	free(t.share);
	choir_values_free(t.batch);
	choir_strategy_free(t.strategy);
	source_close(&t.data);
	free(t.table);
	return code;
}
