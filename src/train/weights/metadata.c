// Splits metadata into keys and values.
#include "train/weights/weights.h"

#include "base/alloc.h"

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
	void *array = l->pair;
	const bool grown = chi_grow(&array, &l->capacity, l->n + 1, sizeof *l->pair);
	l->pair = array;
	if (!grown)
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
	if (l->text == NULL)
		return CHOIR_NO_MEMORY;
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
