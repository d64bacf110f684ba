// The workers' shares of the training examples, and the held-out test examples.
#include "output.h"
#include "data/text_data.h"
#include "train/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// In a fixed order, so that each pass holds out the same.
static choir_dataset *ordered(const training *t)
{
	choir_dataset *d = source_examples(&t->data);
	return t->data.mixed ? choir_dataset_shuffle_once(d, t->data.examples, t->given->seed) : d;
}

static choir_dataset *standardized(const training *t, choir_dataset *d)
{
	const table_plan *p = t->table;
	if (train_is_regression(t))
		d = choir_dataset_standardize(
				d, "label", t->data.targets, p->target_mean, p->target_deviation);
	if (!t->data.standardized)
		return d;
	if (t->data.imputes)
		d = choir_dataset_fill_nan(d, "image", (size_t) p->inputs, p->mean);
	return choir_dataset_standardize(d, "image", (size_t) p->inputs, p->mean, p->deviation);
}

const char *const train_shards[] = { "data", "off", "auto", "file", NULL };

// text NULL: without --show-split.
static void print_split(const choir_distributed_dataset *examples, const char *text)
{
	json_begin_event("split");
	json_text("auto_shard", train_shards[choir_distributed_dataset_auto_shard(examples)]);
	json_integer("fell_back", choir_distributed_dataset_fell_back(examples));
	if (text != NULL)
		json_text("text", text);
	json_end();
}

// Always prints if a policy fell back to another.
choir_status train_show_split(const training *t, int worker)
{
	const int64_t workers = choir_strategy_workers(t->strategy);
	const choir_distributed_dataset *examples = t->share[worker].examples;
	const bool fell_back = choir_distributed_dataset_fell_back(examples);
	if (fell_back && !t->given->json)
		printf("no files to divide: every worker reads all examples\n");
	if (t->given->json && worker > 0)
		return CHOIR_OK;
	if (!t->given->show_split) {
		if (fell_back && t->given->json)
			print_split(examples, NULL);
		return CHOIR_OK;
	}
	const size_t length = choir_distributed_dataset_describe(examples, NULL, 0);
	char *text = malloc(length + 1);
	if (text == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "--show-split: out of memory");
	choir_distributed_dataset_describe(examples, text, length + 1);
	if (t->given->json)
		print_split(examples, text);
	else if (workers > 1)
		printf("worker %d takes one of every %lld examples, "
			   "beginning with example %d; of these:\n%s",
				worker, (long long) workers, worker, text);
	else
		printf("%s", text);
	free(text);
	return CHOIR_OK;
}

// A text has other windows in each pass.
choir_dataset *train_examples(const training *t)
{
	if (t->data.text)
		return text_training(&t->data, t->train_examples);
	return standardized(t, choir_dataset_take(ordered(t), t->train_examples));
}

// Behind the shuffle: the random numbers of an example depend on its position in the epoch.
static choir_dataset *augmented(const training *t, choir_dataset *d)
{
	enum { SHIFTS = 8 };
	const char *how = t->given->augment;
	const bool both = strcmp(how, "both") == 0;
	if (strcmp(how, "none") == 0)
		return d;
	return choir_dataset_augment_images(d, t->data.input,
			CHOIR_OPTIONS(choir_augment_options,
					.padding =
							both || strcmp(how, "crop") == 0 ? t->data.shape.dim[0] / SHIFTS : 0,
					.flip = both || strcmp(how, "flip") == 0, .seed = t->given->seed));
}

static choir_auto_shard policy(const training *t)
{
	int i = 0;
	while (strcmp(train_shards[i], t->given->auto_shard) != 0)
		i++;
	return (choir_auto_shard) i;
}

bool train_shards_files(const training *t)
{
	return policy(t) == CHOIR_AUTO_SHARD_AUTO || policy(t) == CHOIR_AUTO_SHARD_FILE;
}

choir_status train_open_share(training *t, choir_strategy *group, int worker)
{
	const int64_t workers = choir_strategy_workers(group);
	choir_dataset *d = train_examples(t);
	if (workers > 1)
		d = choir_dataset_shard(d, workers, worker);
	if (t->data.standardized && !t->data.images)
		d = choir_dataset_cache(d, NULL);
	if (!t->data.text)
		d = augmented(t, choir_dataset_shuffle(d, t->train_examples, t->given->seed));
	d = choir_dataset_batch(d, t->given->batch);
	t->share[worker].examples = choir_strategy_distribute_dataset(group, d,
			CHOIR_OPTIONS(choir_input_options, .read_ahead_steps = 1, .start_reading_now = true,
					.auto_shard = policy(t)));
	return t->share[worker].examples == NULL ? choir_error_status() : CHOIR_OK;
}

// To decode all images only for the moments of their channels would take as long as an epoch.
static int64_t measured_examples(const training *t)
{
	enum { MAX_IMAGES = 1024 };
	return t->data.images && t->train_examples > MAX_IMAGES ? MAX_IMAGES : t->train_examples;
}

