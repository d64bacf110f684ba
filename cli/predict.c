// choir predict: rebuilds a model from its weights file and classifies data.
#include "commands.h"
#include "model/model.h"
#include "number.h"
#include "predict_rows.h"
#include "precision_option.h"
#include "command_options.h"
#include "output.h"
#include "data/image_data.h"
#include "data/training_data.h"
#include "standard_input.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	const char *data, *devices, *bad_rows, *precision;
	int64_t batch, replicas, skip, limit;
	uint64_t seed;
	bool scores, probabilities, json;
} given = { .batch = 256, .seed = 1, .bad_rows = "error", .precision = "f32" };
static const char *const bad_rows[] = { "error", "skip", NULL };

static const option options[] = {
	{ "--data", "DATA", OPTION_TEXT, &given.data, .help = data_learn_help },
	{ "--bad-rows", "POLICY", OPTION_CHOICE, &given.bad_rows,
			.help = "policy for rows that cannot be read, have a category that\n"
					"the training did not have, or whose scores are not finite:\n"
					"error, or skip and count (error)",
			.choices = bad_rows },
	{ "--skip", "N", OPTION_INTEGER, &given.skip, .help = "skip the first N examples (0)" },
	{ "--limit", "N", OPTION_INTEGER, &given.limit, .help = "classify at most N examples (all)",
			.min = 1 },
	{ "--batch", "G", OPTION_INTEGER, &given.batch, .help = "examples per batch (256)", .min = 1,
			.max = 1 << 24 },
	{ "--replicas", "R", OPTION_INTEGER, &given.replicas, .help = replicas_help, .min = 1,
			.max = 1 << 16 },
	{ "--devices", "LIST", OPTION_TEXT, &given.devices, .help = devices_help },
	{ "--precision", "NAME", OPTION_CHOICE, &given.precision, .help = precision_help,
			.choices = precision_names },
	{ "--seed", "S", OPTION_SEED, &given.seed, .help = "seed of synthetic data (1)" },
	{ "--scores", NULL, OPTION_FLAG, &given.scores,
			.help = "also print the score of each class, before softmax" },
	{ "--probabilities", NULL, OPTION_FLAG, &given.probabilities,
			.help = "also print the probability of each class" },
	{ "--json", NULL, OPTION_FLAG, &given.json, .help = json_help },
};
static const command self = {
	.name = "choir predict",
	.operands = "FILE",
	.about =
			"Classifies data with a model that choir train --save wrote.\n\n"
			"It prints one line per example: the example's number, the class and, if there are\n"
			"labels, the label. The last line has the accuracy, or the bits per byte. An example\n"
			"of text:FILE is a window as long as the model's context; its class is the next "
			"byte.\n\n"
			"For csv:FILE the lines are CSV with a header: the row's number in the file, from 1\n"
			"without the header, the name of the class and, if there are labels, the label.\n"
			"Error messages and --json count rows in the same way. The accuracy goes to standard\n"
			"error. Columns are found by their names, in any order, and labels are not needed:\n"
			"the accuracy is that of the rows with a label of the training.\n"
			"--data - reads CSV from standard input. For images:DIR the lines are CSV, too: the\n"
			"file, the name of the class and, if DIR has a directory for each class, the label.",
	.examples = { "choir predict digits.safetensors --data mnist --limit 20 --json",
			"choir predict rows.safetensors --data - --probabilities < rows.csv > classes.csv" },
	.n = sizeof options / sizeof options[0],
	.options = options,
};

typedef struct {
	const char *path;
	char found[WEIGHTS_PATH]; // if path is a directory
	char spooled[SPOOL_PATH], name[SPOOL_PATH + 8]; // data of standard input
	input_columns inputs;
	source data;
	table_plan table;
	model model;
	float *probabilities; // of an example; NULL: not wanted
	choir_metric *loss; // of text
	choir_metric *mse, *mae, *r2; // of a regression
	choir_metric *auc; // of two classes; else NULL
	choir_strategy *strategy;
	choir_distributed_dataset *input;
	choir_values *batch, *result;
	int64_t seen, examples; // with a prediction
	int64_t known, right; // with a label
} prediction;

static bool regression(const prediction *p)
{
	return model_plan_regression(&p->model.plan);
}

