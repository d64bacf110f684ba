// Creates data, input, model and optimizer. It checks everything before hours of work.
#include "model/initial_weights.h"
#include "precision_option.h"
#include "train/train.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Batch entries and classes without an example.
enum {
	PATTERN_SIZE = 256,
	MAX_SPARE_BATCH = 1 << 16,
	MAX_SPARE_CLASSES = 4096,
	MAX_CONFUSED = 256
};

const char *const train_optimizers[] = { "sgd", "momentum", "adam", "adamw", "rmsprop", "nadam",
	"adagrad", "lion", "lamb", NULL };
// In the order of train_optimizers; slots per weight.
static const struct {
	choir_optimizer_kind kind;
	int slots;
} optimizers[] = { { CHOIR_SGD, 0 }, { CHOIR_MOMENTUM, 1 }, { CHOIR_ADAM, 2 }, { CHOIR_ADAMW, 2 },
	{ CHOIR_RMSPROP, 2 }, { CHOIR_NADAM, 2 }, { CHOIR_ADAGRAD, 1 }, { CHOIR_LION, 1 },
	{ CHOIR_LAMB, 2 } };

static choir_status share_examples(training *t)
{
	const int64_t all = t->data.examples, asked = t->given->train_examples;
	if (!t->data.labelled)
		return t->data.images
				? choir_fail(CHOIR_INVALID,
						  "data \"%s\": has no labels; training needs a directory for each class",
						  t->given->data)
				: choir_fail(CHOIR_INVALID, "data \"%s\": has no labels; training needs %s,LABELS",
						  t->given->data, t->given->data);
	if (asked > all)
		return choir_fail(CHOIR_INVALID,
				"--train-examples %lld: data \"%s\" has %lld examples; needs at most as many",
				(long long) asked, t->given->data, (long long) all);
	const int64_t held_out = t->data.held_out != 0 ? t->data.held_out
			: t->data.text						   ? (all + 9) / 10
												   : all / 5;
	t->train_examples = asked != 0 ? asked : all - held_out;
	t->test_examples = all - t->train_examples;
	if (t->given->patience != 0 && t->test_examples == 0)
		return choir_fail(CHOIR_INVALID,
				"--patience %lld: training uses %lld of %lld examples; needs some for the test",
				(long long) t->given->patience, (long long) t->train_examples, (long long) all);
	if (train_shards_files(t) && t->test_examples != 0)
		return choir_fail(CHOIR_INVALID,
				"--auto-shard %s: each process reads its own files, so there is no test set; "
				"needs --train-examples %lld",
				t->given->auto_shard, (long long) all);
	return CHOIR_OK;
}

// A model has weights for all classes, so one large label must not make it much larger than the
// data.
static choir_status check_classes(const training *t)
{
	const int64_t classes = t->data.classes, examples = t->data.examples;
	if (train_is_regression(t) || classes <= MAX_SPARE_CLASSES || classes <= examples)
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID,
			"data \"%.200s\": label %lld means %lld classes, "
			"for %lld examples; needs labels below %lld%s",
			t->given->data, (long long) classes - 1, (long long) classes, (long long) examples,
			(long long) (examples > MAX_SPARE_CLASSES ? examples : MAX_SPARE_CLASSES),
			t->data.csv ? ", or --task regression for a quantity" : "");
}

bool train_is_regression(const training *t)
{
	return t->data.targets > 0;
}

bool train_watches_loss(const training *t)
{
	return t->data.targets > 1;
}

static task find_task(const char *name)
{
	return strcmp(name, "regression") == 0		  ? TASK_REGRESSION
			: strcmp(name, "classification") == 0 ? TASK_CLASSIFICATION
												  : TASK_AUTO;
}

static size_t optimizer_index(const training *t)
{
	size_t kind = 0;
	while (strcmp(train_optimizers[kind], t->given->optimizer) != 0)
		kind++;
	return kind;
}

int train_slots(const training *t)
{
	return optimizers[optimizer_index(t)].slots;
}

static choir_nonfinite find_policy(const char *name)
{
	return strcmp(name, "skip") == 0	  ? CHOIR_NONFINITE_SKIP
			: strcmp(name, "ignore") == 0 ? CHOIR_NONFINITE_IGNORE
										  : CHOIR_NONFINITE_ERROR;
}

