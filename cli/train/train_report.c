// Prints progress and results of a training: lines for people, or JSON objects.
#include "data/table_check.h"
#include "output.h"
#include "train/train_summary.h"
#include "train/train.h"

#include <math.h>
#include <stdio.h>

static const double SHOW_SECONDS = 0.1;

double train_rate(const training *t, int64_t done)
{
	return (double) (done - t->earlier) / (now() - t->since);
}

static void print_left(double seconds, char text[32])
{
	if (seconds >= 2)
		snprintf(text, 32, "  %.0f s left", seconds);
}

void train_show_progress(training *t, int64_t done)
{
	if (t->given->json || !progress_on() || now() - t->shown < SHOW_SECONDS)
		return;
	t->shown = now();
	const int64_t of_all = done * choir_strategy_workers(t->strategy);
	const int64_t so_far = of_all < t->train_examples ? of_all : t->train_examples;
	const double rate = train_rate(t, so_far);
	const int64_t left =
			t->train_examples - so_far + (t->given->epochs - t->epochs) * t->train_examples;
	char left_text[32] = "", loss[32] = ""; // the loss of several workers is a collective
	if (!train_is_one_of_many(t))
		snprintf(loss, sizeof loss, "  loss %.4f", choir_metric_result(t->loss));
	print_left((double) left / rate, left_text);
	progress("epoch %lld/%lld  %lld/%lld  %.0f examples/s%s%s", (long long) t->epochs,
			(long long) t->given->epochs, (long long) so_far, (long long) t->train_examples, rate,
			loss, left_text);
}

static void print_start(const training *t, bool json)
{
	const summary s = {
		.strategy = t->strategy,
		.model = &t->model,
		.data = &t->data,
		.optimizer = t->given->optimizer,
		.train_examples = t->train_examples,
		.test_examples = t->test_examples,
		.batch = t->given->batch,
		.seed = t->given->seed,
		.memory = &t->memory,
		.slots = train_slots(t),
	};
	if (!json)
		source_print(&t->data, false);
	summary_print(&s, json);
}

void train_report_start(const training *t)
{
	if (t->data.csv && train_is_chief(t))
		table_print_warnings(&t->data);
	else if (t->data.classes == 1 && train_is_chief(t))
		train_report_warning(CHOIR_LOG_WARNING,
				"warning: the data have one class only; a classification needs two", NULL);
	print_start(t, t->given->json);
}

void train_print_start(const training *t)
{
	print_start(t, true);
}

static void print_score_object(const training *t)
{
	if (train_is_regression(t)) {
		json_number("test_mean_squared_error", t->last.score);
		json_number("test_mean_absolute_error", t->last.absolute_error);
		json_number("test_r2", t->last.r2);
		return;
	}
	json_number(t->data.text ? "bits_per_byte" : "test_accuracy", t->last.score);
	if (t->data.text)
		return;
	json_number("test_loss", t->last.test_loss);
	json_number("train_accuracy", t->last.accuracy);
}

// C may print the sign of a NAN.
static double without_sign(double value)
{
	return isnan(value) ? (double) NAN : value;
}

static const char *decimal(double value, char text[32])
{
	snprintf(text, 32, fabs(value) < 1e6 ? "%.4f" : "%.4g", without_sign(value));
	return text;
}

static void print_errors(const training *t)
{
	char r2[32];
	printf("test MSE %.6g, MAE %.6g, R2 %s", without_sign(t->last.score),
			without_sign(t->last.absolute_error), decimal(t->last.r2, r2));
}

static void print_score(const training *t)
{
	char loss[32];
	if (t->test_examples == 0)
		return;
	fputs("  ", stdout);
	if (train_is_regression(t))
		print_errors(t);
	else if (t->data.text)
		printf("%s bits per byte", decimal(t->last.score, loss));
	else
		printf("test %.2f %%, loss %s", 100 * t->last.score, decimal(t->last.test_loss, loss));
}

// 0: nothing was trained after a resume at an epoch's end.
static double rate_of(const training *t)
{
	return t->trained == 0 ? 0 : (double) t->trained / t->seconds;
}

void train_print_epoch(const training *t)
{
	json_begin_event("epoch");
	json_integer("epoch", t->epochs);
	json_integer("step", t->share[0].steps);
	json_number("loss", t->last.loss);
	print_score_object(t);
	json_number("examples_per_s", rate_of(t));
	json_number("seconds", t->seconds);
	json_number("epoch_seconds", t->epoch_seconds);
	json_end();
}

void train_report_epoch(const training *t)
{
	char left[32] = "", loss[32];
	const double rate = rate_of(t);
	if (t->given->json) {
		train_print_epoch(t);
	} else {
		progress_clear();
		printf("epoch %lld/%lld  loss %s", (long long) t->epochs, (long long) t->given->epochs,
				decimal(t->last.loss, loss));
		if (!t->data.text && !train_is_regression(t))
			printf(", %.2f %% right", 100 * t->last.accuracy);
		if (rate > 0)
			printf("  %.0f examples/s, %.1f s", rate, t->epoch_seconds);
		print_score(t);
		if (rate > 0)
			print_left((double) ((t->given->epochs - t->epochs) * t->train_examples) / rate, left);
		printf("%s\n", left);
	}
	fflush(stdout);
}