// Tables and images get CSV with a header; the accuracy then goes to standard error.
static bool prints_csv(const prediction *p)
{
	return p->data.csv || p->data.images;
}

// Unknown labels are NaN, and their rows have no weight. R2 is as in choir train.
static choir_status predict_numbers(
		choir_replica *r, const prediction *p, choir_tensor *standardized)
{
	choir_tensor *found = model_numbers(&p->model, standardized);
	if (p->data.labelled && found != NULL) {
		const choir_shape shape = *choir_tensor_shape(found);
		choir_tensor *meant = choir_reshape(choir_replica_arg(r, p->data.label), shape);
		choir_tensor *known = choir_is_finite(choir_subtract(found, meant));
		choir_tensor *weights = choir_min(choir_cast(known, CHOIR_F32), CHOIR_AXIS(1));
		weights = choir_reshape(weights, CHOIR_SHAPE(shape.dim[0], 1));
		choir_tensor *zero = choir_number(r->frame, 0);
		choir_tensor *is = choir_where(known, found, zero);
		meant = choir_where(known, meant, zero);
		CHOIR_TRY(choir_metric_update_weighted(p->mse, meant, is, weights));
		CHOIR_TRY(choir_metric_update_weighted(p->mae, meant, is, weights));
		CHOIR_TRY(choir_metric_update_weighted(p->r2, model_standardized(&p->model, meant),
				choir_where(known, standardized, zero), weights));
	}
	return choir_replica_return(r, "class", found);
}

static choir_status classify(choir_replica *r, void *user)
{
	const prediction *p = user;
	choir_tensor *scores = model_apply(&p->model, choir_replica_arg(r, p->data.input));
	scores = choir_cast(scores, CHOIR_F32);
	if (p->data.text) {
		choir_tensor *labels = choir_replica_arg(r, p->data.label);
		CHOIR_TRY(choir_metric_update(p->loss, model_losses(&p->model, labels, scores), NULL));
		scores = choir_slice(scores, 1, p->data.context - 1, 1);
	}
	if (regression(p))
		return predict_numbers(r, p, scores);
	if (p->auc != NULL)
		CHOIR_TRY(predict_count_auc(p->auc, choir_replica_arg(r, p->data.label), scores));
	CHOIR_TRY(choir_replica_return(r, "scores", scores));
	return choir_replica_return(r, "class", choir_argmax(scores, -1));
}

typedef struct {
	int64_t number, class, label;
	bool known; // the label
	const float *scores; // or NULL
} answer;

// The name of a class; its number if it has none.
static const char *class_name(const prediction *p, int64_t class, char number[24])
{
	if (class >= 0 && (size_t) class < p->table.classes)
		return p->table.name[class];
	snprintf(number, 24, "%lld", (long long) class);
	return number;
}

// A field of a CSV file, in quotes if it needs them (RFC 4180).
static void print_field(const char *before, const char *text)
{
	fputs(before, stdout);
	if (text[strcspn(text, ",\"\r\n")] == '\0') {
		fputs(text, stdout);
		return;
	}
	putchar('"');
	for (; *text != '\0'; text++) {
		if (*text == '"')
			putchar('"');
		putchar(*text);
	}
	putchar('"');
}

// row,A,B and, with labels, label A,label B
static void print_header_of_numbers(const prediction *p)
{
	char name[2 * CLEAN_TEXT];
	fputs("row", stdout);
	for (size_t i = 0; i < p->table.classes; i++)
		print_field(",", p->table.name[i]);
	for (size_t i = 0; p->data.labelled && i < p->table.classes; i++) {
		snprintf(name, sizeof name, "label %s", p->table.name[i]);
		print_field(",", name);
	}
	putchar('\n');
}

static void print_header(const prediction *p)
{
	const char *what = given.probabilities ? ",probability " : ",score ";
	char number[24];
	if (given.json || !prints_csv(p))
		return;
	if (regression(p)) {
		print_header_of_numbers(p);
		return;
	}
	printf("%s,class%s", p->data.images ? "file" : "row", p->data.labelled ? ",label" : "");
	for (int64_t i = 0; (given.scores || given.probabilities) && i < p->model.plan.classes; i++) {
		char name[2 * CLEAN_TEXT];
		snprintf(name, sizeof name, "%s%s", what + 1, class_name(p, i, number));
		print_field(",", name);
	}
	putchar('\n');
}