static choir_status measure(training *t)
{
	table_plan *p = t->table;
	p->inputs = t->data.moments;
	choir_dataset *d = choir_dataset_take(ordered(t), measured_examples(t));
	choir_status status = d == NULL
			? choir_error_status()
			: choir_dataset_moments(d, "image", (size_t) p->inputs, p->mean, p->deviation);
	choir_dataset_free(d);
	source_keep_one_hot(&t->data, p->mean, p->deviation);
	if (status != CHOIR_OK || !train_is_regression(t))
		return status;
	d = choir_dataset_take(ordered(t), t->train_examples);
	status = d == NULL ? choir_error_status()
					   : choir_dataset_moments(
								 d, "label", t->data.targets, p->target_mean, p->target_deviation);
	choir_dataset_free(d);
	return status;
}

// The weights of classes before they are inverted: their numbers of training examples.
static choir_status count_classes(source *s, choir_values *batch)
{
	const choir_tensor *labels = source_column(batch, s->label);
	if (labels == NULL)
		return choir_error_status();
	for (int64_t i = 0; i < choir_tensor_shape(labels)->dim[0]; i++)
		s->counts[source_label(labels, i)]++;
	return CHOIR_OK;
}

// Takes d over. The caller frees s->counts.
static choir_status count(source *s, choir_dataset *d)
{
	enum { COUNTED_AT_ONCE = 1024 };
	s->counts = calloc((size_t) s->classes, sizeof *s->counts);
	if (s->counts == NULL) {
		choir_dataset_free(d);
		return choir_fail(CHOIR_NO_MEMORY, "data \"%s\": no memory for %lld classes", s->name,
				(long long) s->classes);
	}
	const int64_t dropped = s->dropped, skipped = s->skipped; // of the files
	const choir_status status =
			source_inspect(s, choir_dataset_batch(d, COUNTED_AT_ONCE), true, count_classes);
	s->dropped = dropped;
	s->skipped = skipped;
	return status == CHOIR_END ? CHOIR_OK : status;
}

// scikit-learn's "balanced": King and Zeng, Logistic regression in rare events data, 2001. A class
// without an example has weight 0.
static choir_status balance_classes(training *t)
{
	source *s = &t->data;
	const int64_t classes = s->classes;
	if (s->text || s->targets > 0)
		return choir_fail(CHOIR_INVALID,
				"--class-weights balanced: data \"%s\" have no classes; needs a classification",
				s->name);
	t->class_weights = calloc((size_t) classes, sizeof *t->class_weights);
	if (t->class_weights == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "--class-weights: no memory for %lld classes",
				(long long) classes);
	const choir_status status = count(s, choir_dataset_take(ordered(t), t->train_examples));
	for (int64_t i = 0; s->counts != NULL && i < classes; i++)
		if (s->counts[i] > 0)
			t->class_weights[i] = (float) ((double) t->train_examples /
					((double) classes * (double) s->counts[i]));
	free(s->counts);
	s->counts = NULL;
	return status;
}

// What a model without inputs would reach.
static choir_status find_majority(training *t)
{
	source *s = &t->data;
	int64_t max = 0;
	if (!s->csv || s->targets > 0 || t->test_examples == 0)
		return CHOIR_OK;
	choir_dataset *d = choir_dataset_skip(ordered(t), t->train_examples);
	const choir_status status = count(s, d);
	for (int64_t i = 0; s->counts != NULL && i < s->classes; i++)
		max = s->counts[i] > max ? s->counts[i] : max;
	t->majority = (double) max / (double) t->test_examples;
	free(s->counts);
	s->counts = NULL;
	return status;
}

choir_status train_count_classes(training *t)
{
	if (strcmp(t->given->class_weights, "balanced") == 0)
		CHOIR_TRY(balance_classes(t));
	return find_majority(t);
}

static choir_status open_test(training *t)
{
	if (t->test_examples == 0)
		return CHOIR_OK;
	choir_dataset *d = standardized(t, choir_dataset_skip(ordered(t), t->train_examples));
	t->test = choir_strategy_distribute_dataset(
			t->strategy, choir_dataset_batch(d, t->given->batch), NULL);
	return t->test == NULL ? choir_error_status() : CHOIR_OK;
}

// Several workers, and those of a job, open their shares themselves.
choir_status train_make_input(training *t)
{
	if (t->data.standardized)
		CHOIR_TRY(measure(t));
	t->share = calloc((size_t) choir_strategy_workers(t->strategy), sizeof *t->share);
	if (t->share == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "--workers: no memory for the shares of %d workers",
				choir_strategy_workers(t->strategy));
	CHOIR_TRY(open_test(t));
	const bool later = choir_strategy_workers(t->strategy) > 1 || t->task != NULL;
	return later ? CHOIR_OK : train_open_share(t, t->strategy, 0);
}