static int64_t quotient_up(int64_t n, int64_t by)
{
	return (n + by - 1) / by;
}

// A parameter server's workers each update with the batches of their share. With --auto-shard off
// each process contributes all examples.
static int64_t steps_of_epoch(const training *t)
{
	const int64_t workers = choir_strategy_workers(t->strategy), batch = t->given->batch;
	if (workers > 1)
		return workers * quotient_up(quotient_up(t->train_examples, workers), batch);
	const bool all_read_all = train_is_one_of_many(t) && strcmp(t->given->auto_shard, "off") == 0;
	const int64_t times = all_read_all ? choir_cluster_workers(t->cluster) : 1;
	return quotient_up(times * t->train_examples, batch);
}

static choir_optimizer *make_optimizer(const training *t)
{
	const bool cosine = strcmp(t->given->schedule, "cosine") == 0;
	const choir_schedule schedule = { .size = sizeof schedule,
		.kind = cosine ? CHOIR_SCHEDULE_COSINE : CHOIR_SCHEDULE_CONSTANT,
		.warmup = t->given->warmup,
		.steps = cosine ? t->given->epochs * steps_of_epoch(t) : 0 };
	choir_parameter_group groups[2];
	size_t n = 0;
	const choir_optimizer_kind kind = optimizers[optimizer_index(t)].kind;
	if (t->given->freeze != NULL)
		groups[n++] = (choir_parameter_group){ .size = sizeof *groups,
			.names = t->given->freeze,
			.learning_rate_multiplier = CHOIR_ZERO };
	if (kind == CHOIR_ADAMW || t->given->weight_decay > 0)
		groups[n++] = (choir_parameter_group){
			.size = sizeof *groups, .names = "*/bias,*/beta,*/gamma", .weight_decay = CHOIR_ZERO
		};
	return choir_optimizer_new(kind,
			CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = t->given->rate,
					.weight_decay = t->given->weight_decay, .schedule = &schedule,
					.global_clip_norm = t->given->clip, .groups = groups, .n_groups = n,
					.nonfinite = find_policy(t->given->nonfinite),
					.loss_scale = precision_loss_scale(t->strategy, wire_of(t->given->wire))));
}

static choir_status check_decay(const training *t)
{
	const choir_optimizer_kind kind = optimizers[optimizer_index(t)].kind;
	return t->given->weight_decay == 0 || kind == CHOIR_ADAMW || kind == CHOIR_LION ||
					kind == CHOIR_LAMB
			? CHOIR_OK
			: choir_fail(CHOIR_INVALID,
					  "--weight-decay %g: the optimizer is %s, which has none; needs --optimizer "
					  "adamw, lion or lamb",
					  t->given->weight_decay, t->given->optimizer);
}

// A typing error would train frozen weights.
static choir_status check_freeze(const training *t)
{
	char pattern[PATTERN_SIZE];
	const char *p = t->given->freeze;
	while (p != NULL && *p != '\0') {
		const size_t length = strcspn(p, ",");
		snprintf(pattern, sizeof pattern, "%.*s", (int) length, p);
		p += length + (p[length] == ',');
		bool found = false;
		for (int i = 0; i < choir_layer_variables(t->model.net) && !found; i++) {
			const choir_variable *v = choir_layer_variable(t->model.net, i);
			found = fnmatch(pattern, choir_variable_name(v), 0) == 0;
		}
		if (!found)
			return choir_fail(CHOIR_NOT_FOUND,
					"--freeze %s: matches no weight; needs patterns like token/* or */bias",
					pattern);
	}
	return CHOIR_OK;
}

// Metadata must agree with the file's size and the data.
static choir_status check_fit(const training *t)
{
	const int64_t batch = t->given->batch, max = MAX_SPARE_BATCH + t->train_examples;
	if (t->weights == NULL)
		return CHOIR_OK;
	if (batch > max)
		return choir_fail(CHOIR_CORRUPT,
				"%s: records batches of %lld, for %lld training examples of data \"%.200s\"; "
				"needs at most %lld",
				t->weights, (long long) batch, (long long) t->train_examples, t->given->data,
				(long long) max);
	return model_plan_fits(&t->model.plan, t->weights);
}