// As error messages count rows.
static int64_t row_of(int64_t example)
{
	return example + 1;
}

static void print_row(const prediction *p, const answer *a)
{
	char number[24];
	if (p->data.images)
		print_field("", image_path(&p->data, a->number));
	else
		printf("%lld", (long long) row_of(a->number));
	print_field(",", class_name(p, a->class, number));
	if (p->data.labelled)
		print_field(",", a->known ? class_name(p, a->label, number) : "");
	for (int64_t i = 0; a->scores != NULL && i < p->model.plan.classes; i++)
		printf(",%.9g", (double) a->scores[i]);
	putchar('\n');
}

static void print_object(const prediction *p, const answer *a)
{
	char number[24];
	json_begin_event("prediction");
	json_integer("example", a->number);
	if (p->data.csv)
		json_integer("row", row_of(a->number));
	if (p->data.images)
		json_text("file", image_path(&p->data, a->number));
	json_integer("class", a->class);
	if (p->table.classes != 0)
		json_text("class_name", class_name(p, a->class, number));
	if (a->known)
		json_integer("label", a->label);
	if (a->known && p->table.classes != 0)
		json_text("label_name", class_name(p, a->label, number));
	if (a->scores != NULL)
		json_floats(given.probabilities ? "probabilities" : "scores",
				(size_t) p->model.plan.classes, a->scores);
	json_end();
}

static void print_one(const prediction *p, const answer *a)
{
	const size_t classes = (size_t) p->model.plan.classes;
	if (given.json) {
		print_object(p, a);
		return;
	}
	if (prints_csv(p)) {
		print_row(p, a);
		return;
	}
	printf("%lld %lld", (long long) a->number, (long long) a->class);
	if (p->data.labelled)
		printf(" %lld", (long long) a->label);
	for (size_t i = 0; a->scores != NULL && i < classes; i++)
		printf(" %.9g", (double) a->scores[i]);
	putchar('\n');
}

static void print_numbers(
		const prediction *p, int64_t example, const float *found, const float *meant)
{
	const size_t n = (size_t) p->model.plan.classes;
	if (given.json) {
		json_begin_event("prediction");
		json_integer("example", example);
		json_integer("row", row_of(example));
		json_floats("numbers", n, found);
		if (meant != NULL)
			json_floats("labels", n, meant);
		json_end();
		return;
	}
	printf("%lld", (long long) row_of(example));
	for (size_t i = 0; i < n; i++)
		printf(",%.9g", (double) found[i]);
	for (size_t i = 0; meant != NULL && i < n; i++)
		if (isnan(meant[i]))
			putchar(',');
		else
			printf(",%.9g", (double) meant[i]);
	putchar('\n');
}

// A row with scores that are not finite is bad. standardized: its inputs in a table, or NULL.
static choir_status pass_bad_row(prediction *p, int64_t number, const float *standardized)
{
	char example[64];
	if (p->data.wrong == CHOIR_BAD_RECORD_SKIP) {
		p->data.skipped++;
		return CHOIR_OK;
	}
	snprintf(example, sizeof example, "%s %lld", p->data.csv ? "row" : "example",
			(long long) (p->data.csv ? row_of(number) : number));
	return predict_explain_scores(given.data, example, &p->table, &p->inputs, standardized);
}

// The part of a batch that a replica has. Its arrays have rows of the model's classes.
typedef struct {
	int64_t n;
	const choir_tensor *labels, *rows; // or NULL
	const int64_t *class; // NULL: a regression, whose numbers are the scores
	const float *scores, *numbers; // numbers: labels of a regression
	const float *inputs; // of a table, or NULL
} part;

static const void *data_of(const choir_tensor *t)
{
	return t == NULL || choir_shape_elements(choir_tensor_shape(t)) == 0 ? NULL
																		 : choir_tensor_data(t);
}

