// Checkpoints every N steps, after each epoch, and after the current step when a signal asks to
// stop. A training that starts again resumes from the newest checkpoint and ends with the same
// weights. The chief reads and writes.
#include "train/train.h"

#include "output.h"
#include "stop_signals.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t asked_to_stop;

// SA_RESETHAND: a second signal ends the program at once.
static void stop(int number)
{
	(void) number;
	asked_to_stop = 1;
}

bool train_must_stop(void)
{
	return asked_to_stop != 0;
}

// The state of a training in its newest checkpoint.
typedef struct {
	int64_t epochs, steps, done;
	epoch_results last, best;
	int64_t best_epoch, worse; // 0: none
	char best_path[PATH_SIZE];
	bool changed; // new changes
	option_changes changes;
	bool there;
} standing;

// Metadata: the epoch in a checkpoint of the best epoch so far, else 0; so the largest value is
// the best.
static const char best_of_all[] = "train/best";

static choir_status read_standing(const char *path, standing *at)
{
	char file[PATH_SIZE], text[32];
	const struct {
		const char *key;
		int64_t *count;
		double *number;
		bool is_optional;
	} numbers[] = { { "train/epochs", &at->epochs, NULL, false },
		{ "train/steps", &at->steps, NULL, false }, { "train/examples", &at->done, NULL, false },
		{ "train/loss", NULL, &at->last.loss, false },
		{ "train/score", NULL, &at->last.score, false },
		{ "train/accuracy", NULL, &at->last.accuracy, true },
		{ "train/test_loss", NULL, &at->last.test_loss, true },
		{ "train/absolute_error", NULL, &at->last.absolute_error, true },
		{ "train/r2", NULL, &at->last.r2, true },
		{ "train/best_epoch", &at->best_epoch, NULL, true },
		{ "train/best_loss", NULL, &at->best.loss, true },
		{ "train/best_score", NULL, &at->best.score, true },
		{ "train/best_accuracy", NULL, &at->best.accuracy, true },
		{ "train/best_test_loss", NULL, &at->best.test_loss, true },
		{ "train/best_absolute_error", NULL, &at->best.absolute_error, true },
		{ "train/best_r2", NULL, &at->best.r2, true }, { "train/worse", &at->worse, NULL, true } };
	if (snprintf(file, sizeof file, "%s/weights.safetensors", path) >= (int) sizeof file)
		return choir_fail(CHOIR_INVALID, "%s: path too long", path);
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		const choir_status status =
				choir_weights_metadata(file, numbers[i].key, text, sizeof text);
		if (status == CHOIR_NOT_FOUND && numbers[i].is_optional)
			continue;
		CHOIR_TRY(status);
		if (numbers[i].count != NULL)
			*numbers[i].count = strtoll(text, NULL, 10);
		else
			*numbers[i].number = strtod(text, NULL);
	}
	return CHOIR_OK;
}

static choir_status broadcast_standing(const training *t, standing *at)
{
	return train_is_one_of_many(t) ? choir_cluster_broadcast(t->cluster, 0, at, sizeof *at)
								   : CHOIR_OK;
}

static bool has_steps(const char *directory)
{
	choir_checkpoint_list *l = choir_checkpoint_list_new(directory);
	const bool has = choir_checkpoint_list_steps(l) > 0;
	choir_checkpoint_list_free(l);
	return has;
}

static void print_resumed(const training *t, bool changed)
{
	const long long steps = (long long) t->share[0].steps;
	const char *path = choir_checkpoint_manager_latest(t->checkpoints);
	if (t->given->json) {
		json_begin_event("resume");
		json_integer("step", steps);
		json_text("path", path);
		if (changed)
			json_text("changed", t->changes.text);
		json_end();
	} else {
		printf("resuming from %s, after step %lld\n", path, steps);
		if (changed)
			printf("options changed since: %s\n", t->changes.text);
	}
	fflush(stdout);
}

