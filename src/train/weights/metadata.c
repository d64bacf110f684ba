// Metadata of weights files: pairs of keys and values.
#include "choir/weights.h"

#include "base/alloc.h"
#include "train/weights/weights.h"

#include <string.h>

static choir_status add_line(chi_metadata *l, char *line)
{
	char *equals = strchr(line, '=');
	if (equals == NULL || equals == line)
		return choir_fail(CHOIR_INVALID, "metadata: the line \"%.100s\" is not key=value", line);
	*equals = '\0';
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->pair[i].key, line) == 0)
			return choir_fail(CHOIR_INVALID, "metadata: the key \"%.100s\" occurs twice", line);
	if (!chi_grow(&l->pair, &l->capacity, l->n + 1, sizeof *l->pair))
		return CHOIR_NO_MEMORY;
	l->pair[l->n++] = (chi_st_pair){ line, equals + 1 };
	return CHOIR_OK;
}

choir_status chi_metadata_cut(const char *metadata, chi_metadata *l)
{
	*l = (chi_metadata){ 0 };
	if (metadata == NULL)
		return CHOIR_OK;
	if (!chi_text_is_utf8(metadata, strlen(metadata)))
		return choir_fail(CHOIR_INVALID, "metadata: is not UTF-8");
	l->text = chi_strdup(metadata);
	CHOIR_TRY(chi_made(l->text));
	for (char *line = l->text; *line != '\0';) {
		char *end = strchr(line, '\n');
		char *next = end == NULL ? line + strlen(line) : end + 1;
		if (end != NULL)
			*end = '\0';
		if (*line != '\0')
			CHOIR_TRY(add_line(l, line));
		line = next;
	}
	return CHOIR_OK;
}

void chi_metadata_free(chi_metadata *l)
{
	chi_free(l->pair);
	chi_free(l->text);
	*l = (chi_metadata){ 0 };
}

const char *chi_metadata_find(const chi_metadata *l, const char *key)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->pair[i].key, key) == 0)
			return l->pair[i].value;
	return NULL;
}

static choir_status no_such_key(const char *path, const char *key, const chi_safetensors *st)
{
	chi_name_list list = { .what = "there are" };
	chi_text text = { 0 };
	for (size_t i = 0; i < st->pairs; i++)
		chi_name_list_add(&list, st->pair[i]->key, "");
	chi_name_list_print(&text, &list);
	choir_fail(CHOIR_NOT_FOUND, "%s: its metadata has no key \"%.100s\"; %s", path, key,
			text.data == NULL ? "it has none" : text.data);
	chi_text_free(&text);
	chi_text_free(&list.text);
	return CHOIR_NOT_FOUND;
}

static choir_status find_value(
		const char *path, const chi_safetensors *st, const char *key, char *value, size_t size)
{
	const chi_st_pair *p = chi_safetensors_pair(st, key);
	if (p == NULL)
		return no_such_key(path, key, st);
	const size_t needed = strlen(p->value) + 1;
	if (needed > size)
		return choir_fail(CHOIR_INVALID,
				"%s: the value of \"%.100s\" in the metadata needs %zu bytes, not %zu", path, key,
				needed, size);
	memcpy(value, p->value, needed);
	return CHOIR_OK;
}

choir_status choir_weights_metadata(const char *path, const char *key, char *value, size_t size)
{
	if (key == NULL || value == NULL)
		return choir_fail(
				CHOIR_INVALID, "weights_metadata: the %s is NULL", key == NULL ? "key" : "value");
	if (path == NULL)
		return choir_fail(CHOIR_INVALID, "weights_metadata: the path is NULL");
	chi_safetensors st = { 0 };
	chi_file *f = chi_file_open(path);
	choir_status status = f == NULL ? choir_error_status() : chi_safetensors_open(&st, f);
	if (status == CHOIR_OK)
		status = find_value(path, &st, key, value, size);
	chi_file_close(f);
	chi_safetensors_close(&st);
	return status;
}