static const char *hash_of(const training *t, char hash[17])
{
	snprintf(hash, 17, "%016llx", (unsigned long long) choir_strategy_hash(t->strategy));
	return hash;
}

static void print_targets(const training *t, bool json)
{
	char key[48], r2[32], name[CLEAN_TEXT];
	if (!train_watches_loss(t) || t->test_examples == 0)
		return;
	if (json)
		json_begin_list("targets");
	for (size_t i = 0; i < t->data.targets; i++) {
		snprintf(key, sizeof key, "val_absolute_error_%zu", i);
		const double error = choir_model_log(t->fit, key);
		snprintf(key, sizeof key, "val_r2_%zu", i);
		const double is = choir_model_log(t->fit, key);
		if (json) {
			json_begin_item();
			json_text("name", t->data.target_name[i]);
			json_number("test_mean_absolute_error", error);
			json_number("test_r2", is);
			json_end_item();
			continue;
		}
		printf("  %s: MAE %.6g, R2 %s\n", clean_text(t->data.target_name[i], name),
				without_sign(error), decimal(is, r2));
	}
	if (json)
		json_end_list();
}

static void print_two_classes(const training *t, bool json)
{
	const double area = choir_model_log(t->fit, "val_auc");
	const double precision = choir_model_log(t->fit, "val_precision");
	const double recall = choir_model_log(t->fit, "val_recall");
	const char *class = choir_dataset_category(t->data.names, "label", 1);
	char name[CLEAN_TEXT];
	if (t->auc == NULL || t->test_examples == 0)
		return;
	if (!json) {
		printf("  AUC %.4f; of class %s: precision %.4f, recall %.4f\n", without_sign(area),
				clean_text(class == NULL ? "1" : class, name), precision, recall);
		return;
	}
	json_number("test_auc", area);
	json_number("test_precision", precision);
	json_number("test_recall", recall);
}

void train_print_end(const training *t)
{
	char hash[17];
	json_begin_event("end");
	json_integer("epochs", t->epochs);
	json_number("loss", t->last.loss);
	print_score_object(t);
	print_targets(t, true);
	print_two_classes(t, true);
	if (t->majority > 0)
		json_number("test_majority_class", t->majority);
	json_number("examples_per_s", rate_of(t));
	json_text("weights", hash_of(t, hash));
	train_report_staleness(t);
	json_end();
}

static void warn_of_score(const training *t)
{
	char line[200];
	const double *score =
			t->data.text || train_is_regression(t) ? &t->last.score : &t->last.test_loss;
	if (t->test_examples == 0 || isfinite(*score) || !train_is_chief(t))
		return;
	snprintf(line, sizeof line,
			"the test %s is %g: the scores of a test example are not finite; choir predict names "
			"the row",
			train_is_regression(t) ? "MSE" : "loss", without_sign(*score));
	train_report_warning(CHOIR_LOG_WARNING, line, NULL);
}

// Of a table, of which a beginner may make few steps.
static void print_hint(const training *t)
{
	enum { FEW = 40, ENOUGH = 100 };
	const int64_t steps = t->share[0].steps, epochs = t->epochs;
	if (!t->data.csv || !t->falling || steps >= FEW || epochs != t->given->epochs)
		return;
	printf("hint: only %lld steps were made, and the loss still falls; try --epochs %lld\n",
			(long long) steps, (long long) ((ENOUGH * epochs + steps - 1) / steps));
}

void train_report_end(const training *t)
{
	char hash[17], loss[32];
	hash_of(t, hash);
	warn_of_score(t);
	if (t->given->json) {
		train_print_end(t);
		return;
	}
	if (t->given->save != NULL)
		printf("saved %s\n", t->given->save);
	if (t->test_examples == 0)
		printf("no test: all examples were used for training\n");
	else if (train_is_regression(t)) {
		print_errors(t);
		printf(" on %lld examples\n", (long long) t->test_examples);
		print_targets(t, false);
	} else if (t->data.text)
		printf("%s bits per byte on %lld held-out bytes\n", decimal(t->last.score, loss),
				(long long) (t->test_examples * t->data.context));
	else {
		printf("test accuracy %.2f %%, loss %s on %lld examples", 100 * t->last.score,
				decimal(t->last.test_loss, loss), (long long) t->test_examples);
		if (t->majority > 0)
			printf("; the majority class has %.2f %%", 100 * t->majority);
		printf("\n");
		print_two_classes(t, false);
	}
	print_hint(t);
	train_report_staleness(t);
	printf("weights %s\n", hash);
}

void train_report_warning(choir_log_level level, const char *line, void *user)
{
	(void) level;
	(void) user;
	progress_clear();
	print_error("choir train", line);
}