static choir_status check_memory(training *t)
{
	t->memory = memory_needed(&t->model.plan, t->strategy, train_slots(t), t->given->batch);
	return memory_check(&t->memory, t->given->model, t->strategy);
}

// False: one could not be made.
static bool make_each(training *t)
{
	char name[32];
	bool made = true;
	if (!train_is_regression(t) && !t->data.text && t->data.classes == 2) {
		t->auc = choir_auc_new("auc", AUC_THRESHOLDS);
		t->precision = choir_precision_new("precision", 0.5);
		t->recall = choir_recall_new("recall", 0.5);
		made = t->auc != NULL && t->precision != NULL && t->recall != NULL;
	}
	for (size_t i = 0; train_watches_loss(t) && i < t->data.targets && made; i++) {
		snprintf(name, sizeof name, "absolute_error_%zu", i);
		t->each_error[i] = choir_metric_new(name, CHOIR_METRIC_MEAN_ABSOLUTE_ERROR);
		snprintf(name, sizeof name, "r2_%zu", i);
		t->each_r2[i] = choir_metric_new(name, CHOIR_METRIC_R2);
		made = t->each_error[i] != NULL && t->each_r2[i] != NULL;
	}
	return made;
}

static choir_status make_model(training *t)
{
	choir_scope scope;
	CHOIR_TRY(choir_scope_enter(&scope, t->strategy));
	choir_status status = model_build(&t->model, &t->model.plan);
	t->optimizer = make_optimizer(t);
	t->loss = choir_metric_new("loss", CHOIR_METRIC_MEAN);
	t->score = choir_metric_new("score",
			train_is_regression(t) ? CHOIR_METRIC_MEAN_SQUARED_ERROR
					: t->data.text ? CHOIR_METRIC_MEAN
								   : CHOIR_METRIC_ACCURACY);
	t->absolute_error = choir_metric_new("absolute_error", CHOIR_METRIC_MEAN_ABSOLUTE_ERROR);
	t->r2 = choir_metric_new("r2", CHOIR_METRIC_R2);
	t->train_accuracy = choir_metric_new("train_accuracy", CHOIR_METRIC_ACCURACY);
	t->test_loss = choir_metric_new("test_loss", CHOIR_METRIC_MEAN);
	// Also without --run, so that a checkpoint fits a program with --run and one without.
	const bool confusion = !t->data.text && !train_is_regression(t) &&
			t->data.classes <= MAX_CONFUSED && t->test_examples > 0;
	if (confusion)
		t->confusion = choir_confusion_matrix_new("confusion", t->data.classes);
	if (status == CHOIR_OK &&
			(t->optimizer == NULL || t->loss == NULL || t->score == NULL ||
					t->train_accuracy == NULL || t->test_loss == NULL ||
					t->absolute_error == NULL || t->r2 == NULL || !make_each(t) ||
					(confusion && t->confusion == NULL)))
		status = choir_error_status();
	const choir_status left = choir_scope_exit(&scope);
	return status == CHOIR_OK ? left : status;
}

static choir_status make_table(training *t)
{
	if (!t->data.standardized && !t->data.gathered)
		return CHOIR_OK;
	if (t->data.standardized && t->data.moments > MAX_INPUTS)
		return choir_fail(CHOIR_UNSUPPORTED, "data \"%s\": %lld inputs; needs at most %d",
				t->given->data, (long long) t->data.moments, MAX_INPUTS);
	t->table = calloc(1, sizeof *t->table);
	if (t->table == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "data \"%s\": out of memory", t->given->data);
	CHOIR_TRY(source_describe(&t->data, t->table));
	t->table->targets = (int64_t) t->data.targets;
	for (size_t i = 0; i < t->data.targets; i++)
		t->table->name[i] = t->data.target_name[i];
	t->table->classes = t->data.targets;
	const size_t n = t->data.targets > 0 ? 0 : choir_dataset_categories(t->data.names, "label");
	for (size_t i = 0; i < n && n <= MAX_CLASS_NAMES; i++) {
		t->table->name[i] = choir_dataset_category(t->data.names, "label", (int64_t) i);
		t->table->classes = n;
	}
	return CHOIR_OK;
}

