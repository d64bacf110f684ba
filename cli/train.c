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
	const char *model, *widths, *data, *target, *devices, *optimizer, *save;
	int64_t train_examples, batch, replicas, epochs;
	double rate;
	uint64_t seed;
	bool json;
} given = {
	.model = "cnn", .data = "mnist", .optimizer = "adam", .batch = 128, .epochs = 5, .seed = 1
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
		.most = 1 << 24, .help = "examples of a step, of all replicas together (128)" },
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
	{ .name = "--json", .kind = OPTION_FLAG, .to = &given.json, .help = "one JSON object a line" },
};
// clang-format on
static const command self = {
	.name = "choir train",
	.operands = "",
	.about = "Trains a classifier of images, tests it on the examples that it was not trained\n"
			 "on, and says its accuracy and a hash of its weights. The weights depend on the\n"
			 "data, the seed, the replicas and the batch, and not on the devices.",
	.n = sizeof options / sizeof options[0],
	.options = options,
};

typedef struct {
	source data;
	table_plan *table; // NULL: inputs are not standardised
	int64_t train_examples, test_examples;
	choir_strategy *strategy;
	choir_distributed_dataset *train, *test;
	model model;
	choir_optimizer *optimizer;
	choir_metric *loss, *accuracy;
	choir_values *batch;
	double seconds; // of training, so far
	int64_t done; // examples, of this epoch
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

static void show_progress(training *t, int64_t epoch, double since)
{
	const double seconds = now() - since;
	const double rate = (double) t->done / seconds;
	const int64_t left = t->train_examples - t->done + (given.epochs - epoch) * t->train_examples;
	progress("epoch %lld/%lld  %lld/%lld  %.0f examples/s  loss %.4f  %.0f s left",
			(long long) epoch, (long long) given.epochs, (long long) t->done,
			(long long) t->train_examples, rate, choir_metric_result(t->loss),
			(double) left / rate);
}

static choir_status train_epoch(training *t, int64_t epoch)
{
	const double since = now();
	double shown = since;
	choir_status status;
	t->done = 0;
	while ((status = choir_distributed_dataset_next(t->train, &t->batch)) == CHOIR_OK) {
		CHOIR_TRY(choir_strategy_run(t->strategy, train_step, t, t->batch, NULL));
		t->done = t->done + given.batch < t->train_examples ? t->done + given.batch
															: t->train_examples;
		if (!given.json && progress_on() && now() - shown > SHOW_SECONDS) {
			show_progress(t, epoch, since);
			shown = now();
		}
	}
	t->seconds += now() - since;
	if (status != CHOIR_END)
		return status;
	t->last_loss = choir_metric_result(t->loss);
	CHOIR_TRY(choir_metric_reset(t->loss));
	return choir_distributed_dataset_rewind(t->train);
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

// Measures the inputs of d, the examples to train on, and applies it to them.
static choir_dataset *measured(training *t, choir_dataset *d)
{
	table_plan *p = t->table;
	p->inputs = choir_shape_elements(&t->data.shape);
	if (d == NULL ||
			choir_dataset_moments(d, "image", (size_t) p->inputs, p->mean, p->deviation) !=
					CHOIR_OK) {
		choir_dataset_free(d);
		return NULL;
	}
	return choir_dataset_standardize(d, "image", (size_t) p->inputs, p->mean, p->deviation);
}

// All examples, in an order that is the same in every pass, so that those held out stay so.
static choir_dataset *ordered(const training *t)
{
	choir_dataset *d = source_examples(&t->data);
	return t->data.mixed ? choir_dataset_shuffle_once(d, t->data.examples, given.seed) : d;
}

static choir_status make_input(training *t)
{
	choir_dataset *d = choir_dataset_take(ordered(t), t->train_examples);
	if (t->table != NULL)
		d = choir_dataset_cache(measured(t, d), NULL);
	d = choir_dataset_batch(choir_dataset_shuffle(d, t->train_examples, given.seed), given.batch);
	t->train = choir_strategy_distribute_dataset(t->strategy, d, NULL);
	if (t->train == NULL)
		return choir_error_status();
	if (t->test_examples == 0)
		return CHOIR_OK;
	d = choir_dataset_skip(ordered(t), t->train_examples);
	if (t->table != NULL)
		d = choir_dataset_standardize(
				d, "image", (size_t) t->table->inputs, t->table->mean, t->table->deviation);
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
	t->strategy = choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
			.devices = given.devices, .replicas = (int) given.replicas, .seed = given.seed));
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
	choir_values_free(t.batch);
	choir_strategy_free(t.strategy);
	source_close(&t.data);
	free(t.table);
	return code;
}
