// Initial weights (--init): restores a part of a weights file, and lists names without a match on
// either side.
#include "model/initial_weights.h"
#include "output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MAP = 1 << 20, VISION_SIZE = 4096 };

// Names by kind, zero-terminated one after another.
typedef struct {
	int64_t n[3];
	char *names[3];
	size_t length[3];
	bool failed;
} restore_report;

static void remember(choir_restored what, const char *name, void *user)
{
	restore_report *t = user;
	const size_t bytes = strlen(name) + 1;
	char *grown = realloc(t->names[what], t->length[what] + bytes);
	t->failed |= grown == NULL;
	if (grown == NULL)
		return;
	memcpy(grown + t->length[what], name, bytes);
	t->names[what] = grown;
	t->length[what] += bytes;
	t->n[what]++;
}

static void print_list(const restore_report *t, choir_restored what, const char *key, bool json)
{
	const char *name = t->names[what];
	char shown[CLEAN_TEXT];
	if (json)
		json_begin_list(key);
	else if (t->n[what] > 0)
		printf("  %s:", key);
	for (int64_t i = 0; i < t->n[what]; i++, name += strlen(name) + 1)
		if (json) {
			json_begin_item();
			json_text("name", name);
			json_end_item();
		} else {
			printf("%s %s", i == 0 ? "" : ",", clean_text(name, shown));
		}
	if (json)
		json_end_list();
	else if (t->n[what] > 0)
		printf("\n");
}

static void print_report(const restore_report *t, const char *path, bool json)
{
	if (json) {
		json_begin_event("init");
		json_integer("restored", t->n[CHOIR_RESTORED_VALUE]);
	} else {
		printf("restored %lld weights from %s\n", (long long) t->n[CHOIR_RESTORED_VALUE], path);
	}
	print_list(t, CHOIR_RESTORED_MISSING, "missing", json);
	print_list(t, CHOIR_RESTORED_UNEXPECTED, "unexpected", json);
	if (json)
		json_end();
}

// torchvision's names of the residual networks. Returns the length that the text needs.
static int write_torchvision(char *text, size_t size)
{
	int at = snprintf(
			text, size, "torch\nconv1.* stem.conv.*\nbn1.* stem.conv_norm.*\nfc.* classes.*\n");
	for (int stage = 1; stage <= 4; stage++)
		for (int i = 0; i < 2; i++) {
			const int block = 2 * (stage - 1) + i;
			for (int k = 1; k <= 2; k++)
				at += snprintf(text + at, size - (size_t) at,
						"layer%d.%d.conv%d.* block%d.conv%d.*\n"
						"layer%d.%d.bn%d.* block%d.conv%d_norm.*\n",
						stage, i, k, block, k, stage, i, k, block, k);
			if (i == 0 && stage > 1)
				at += snprintf(text + at, size - (size_t) at,
						"layer%d.0.downsample.0.* block%d.shortcut.*\n"
						"layer%d.0.downsample.1.* block%d.shortcut_norm.*\n",
						stage, block, stage, block);
		}
	return at;
}

choir_status init_read_text(
		const char *option, const char *path, const char *needs, size_t max, char **text)
{
	FILE *f = fopen(path, "rb");
	*text = f == NULL ? NULL : calloc(1, max + 1);
	if (f == NULL)
		return choir_fail(CHOIR_IO, "%s %s: %s; needs %s", option, path, strerror(errno), needs);
	const size_t n = *text == NULL ? 0 : fread(*text, 1, max, f);
	const bool whole = *text != NULL && !ferror(f) && fgetc(f) == EOF;
	fclose(f);
	if (whole && memchr(*text, 0, n) == NULL)
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID,
			"%s %s: not a text, or too long; needs a text of at most %zu bytes", option, path,
			max);
}

choir_status init_read_map(const char *option, const char *path, char **text)
{
	const bool vision = strcmp(path, "torchvision") == 0;
	if (!vision && strcmp(path, "torch") != 0 && strcmp(path, "keras") != 0)
		return init_read_text(option, path, "a file, torch, torchvision or keras", MAX_MAP, text);
	*text = vision ? malloc(VISION_SIZE) : strdup(path);
	if (vision && *text != NULL)
		write_torchvision(*text, VISION_SIZE);
	return *text != NULL ? CHOIR_OK
						 : choir_fail(CHOIR_NO_MEMORY, "%s %s: out of memory", option, path);
}

choir_status init_weights(choir_strategy *s, const char *path, const char *map, bool json)
{
	restore_report t = { .failed = false };
	char *text = NULL;
	choir_status status = map == NULL ? CHOIR_OK : init_read_map("--init-map", map, &text);
	if (status == CHOIR_OK)
		status = choir_strategy_restore_partial(s, path,
				CHOIR_OPTIONS(choir_restore_options, .map = text, .report = remember, .user = &t));
	if (status == CHOIR_OK && t.failed)
		status = choir_fail(CHOIR_NO_MEMORY, "--init %s: out of memory", path);
	if (status == CHOIR_OK)
		print_report(&t, path, json);
	for (int i = 0; i < 3; i++)
		free(t.names[i]);
	free(text);
	return status;
}