static choir_status plan_model(training *t)
{
	model_plan *plan = &t->model.plan;
	CHOIR_TRY(model_plan_set(plan, t->given->model, t->given->widths));
	t->given->size.batch_norm = strcmp(t->given->normalization, "batch") == 0;
	CHOIR_TRY(model_plan_resize(plan, &t->given->size));
	t->data.context = plan->size.context;
	if (t->given->batch == 0)
		t->given->batch = model_plan_text(plan) ? 16 : 128;
	return CHOIR_OK;
}

// Five passes over a small table are too few steps. More steps than these fit noise, and a rate
// that falls to 0 ends between the last batches.
static void plan_epochs(training *t)
{
	enum { EPOCHS = 5, STEPS = 40 };
	const int64_t steps = quotient_up(t->train_examples, t->given->batch);
	const bool small = t->data.csv && t->given->epochs == 0 && EPOCHS * steps < STEPS;
	if (t->given->epochs == 0)
		t->given->epochs = small ? quotient_up(STEPS, steps) : EPOCHS;
	if (t->given->schedule == NULL)
		t->given->schedule =
				small && t->given->warmup == 0 && !train_shards_files(t) ? "cosine" : "constant";
}

choir_status train_open_data(training *t)
{
	model_plan *plan = &t->model.plan;
	if (t->given->target != NULL)
		CHOIR_TRY(source_set_target(&t->data, t->given->target));
	t->data.task = find_task(t->given->task);
	CHOIR_TRY(table_format_set(
			&t->data.format, t->given->separator, t->given->decimal, t->given->missing_values));
	if (t->given->categorical != NULL)
		CHOIR_TRY(source_set_categorical(&t->data, t->given->categorical));
	t->data.imputes = strcmp(t->given->missing, "impute") == 0;
	t->data.max_categories = t->given->max_categories;
	t->data.image_side = t->given->image_size;
	if (strcmp(t->given->bad_rows, "skip") == 0)
		t->data.wrong = CHOIR_BAD_RECORD_SKIP;
	if (t->given->model != NULL)
		CHOIR_TRY(plan_model(t)); // text windows depend on its context
	CHOIR_TRY(train_compare_files(t));
	t->data.kept = !train_shards_files(t);
	CHOIR_TRY(source_open(&t->data, t->given->data, t->given->seed));
	if (t->given->target != NULL && !t->data.csv && !t->data.gathered)
		return choir_fail(CHOIR_INVALID,
				"--target %s: data \"%s\" has no named columns; needs other data, as csv:FILE",
				t->given->target, t->given->data);
	if (t->given->image_size != 0 && !t->data.images)
		return choir_fail(CHOIR_INVALID,
				"--image-size %lld: data \"%s\" have a fixed size; needs images:DIR",
				(long long) t->given->image_size, t->given->data);
	if (t->given->categorical != NULL && !t->data.csv)
		return choir_fail(CHOIR_INVALID, "--categorical: data \"%s\" are no table; needs csv:FILE",
				t->given->data);
	if (!t->data.csv)
		CHOIR_TRY(table_format_check(&t->data.format, t->given->data));
	if (t->data.task == TASK_REGRESSION && !t->data.csv)
		return choir_fail(CHOIR_UNSUPPORTED,
				"--task regression: data \"%s\" is no table; needs csv:FILE", t->given->data);
	if (t->given->model == NULL) {
		t->given->model = t->data.images ? "resnet18" : t->data.shape.rank == 1 ? "mlp" : "cnn";
		CHOIR_TRY(plan_model(t));
	}
	plan->image = t->data.shape;
	plan->classes = t->data.classes;
	plan->scale = t->data.scale;
	CHOIR_TRY(model_plan_check(plan));
	CHOIR_TRY(share_examples(t));
	plan_epochs(t);
	CHOIR_TRY(check_classes(t));
	CHOIR_TRY(check_fit(t));
	CHOIR_TRY(make_table(t));
	plan->table = t->table;
	return train_count_classes(t);
}