// False: the run has failed.
static bool find_part(const prediction *p, int r, part *to)
{
	const bool numbers = regression(p), labelled = p->data.labelled;
	const choir_tensor *class = choir_value_local(choir_values_find(p->result, "class"), r);
	const choir_tensor *score =
			numbers ? class : choir_value_local(choir_values_find(p->result, "scores"), r);
	const choir_tensor *label =
			labelled ? choir_value_local(choir_values_find(p->batch, p->data.label), r) : NULL;
	const choir_tensor *row =
			p->data.csv ? choir_value_local(choir_values_find(p->batch, "row"), r) : NULL;
	const choir_tensor *input =
			p->data.csv ? choir_value_local(choir_values_find(p->batch, p->data.input), r) : NULL;
	*to = (part){ .labels = label, .rows = row };
	if (class == NULL || score == NULL || (labelled && label == NULL) ||
			(p->data.csv && (row == NULL || input == NULL)))
		return false;
	to->n = choir_tensor_shape(class)->dim[0];
	to->class = numbers ? NULL : data_of(class);
	to->scores = data_of(score);
	to->numbers = numbers ? data_of(label) : NULL;
	to->inputs = data_of(input);
	return true;
}

static void print_answer(prediction *p, const part *of, int64_t i, int64_t number)
{
	const int64_t classes = p->model.plan.classes, places = p->data.text ? p->data.context : 1;
	answer a = { .number = number,
		.class = of->class[i],
		.label = of->labels == NULL ? 0 : source_label(of->labels, (i + 1) * places - 1),
		.scores = given.scores ? of->scores + i * classes : p->probabilities };
	if (given.probabilities)
		predict_softmax(classes, of->scores + i * classes, p->probabilities);
	a.known = p->data.labelled && (!p->data.csv || (a.label >= 0 && a.label < classes));
	print_one(p, &a);
	p->known += a.known;
	p->right += a.known && a.class == a.label;
}

static choir_status print_part(prediction *p, const part *of)
{
	const int64_t width = p->model.plan.classes;
	for (int64_t i = 0; i < of->n; i++) {
		const float *scores = of->scores + i * width;
		const int64_t number = of->rows == NULL ? given.skip + p->seen : source_label(of->rows, i);
		p->seen++;
		if (!all_finite(scores, width)) {
			CHOIR_TRY(pass_bad_row(
					p, number, of->inputs == NULL ? NULL : of->inputs + i * p->table.inputs));
			continue;
		}
		p->examples++;
		if (of->class != NULL) {
			print_answer(p, of, i, number);
			continue;
		}
		const float *meant = of->numbers == NULL ? NULL : of->numbers + i * width;
		print_numbers(p, number, scores, meant);
		p->known += meant != NULL && all_finite(meant, width);
	}
	return CHOIR_OK;
}

static choir_status print_batch(prediction *p)
{
	part of;
	const int n = choir_value_local_count(choir_values_find(p->result, "class"));
	for (int r = 0; r < n; r++) {
		if (!find_part(p, r, &of))
			return choir_error_status();
		CHOIR_TRY(print_part(p, &of));
	}
	return CHOIR_OK;
}

static choir_status check_input(const model_plan *plan, const source *data)
{
	const choir_shape *want = &plan->image, *have = &data->shape;
	if (model_plan_text(plan) != data->text)
		return choir_fail(CHOIR_INVALID, "data \"%s\": does not fit the model, a %s; needs %s",
				given.data, plan->kind, data->text ? "images or numbers" : "text:FILE");
	bool same = want->rank == have->rank;
	for (int i = 0; same && i < want->rank; i++)
		same = want->dim[i] == have->dim[i];
	if (same)
		return data->csv && data->given_inputs != 0
				? CHOIR_OK
				: predict_check_columns(given.data, plan->table, data);
	char is[SHAPE_TEXT], needed[SHAPE_TEXT];
	return choir_fail(CHOIR_INVALID, "data \"%s\": examples are %s; the model needs %s",
			given.data, shape_text(have, is), shape_text(want, needed));
}