// best_path "": none. newest was checked already.
static choir_status search_best(const char *newest, choir_checkpoint_list *l, standing *at)
{
	for (size_t i = choir_checkpoint_list_steps(l); i-- > 0 && at->best_path[0] == '\0';) {
		const char *epoch = choir_checkpoint_list_metadata(l, i, best_of_all);
		const char *path = choir_checkpoint_list_path(l, i);
		if (epoch == NULL || strtoll(epoch, NULL, 10) != at->best_epoch)
			continue;
		const choir_status status =
				strcmp(path, newest) == 0 ? CHOIR_OK : choir_checkpoint_list_check(l, i);
		if (status == CHOIR_OK)
			snprintf(at->best_path, sizeof at->best_path, "%s", path);
		else if (status != CHOIR_CORRUPT && status != CHOIR_NOT_FOUND)
			return status;
	}
	return CHOIR_OK;
}

// Without a checkpoint of it, forgets the best epoch.
static choir_status find_best(const char *directory, const char *newest, standing *at)
{
	char text[PATH_SIZE + 200];
	choir_checkpoint_list *l = choir_checkpoint_list_new(directory);
	const choir_status status = l == NULL ? choir_error_status() : search_best(newest, l, at);
	choir_checkpoint_list_free(l);
	if (status != CHOIR_OK || at->best_path[0] != '\0')
		return status;
	snprintf(text, sizeof text,
			"%s: no undamaged checkpoint of epoch %lld, the best so far; --patience counts anew "
			"after epoch %lld",
			directory, (long long) at->best_epoch, (long long) at->epochs);
	train_report_warning(CHOIR_LOG_WARNING, text, NULL);
	at->best_epoch = 0;
	return CHOIR_OK;
}

static choir_status recall_progress(training *t, const standing *at)
{
	const char *newest = choir_checkpoint_manager_latest(t->checkpoints);
	const bool best = t->given->patience > 0 && at->best_epoch > 0;
	const bool elsewhere = best && strcmp(at->best_path, newest) != 0;
	t->best = at->best;
	if (elsewhere)
		CHOIR_TRY(choir_strategy_restore_checkpoint(t->strategy, at->best_path));
	CHOIR_TRY(choir_model_set_progress(t->fit,
			CHOIR_OPTIONS(choir_fit_progress, .epochs = at->epochs, .step = at->steps,
					.batch = at->done / t->given->batch, .best_epoch = best ? at->best_epoch : 0,
					.best = train_watches_loss(t) ? at->best.test_loss
							: t->data.text		  ? at->best.score * log(2)
												  : at->best.score,
					.waited = best ? at->worse : 0)));
	return elsewhere ? choir_strategy_restore_checkpoint(t->strategy, newest) : CHOIR_OK;
}

static choir_status read_newest(const training *t, standing *at)
{
	const char *path = choir_checkpoint_manager_latest(t->checkpoints);
	CHOIR_TRY(read_standing(path, at));
	CHOIR_TRY(train_find_changes(t, at->steps, &at->changes, &at->changed));
	return t->given->patience > 0 && at->best_epoch > 0 ? find_best(t->given->checkpoint, path, at)
														: CHOIR_OK;
}

static choir_status go_on(training *t)
{
	const double unknown = NAN;
	standing at = { .there = train_is_chief(t) && has_steps(t->given->checkpoint),
		.best = { unknown, unknown, unknown, unknown, unknown, unknown } };
	choir_status status = CHOIR_OK;
	CHOIR_TRY(broadcast_standing(t, &at));
	if (!at.there)
		return CHOIR_OK;
	if (train_is_chief(t))
		CHOIR_TRY(train_compare_data(t));
	CHOIR_TRY(choir_checkpoint_manager_restore_latest(t->checkpoints));
	if (train_is_chief(t))
		status = read_newest(t, &at);
	CHOIR_TRY(status == CHOIR_OK ? broadcast_standing(t, &at) : status);
	CHOIR_TRY(recall_progress(t, &at));
	t->epochs = at.epochs;
	t->share[0].steps = at.steps;
	t->last = at.last;
	t->changes = at.changes;
	print_resumed(t, at.changed);
	return CHOIR_OK;
}

