// The options that decide the result, in checkpoints. A resume compares them, a replay reads them.
// After a resume with other options the checkpoints record that step, because older checkpoints
// with the former options may be deleted.
#include "train/train.h"

#include "terminal_text.h"
#include "percent_encoding.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char recorded[] = "train/options";
static const char changes_after[] = "train/changes_after", changes_text[] = "train/changes";

choir_status train_write_options(const training *t, char *text, size_t size)
{
	const option_changes *c = &t->changes;
	char encoded[3 * CHANGES_SIZE];
	size_t length = size;
	if (options_write(&train_command, recorded, text, size))
		length = strlen(text);
	if (length < size && c->text[0] != '\0') {
		percent_encode(c->text, encoded, sizeof encoded);
		length += (size_t) snprintf(text + length, size - length, "%s=%" PRId64 "\n%s=%s\n",
				changes_after, c->after, changes_text, encoded);
	}
	return length < size ? CHOIR_OK
						 : choir_fail(CHOIR_INVALID,
								   "--checkpoint: the options have more than %zu bytes; a "
								   "checkpoint has room for no more",
								   size);
}

// "": none.
static const char *recorded_value(const choir_checkpoint_list *l, size_t i, const option *o)
{
	char key[64];
	snprintf(key, sizeof key, "%s/%s", recorded, options_key(o));
	const char *value = choir_checkpoint_list_metadata(l, i, key);
	const char *choice = value == NULL || o->choices == NULL ? NULL : options_choice(o, value);
	return choice != NULL ? choice : value == NULL ? "" : value;
}

// at: length of text.
static size_t add_change(
		char text[CHANGES_SIZE], size_t at, const char *name, const char *now, const char *then)
{
	char a[CLEAN_TEXT], b[CLEAN_TEXT];
	if (at >= CHANGES_SIZE || strcmp(now, then) == 0)
		return at;
	return at +
			(size_t) snprintf(text + at, CHANGES_SIZE - at, "%s%s %s (was %s)",
					at == 0 ? "" : ", ", name, now[0] == '\0' ? "not given" : clean_text(now, a),
					then[0] == '\0' ? "not given" : clean_text(then, b));
}

// With other options the training does not end with the weights of one that never stopped.
static void list_changes(
		const training *t, const choir_checkpoint_list *l, size_t i, char text[CHANGES_SIZE])
{
	static char now[RECORDED_SIZE];
	char then[24];
	size_t at = 0;
	const bool planned = strcmp(train_given->schedule, "constant") != 0; // depends on the epochs
	text[0] = '\0';
	for (size_t k = 0; k < train_command.n; k++) {
		const option *o = &train_command.options[k];
		if (!o->recorded || (o->to == &train_given->epochs && !planned))
			continue;
		const size_t length = options_value(o, now, sizeof now);
		now[length < sizeof now ? length : 0] = '\0';
		at = add_change(text, at, o->name, now, recorded_value(l, i, o));
	}
	snprintf(now, sizeof now, "%d", choir_strategy_replicas(t->strategy));
	snprintf(then, sizeof then, "%d", choir_checkpoint_list_replicas(l, i));
	add_change(text, at, "--replicas", now, then);
}

choir_status train_find_changes(
		const training *t, int64_t steps, option_changes *changes, bool *now)
{
	option_changes since = { .after = steps };
	const char *newest = choir_checkpoint_manager_latest(t->checkpoints);
	choir_checkpoint_list *l = choir_checkpoint_list_new(t->given->checkpoint);
	if (l == NULL)
		return choir_error_status();
	size_t i = 0;
	while (i < choir_checkpoint_list_steps(l) &&
			strcmp(choir_checkpoint_list_path(l, i), newest) != 0)
		i++;
	train_recall_changes(l, i, changes);
	list_changes(t, l, i, since.text);
	choir_checkpoint_list_free(l);
	*now = since.text[0] != '\0';
	if (*now)
		*changes = since;
	return CHOIR_OK;
}

bool train_checkpoint_steps(const choir_checkpoint_list *l, size_t i, int64_t *steps)
{
	const char *text = choir_checkpoint_list_metadata(l, i, "train/steps");
	if (text == NULL || choir_checkpoint_list_metadata(l, i, "train/options/data") == NULL)
		return false;
	*steps = strtoll(text, NULL, 10);
	return true;
}

choir_status train_recall(const choir_checkpoint_list *l, size_t i)
{
	static char kept[RECORDED_SIZE]; // the options point into it
	size_t at = 0;
	for (size_t k = 0; k < train_command.n; k++) {
		const option *o = &train_command.options[k];
		const char *value = recorded_value(l, i, o);
		const size_t size = strlen(value) + 1;
		if (!o->recorded || size == 1 || size > sizeof kept - at)
			continue; // longer than any recorded text
		memcpy(kept + at, value, size);
		if (!options_read_back(o, kept + at))
			return choir_fail(CHOIR_CORRUPT, "%s: %s has the invalid value \"%.200s\"",
					choir_checkpoint_list_path(l, i), o->name, kept + at);
		at += size;
	}
	train_given->replicas = choir_checkpoint_list_replicas(l, i);
	return CHOIR_OK;
}

void train_recall_changes(const choir_checkpoint_list *l, size_t i, option_changes *changes)
{
	char encoded[3 * CHANGES_SIZE];
	const char *after = choir_checkpoint_list_metadata(l, i, changes_after);
	const char *text = choir_checkpoint_list_metadata(l, i, changes_text);
	*changes = (option_changes){ 0 };
	if (after == NULL || text == NULL)
		return;
	snprintf(encoded, sizeof encoded, "%s", text);
	percent_decode(encoded);
	changes->after = strtoll(after, NULL, 10);
	snprintf(changes->text, sizeof changes->text, "%.*s", CHANGES_SIZE - 1, encoded);
}