static choir_status make_input(prediction *p)
{
	const table_plan *t = &p->table;
	choir_dataset *d = choir_dataset_skip(source_examples(&p->data), given.skip);
	if (t->inputs != 0 && t->imputes)
		d = choir_dataset_fill_nan(d, "image", (size_t) t->inputs, t->mean);
	if (t->inputs != 0)
		d = choir_dataset_standardize(d, "image", (size_t) t->inputs, t->mean, t->deviation);
	if (given.limit != 0)
		d = choir_dataset_take(d, given.limit);
	p->input = choir_strategy_distribute_dataset(
			p->strategy, choir_dataset_batch(d, given.batch), NULL);
	return p->input == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_status make_loss(prediction *p)
{
	choir_scope scope;
	CHOIR_TRY(choir_scope_enter(&scope, p->strategy));
	p->loss = choir_metric_new("loss", CHOIR_METRIC_MEAN);
	p->mse = choir_metric_new("mse", CHOIR_METRIC_MEAN_SQUARED_ERROR);
	p->mae = choir_metric_new("mae", CHOIR_METRIC_MEAN_ABSOLUTE_ERROR);
	p->r2 = choir_metric_new("r2", CHOIR_METRIC_R2);
	if (p->data.labelled && p->model.plan.classes == 2 && !regression(p))
		p->auc = choir_auc_new("auc", AUC_THRESHOLDS);
	const bool made = p->loss != NULL && p->mse != NULL && p->mae != NULL && p->r2 != NULL;
	const choir_status status = made ? CHOIR_OK : choir_error_status();
	CHOIR_TRY(choir_scope_exit(&scope));
	return status;
}

static choir_status prepare(prediction *p)
{
	model_plan plan = { .table = &p->table };
	CHOIR_TRY(model_find_weights(&p->path, p->found));
	CHOIR_TRY(model_plan_read(&plan, p->path));
	p->data.context = plan.size.context;
	p->data.wanted = plan.image;
	snprintf(p->data.target, sizeof p->data.target, "%s", p->table.target);
	p->data.format = p->table.format;
	p->data.given_classes = p->table.classes;
	p->data.given_class = p->table.name;
	p->data.task = TASK_CLASSIFICATION;
	if (model_plan_regression(&plan)) {
		if (given.scores || given.probabilities)
			return choir_fail(CHOIR_INVALID,
					"%s: is a regression, without classes; needs neither --scores nor "
					"--probabilities",
					p->path);
		CHOIR_TRY(source_set_regression(&p->data));
		p->data.given_classes = 0;
	}
	CHOIR_TRY(table_plan_inputs(&p->table, p->path, &p->inputs));
	p->data.given_inputs = p->inputs.n;
	p->data.given_input = p->inputs.column;
	p->data.imputes = p->table.imputes;
	p->data.wrong =
			strcmp(given.bad_rows, "skip") == 0 ? CHOIR_BAD_RECORD_SKIP : CHOIR_BAD_RECORD_ERROR;
	p->data.optional_labels = true;
	p->data.numbered = true; // to join predictions to the rows of the file
	if (strcmp(given.data, "-") == 0 || strcmp(given.data, "csv:-") == 0) {
		CHOIR_TRY(spool_input(p->spooled));
		snprintf(p->name, sizeof p->name, "csv:%s", p->spooled);
		given.data = p->name;
	}
	const choir_status opened = source_open(&p->data, given.data, given.seed);
	if (opened != CHOIR_OK && p->data.given_inputs != 0 && p->data.dropped > 0 &&
			p->data.examples == 0)
		return predict_explain_dropped(&p->data, given.seed);
	CHOIR_TRY(opened);
	if (model_plan_regression(&plan) && !p->data.csv)
		return choir_fail(CHOIR_UNSUPPORTED,
				"data \"%s\": is no table, which a regression needs; needs csv:FILE", given.data);
	CHOIR_TRY(check_input(&plan, &p->data));
	p->data.scale = plan.scale;
	p->strategy = choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .devices = given.devices,
					.replicas = (int) given.replicas, .precision = precision_of(given.precision)));
	if (p->strategy == NULL)
		return choir_error_status();
	CHOIR_TRY(precision_report(self.name, given.precision, p->strategy));
	CHOIR_TRY(make_input(p));
	p->probabilities =
			given.probabilities ? calloc((size_t) plan.classes, sizeof *p->probabilities) : NULL;
	if (given.probabilities && p->probabilities == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "--probabilities: no memory for %lld classes",
				(long long) plan.classes);
	CHOIR_TRY(model_load(&p->model, p->strategy, &plan, p->path));
	return make_loss(p);
}

