// A resume needs the data of its checkpoint: other texts or columns would give the weights another
// meaning, without any error.
#include "train/train.h"

#include "model/table_metadata.h"
#include "terminal_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	const training *t;
	const table_plan *was;
	input_columns now_columns, was_columns;
} comparison;

CHOIR_PRINTF(4, 5)
static choir_status differs(
		const comparison *c, const char *now, const char *was, const char *fmt, ...)
{
	char what[3 * CLEAN_TEXT], a[CLEAN_TEXT], b[CLEAN_TEXT];
	va_list arguments;
	va_start(arguments, fmt);
	vsnprintf(what, sizeof what, fmt, arguments);
	va_end(arguments);
	return choir_fail(CHOIR_INVALID,
			"--checkpoint %.200s: %s is \"%s\", but \"%s\" in the checkpoint; needs the same data "
			"and target, or another directory",
			c->t->given->checkpoint, what, clean_text(now, a), clean_text(was, b));
}

static const char *task_of(const table_plan *t)
{
	return t->targets > 0 ? "regression" : "classification";
}

static choir_status compare_target(const comparison *c)
{
	const table_plan *now = c->t->table, *was = c->was;
	if (strcmp(now->target, was->target) != 0)
		return differs(c, now->target, was->target, "the target");
	if ((now->targets > 0) != (was->targets > 0))
		return differs(c, task_of(now), task_of(was), "the task");
	for (size_t i = 0; i < now->classes || i < was->classes; i++) {
		const char *a = i < now->classes ? now->name[i] : "";
		const char *b = i < was->classes ? was->name[i] : "";
		if (strcmp(a, b) != 0)
			return differs(c, a, b, "%s %zu", now->targets > 0 ? "target" : "class", i + 1);
	}
	return CHOIR_OK;
}

static const char *kind_of(const choir_csv_column *c, char text[64])
{
	const char *mark = c->indicator ? ", with an indicator" : "";
	if (c->kind == CHOIR_CSV_ONE_HOT)
		snprintf(text, 64, "%zu categories%s", c->categories, mark);
	else
		snprintf(text, 64, "%s%s", c->kind == CHOIR_CSV_DATE ? "dates" : "numbers", mark);
	return text;
}

static choir_status compare_column(
		const comparison *c, const choir_csv_column *now, const choir_csv_column *was, size_t i)
{
	char a[64], b[64], name[CLEAN_TEXT];
	if (now == NULL || was == NULL || strcmp(now->name, was->name) != 0)
		return differs(c, now == NULL ? "" : now->name, was == NULL ? "" : was->name,
				"input column %zu", i + 1);
	clean_text(now->name, name);
	if (strcmp(kind_of(now, a), kind_of(was, b)) != 0)
		return differs(c, a, b, "the kind of column \"%s\"", name);
	for (size_t k = 0; k < now->categories; k++)
		if (strcmp(now->category[k], was->category[k]) != 0)
			return differs(c, now->category[k], was->category[k], "category %zu of column \"%s\"",
					k + 1, name);
	return CHOIR_OK;
}

static choir_status compare_columns(const comparison *c)
{
	const input_columns *now = &c->now_columns, *was = &c->was_columns;
	for (size_t i = 0; (i < now->n || i < was->n) && now->n > 0 && was->n > 0; i++)
		CHOIR_TRY(compare_column(
				c, i < now->n ? &now->column[i] : NULL, i < was->n ? &was->column[i] : NULL, i));
	return CHOIR_OK;
}

// Of the training examples, and of the test examples.
static choir_status compare_rows(
		const comparison *c, const choir_checkpoint_list *l, size_t newest)
{
	const char *train = choir_checkpoint_list_metadata(l, newest, "train/train_examples");
	const char *test = choir_checkpoint_list_metadata(l, newest, "train/test_examples");
	const int64_t was =
			train == NULL || test == NULL ? 0 : strtoll(train, NULL, 10) + strtoll(test, NULL, 10);
	const int64_t now = c->t->train_examples + c->t->test_examples;
	if (was == 0 || was == now || train_shards_files(c->t))
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID,
			"--checkpoint %.200s: data \"%.200s\" have %" PRId64 " examples, but %" PRId64
			" in the checkpoint; needs the same data, or another directory and --init %.200s to "
			"begin with these weights",
			c->t->given->checkpoint, c->t->given->data, now, was,
			choir_checkpoint_list_path(l, newest));
}