static choir_status check_save(const training *t)
{
	char directory[PATH_SIZE];
	struct stat there;
	if (t->given->save == NULL || !train_is_chief(t))
		return CHOIR_OK;
	if (stat(t->given->save, &there) == 0 && S_ISDIR(there.st_mode))
		return choir_fail(CHOIR_IO, "--save %s: is a directory; needs a file", t->given->save);
	const char *slash = strrchr(t->given->save, '/');
	if (slash == NULL)
		snprintf(directory, sizeof directory, ".");
	else
		snprintf(directory, sizeof directory, "%.*s", (int) (slash - t->given->save + 1),
				t->given->save);
	if (access(directory, W_OK | X_OK) == 0)
		return CHOIR_OK;
	return choir_fail(
			CHOIR_IO, "--save %s: directory %s: %s", t->given->save, directory, strerror(errno));
}

static choir_status write_metadata(training *t)
{
	static char text[METADATA_SIZE];
	t->metadata = text;
	if (model_plan_write(&t->model.plan, text) ||
			(t->given->save == NULL && t->given->checkpoint == NULL))
		return CHOIR_OK;
	return choir_fail(CHOIR_UNSUPPORTED,
			"data \"%s\": the metadata of %lld inputs and "
			"%lld classes is too long; needs at most %d bytes",
			t->given->data, (long long) choir_shape_elements(&t->data.shape),
			(long long) t->data.classes, METADATA_SIZE - 1);
}

choir_status train_make(training *t)
{
	if (t->given->init_map != NULL && t->given->init == NULL)
		return choir_fail(CHOIR_INVALID, "--init-map %s: no weights to map; needs --init FILE",
				t->given->init_map);
	if (t->given->schedule != NULL && strcmp(t->given->schedule, "cosine") == 0 &&
			train_is_one_of_many(t) && train_shards_files(t))
		return choir_fail(CHOIR_UNSUPPORTED,
				"--schedule cosine: the epoch length is unknown with --auto-shard %s; needs "
				"--auto-shard data or off",
				t->given->auto_shard);
	CHOIR_TRY(check_save(t));
	CHOIR_TRY(check_decay(t));
	CHOIR_TRY(train_open_data(t));
	const choir_strategy_options o = train_strategy_options(t);
	t->strategy = choir_strategy_new(train_strategy(t), &o);
	if (t->strategy == NULL)
		return choir_error_status();
	return t->task == NULL ? train_make_parts(t) : train_coordinate(t);
}

choir_strategy_options train_strategy_options(const training *t)
{
	return (choir_strategy_options){ .size = sizeof(choir_strategy_options),
		.devices = t->given->devices,
		.replicas = (int) t->given->replicas,
		.seed = t->given->seed,
		.parameter_devices = t->given->parameter_devices,
		.workers = (int) t->given->workers,
		.cluster = train_is_one_of_many(t) ? t->cluster : NULL,
		.cores_per_device = (int) t->given->cores,
		.locked_updates = t->given->lock_free ? CHOIR_OFF : CHOIR_DEFAULT,
		.precision = precision_of(t->given->precision),
		.wire = wire_of(t->given->wire) };
}

choir_status train_make_parts(training *t)
{
	CHOIR_TRY(precision_report("choir train", t->given->precision, t->strategy));
	if (t->given->verbose && !t->given->json)
		precision_print_rules(t->strategy);
	const choir_precision taken = choir_strategy_precision(t->strategy);
	t->given->precision =
			taken == CHOIR_PRECISION_F32 ? NULL : choir_precision_name(taken); // of auto
	CHOIR_TRY(check_memory(t));
	CHOIR_TRY(train_make_input(t));
	CHOIR_TRY(write_metadata(t));
	CHOIR_TRY(make_model(t));
	CHOIR_TRY(check_freeze(t));
	return t->given->init == NULL
			? train_start_linear(t)
			: init_weights(t->strategy, t->given->init, t->given->init_map, t->given->json);
}

void train_free(training *t)
{
	if (t->share != NULL)
		choir_values_free(t->share[0].batch);
	if (t->run != NULL) // the training has failed
		fclose(t->run);
	free(t->share);
	choir_checkpoint_manager_free(t->checkpoints);
	train_close_job(t);
	choir_strategy_free(t->strategy);
	choir_task_free(t->task);
	source_close(&t->data);
	free(t->table);
	free(t->class_weights);
	breakdown_free(&t->breakdown);
}