static choir_status predict(prediction *p)
{
	choir_status status;
	CHOIR_TRY(prepare(p));
	print_header(p);
	while ((status = choir_distributed_dataset_next(p->input, &p->batch)) == CHOIR_OK) {
		CHOIR_TRY(choir_strategy_run(p->strategy, classify, p, p->batch, &p->result));
		CHOIR_TRY(print_batch(p));
	}
	return status == CHOIR_END ? CHOIR_OK : status;
}

static void print_json_end(const prediction *p)
{
	json_begin_event("end");
	json_integer("examples", p->examples);
	if (p->data.labelled && p->known < p->examples)
		json_integer("known_labels", p->known);
	if (p->data.labelled && regression(p)) {
		json_number("mean_squared_error", choir_metric_result(p->mse));
		json_number("mean_absolute_error", choir_metric_result(p->mae));
		json_number("r2", choir_metric_result(p->r2));
	} else if (p->data.labelled)
		json_number("accuracy", (double) p->right / (double) p->known);
	if (p->auc != NULL)
		json_number("auc", choir_metric_result(p->auc));
	if (p->data.text)
		json_number("bits_per_byte", choir_metric_result(p->loss) / log(2)); // from nats
	if (prints_csv(p)) {
		json_integer("dropped", p->data.dropped);
		json_integer("skipped", p->data.skipped);
	}
	json_end();
}

static void print_end(const prediction *p)
{
	FILE *to = prints_csv(p) ? stderr : stdout; // the lines before are a table
	const double accuracy = (double) p->right / (double) p->known;
	if (p->data.text && p->examples > 0)
		fprintf(to, "accuracy %.2f %% on %lld bytes; %.4f bits per byte\n", 100 * accuracy,
				(long long) p->examples, choir_metric_result(p->loss) / log(2));
	else if (p->known > 0 && regression(p))
		fprintf(to, "MSE %.6g, MAE %.6g, R2 %.4f on %lld examples\n", choir_metric_result(p->mse),
				choir_metric_result(p->mae), choir_metric_result(p->r2), (long long) p->known);
	else if (p->known > 0)
		fprintf(to, "accuracy %.2f %% on %lld examples\n", 100 * accuracy, (long long) p->known);
	else
		fprintf(to, "%lld examples\n", (long long) p->examples);
	if (p->auc != NULL && p->known > 0)
		fprintf(to, "AUC %.4f\n", choir_metric_result(p->auc));
	if (p->data.labelled && p->known < p->examples)
		fprintf(to, "%lld of %lld examples have no known label\n",
				(long long) (p->examples - p->known), (long long) p->examples);
	if (p->data.dropped != 0)
		fprintf(to, "%lld row%s a missing value and %s skipped: no prediction\n",
				(long long) p->data.dropped, p->data.dropped == 1 ? " has" : "s have",
				p->data.dropped == 1 ? "was" : "were");
	if (p->data.skipped != 0)
		fprintf(to, "%lld bad %s%s skipped: no prediction\n", (long long) p->data.skipped,
				p->data.images ? "image" : "row", p->data.skipped == 1 ? " was" : "s were");
}

int predict_main(int argc, char **argv)
{
	static prediction p;
	options_read(&self, argc, argv, &p.path);
	if (given.data == NULL)
		return wrong_use(&self, "no data; needs --data DATA (mnist, csv:FILE, ...)");
	if (given.scores && given.probabilities)
		return wrong_use(&self, "--scores and --probabilities; needs one of them");
	choir_logger_set(CHOIR_LOG_WARNING, predict_print_warning, NULL);
	const choir_status status = predict(&p);
	const int code = status == CHOIR_OK ? EXIT_OK : failed(&self);
	if (status == CHOIR_OK && given.json)
		print_json_end(&p);
	else if (status == CHOIR_OK)
		print_end(&p);
	choir_values_free(p.batch);
	choir_values_free(p.result);
	choir_strategy_free(p.strategy);
	source_close(&p.data);
	spool_remove(p.spooled);
	free(p.probabilities);
	return code;
}