static choir_status compare_number(
		const comparison *c, const char *what, const char *name, float now, float was, float unit)
{
	static const float tolerance = 1e-5f; // sums of other processors
	char a[32], b[32], clean[CLEAN_TEXT];
	if (!(fabsf(now - was) > tolerance * (fabsf(was) + unit)))
		return CHOIR_OK;
	snprintf(a, sizeof a, "%.6g", (double) now);
	snprintf(b, sizeof b, "%.6g", (double) was);
	return differs(c, a, b, "the %s of \"%s\"", what, clean_text(name, clean));
}

// With another seed or --train-examples, other rows are measured.
static bool measures_same_rows(const training *t, const choir_checkpoint_list *l, size_t newest)
{
	const char *seed = choir_checkpoint_list_metadata(l, newest, "train/options/seed");
	const char *train = choir_checkpoint_list_metadata(l, newest, "train/train_examples");
	return seed != NULL && strtoull(seed, NULL, 10) == t->given->seed && train != NULL &&
			strtoll(train, NULL, 10) == t->train_examples;
}

// For a change of numbers; the former errors name other changes.
static choir_status compare_moments(const comparison *c)
{
	static char list[METADATA_SIZE];
	static const char *name[MAX_INPUTS];
	const table_plan *now = c->t->table, *was = c->was;
	const size_t named = table_number_names(&c->now_columns, list, name);
	if (!c->t->data.csv)
		return CHOIR_OK;
	for (int64_t i = 0; i < now->inputs && now->inputs == was->inputs; i++) {
		const char *input = (size_t) i < named ? name[i] : "?";
		CHOIR_TRY(compare_number(c, "mean", input, now->mean[i], was->mean[i], was->deviation[i]));
		CHOIR_TRY(compare_number(c, "deviation", input, now->deviation[i], was->deviation[i], 0));
	}
	for (int64_t i = 0; i < now->targets; i++) {
		CHOIR_TRY(compare_number(c, "mean", now->name[i], now->target_mean[i], was->target_mean[i],
				was->target_deviation[i]));
		CHOIR_TRY(compare_number(c, "deviation", now->name[i], now->target_deviation[i],
				was->target_deviation[i], 0));
	}
	return CHOIR_OK;
}

static choir_status compare(const training *t, const choir_checkpoint_list *l, size_t newest)
{
	static table_plan was;
	static comparison c;
	char path[PATH_SIZE];
	c.t = t;
	c.was = &was;
	if (t->table == NULL)
		return compare_rows(&c, l, newest);
	if (snprintf(path, sizeof path, "%s/weights.safetensors",
				choir_checkpoint_list_path(l, newest)) >= (int) sizeof path ||
			table_plan_read(&was, path) != CHOIR_OK ||
			table_plan_inputs(&was, path, &c.was_columns) != CHOIR_OK)
		return CHOIR_OK; // restoring it says why
	CHOIR_TRY(table_plan_inputs(t->table, t->given->data, &c.now_columns));
	CHOIR_TRY(compare_target(&c));
	CHOIR_TRY(compare_columns(&c));
	CHOIR_TRY(compare_rows(&c, l, newest));
	return measures_same_rows(t, l, newest) ? compare_moments(&c) : CHOIR_OK;
}

// Restoring passes over damaged checkpoints.
choir_status train_compare_data(const training *t)
{
	choir_checkpoint_list *l = choir_checkpoint_list_new(t->given->checkpoint);
	size_t n = choir_checkpoint_list_steps(l);
	while (n > 0 && choir_checkpoint_list_check(l, n - 1) != CHOIR_OK)
		n--;
	const choir_status status = n == 0 ? CHOIR_OK : compare(t, l, n - 1);
	choir_checkpoint_list_free(l);
	return status;
}