static choir_status check_none_asked(const train_options *o)
{
	const char *given = o->keep != 0			? "--max-to-keep"
			: o->checkpoint_every != 0			? "--checkpoint-every"
			: strcmp(o->unsaved, "ignore") == 0 ? "--unsaved ignore"
												: NULL;
	return given == NULL ? CHOIR_OK
						 : choir_fail(CHOIR_INVALID,
								   "%s: no checkpoints are saved; needs --checkpoint DIR", given);
}

choir_status train_open_checkpoints(training *t)
{
	const train_options *o = t->given;
	if (o->checkpoint == NULL)
		return check_none_asked(o);
	if (choir_strategy_workers(t->strategy) > 1)
		return choir_fail(CHOIR_UNSUPPORTED,
				"--checkpoint: %d workers are in different steps; needs --workers 1",
				choir_strategy_workers(t->strategy));
	// Two, in case the newer one is damaged.
	t->checkpoints = choir_checkpoint_manager_new(t->strategy, o->checkpoint,
			CHOIR_OPTIONS(choir_checkpoint_options, .max_to_keep = (int) o->keep,
					.asynchronous = true, .best_metric = o->patience > 0 ? best_of_all : NULL,
					.max_best_to_keep = 2));
	if (t->checkpoints == NULL)
		return choir_error_status();
	catch_stop_signals(stop, (int) SA_RESETHAND);
	return go_on(t);
}

static size_t write_best(const training *t, int64_t done, char *text, size_t size)
{
	const choir_fit_progress p = choir_model_progress(t->fit);
	const bool is_best = done == 0 && p.epochs == p.best_epoch;
	return (size_t) snprintf(text, size,
			"%s=%" PRId64 "\ntrain/best_epoch=%" PRId64
			"\ntrain/best_loss=%.17g\ntrain/best_score=%.17g\ntrain/best_accuracy=%.17g"
			"\ntrain/best_test_loss=%.17g\ntrain/best_absolute_error=%.17g\ntrain/best_r2=%.17g"
			"\ntrain/worse=%" PRId64 "\n",
			best_of_all, is_best ? p.epochs : 0, p.best_epoch, t->best.loss, t->best.score,
			t->best.accuracy, t->best.test_loss, t->best.absolute_error, t->best.r2, p.waited);
}

choir_status train_save(const choir_fit_event *e, void *user)
{
	const training *t = user;
	const int64_t epochs = choir_model_epochs(e->model); // finished ones
	const int64_t done = epochs < t->epochs ? t->share[0].done : 0; // examples of the next one
	static char text[METADATA_SIZE + 1024 + RECORDED_SIZE];
	size_t length = (size_t) snprintf(text, METADATA_SIZE, "%s", t->metadata);
	text[length++] = '\n';
	CHOIR_TRY(train_write_options(t, text + length, RECORDED_SIZE));
	length += strlen(text + length);
	if (t->given->patience > 0)
		length += write_best(t, done, text + length, sizeof text - length);
	snprintf(text + length, sizeof text - length,
			"train/epochs=%" PRId64 "\ntrain/steps=%" PRId64 "\ntrain/examples=%" PRId64
			"\ntrain/loss=%.17g\ntrain/score=%.17g\ntrain/accuracy=%.17g\ntrain/test_loss=%.17g\n"
			"train/absolute_error=%.17g\ntrain/r2=%.17g\n"
			"train/train_examples=%" PRId64 "\ntrain/test_examples=%" PRId64 "\n",
			epochs, t->share[0].steps, done, t->last.loss, t->last.score, t->last.accuracy,
			t->last.test_loss, t->last.absolute_error, t->last.r2, t->train_examples,
			t->test_examples);
	return choir_checkpoint_manager_save(t->checkpoints, text);
}

// With --unsaved ignore, a failure of disk or memory is only a warning.
choir_status train_unsaved(const choir_fit_event *e, void *user)
{
	const training *t = user;
	(void) e;
	progress_clear();
	if (t->given->json) {
		json_begin_event("unsaved");
		json_integer("step", t->share[0].steps);
		json_text("why", choir_error());
		json_end();
	}
	if (train_is_chief(t))
		train_report_warning(CHOIR_LOG_WARNING, choir_error(), NULL);
	return CHOIR_OK;
}
