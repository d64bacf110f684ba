// A table's description as metadata. Names are percent-encoded and separated by tabs.
#include "model/table_metadata.h"
#include "percent_encoding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t write_numbers(
		char *text, size_t size, const char *key, int64_t n, const float values[])
{
	size_t at = (size_t) snprintf(text, size, "choir.%s=", key);
	for (int64_t i = 0; i < n && at < size; i++)
		at += (size_t) snprintf(
				text + at, size - at, "%s%.9g", i == 0 ? "" : ",", (double) values[i]);
	if (at < size)
		at += (size_t) snprintf(text + at, size - at, "\n");
	return at < size ? at : size;
}

static size_t write_texts(
		char *text, size_t size, const char *key, size_t n, const char *const texts[])
{
	size_t at = (size_t) snprintf(text, size, "choir.%s=", key);
	for (size_t i = 0; i < n && at < size; i++) {
		if (i > 0)
			text[at++] = '\t';
		at += percent_encode(texts[i], text + at, size - at);
	}
	if (at < size)
		at += (size_t) snprintf(text + at, size - at, "\n");
	return at < size ? at : size;
}

// Only what was given.
static size_t write_format(const table_format *f, char *text, size_t size)
{
	const char separator[] = { f->separator, '\0' }, *const separators[] = { separator };
	const char *const missing[] = { f->missing };
	size_t at = 0;
	if (f->separator != '\0')
		at += write_texts(text, size, "separator", 1, separators);
	if (f->decimal == ',' && at < size)
		at += (size_t) snprintf(text + at, size - at, "choir.decimal=comma\n");
	if (f->lists_missing && at < size)
		at += write_texts(text + at, size - at, "missing_values", 1, missing);
	return at < size ? at : size;
}

size_t table_plan_write(const table_plan *t, char *text, size_t size)
{
	size_t at = 0;
	const char *const target[] = { t->target };
	if (t->inputs != 0) {
		at += write_numbers(text, size, "mean", t->inputs, t->mean);
		at += write_numbers(text + at, size - at, "deviation", t->inputs, t->deviation);
	}
	if (t->columns[0] != '\0' && at < size)
		at += (size_t) snprintf(text + at, size - at, "choir.columns=%s\n", t->columns);
	if (t->encodings[0] != '\0' && at < size)
		at += (size_t) snprintf(text + at, size - at, "choir.encodings=%s\n", t->encodings);
	if (t->categories[0] != '\0' && at < size)
		at += (size_t) snprintf(text + at, size - at, "choir.categories=%s\n", t->categories);
	if (t->imputes && at < size)
		at += (size_t) snprintf(text + at, size - at, "choir.missing=impute\n");
	if (at < size)
		at += write_format(&t->format, text + at, size - at);
	if (t->targets != 0 && at < size)
		at += write_numbers(text + at, size - at, "target_mean", t->targets, t->target_mean);
	if (t->targets != 0 && at < size)
		at += write_numbers(
				text + at, size - at, "target_deviation", t->targets, t->target_deviation);
	if (at >= size)
		return size;
	if (t->target[0] != '\0')
		at += write_texts(text + at, size - at, "target", 1, target);
	if (t->classes != 0)
		at += write_texts(text + at, size - at, "names", t->classes, t->name);
	return at;
}

// False: missing, or an error.
static bool find_value(const char *path, const char *key, char *value, choir_status *status)
{
	*status = choir_weights_metadata(path, key, value, METADATA_SIZE);
	const bool found = *status == CHOIR_OK;
	if (*status == CHOIR_NOT_FOUND)
		*status = CHOIR_OK;
	return found;
}

static choir_status read_numbers(
		const char *path, const char *key, char *value, int64_t max, int64_t *n, float to[])
{
	choir_status status;
	*n = 0;
	if (!find_value(path, key, value, &status))
		return status;
	for (char *p = value;; p++) {
		char *end;
		if (*n == max)
			break;
		to[(*n)++] = strtof(p, &end);
		if (end == p || (*end != ',' && *end != '\0'))
			break;
		p = end;
		if (*end == '\0')
			return CHOIR_OK;
	}
	return choir_fail(CHOIR_CORRUPT,
			"%s: metadata %s: wrong list; needs up to %d numbers with commas", path, key,
			(int) max);
}

// Decodes names that are separated by tabs, in place. Returns their number, at most max.
static size_t cut_names(char *list, const char *name[], size_t max)
{
	size_t n = 0;
	for (char *p = list; p != NULL && n < max;) {
		name[n] = p;
		p = strchr(p, '\t');
		if (p != NULL)
			*p++ = '\0';
		percent_decode((char *) (uintptr_t) name[n++]);
	}
	return n;
}

int64_t table_column_width(const choir_csv_column *c)
{
	return (c->kind == CHOIR_CSV_ONE_HOT ? (int64_t) c->categories : 1) + c->indicator;
}

// Reads "number", "date" or a number of categories. False: something else.
static bool read_encoding(char *word, choir_csv_column *to)
{
	char *end = strchr(word, '?');
	to->indicator = end != NULL;
	if (end != NULL && end[1] != '\0')
		return false;
	if (end != NULL)
		*end = '\0';
	if (strcmp(word, "number") == 0)
		return true;
	to->kind = strcmp(word, "date") == 0 ? CHOIR_CSV_DATE : CHOIR_CSV_ONE_HOT;
	if (to->kind == CHOIR_CSV_DATE)
		return true;
	to->categories = strtoul(word, &end, 10);
	return end != word && *end == '\0' && to->categories > 0 && to->categories <= MAX_INPUTS;
}

choir_status table_plan_inputs(const table_plan *t, const char *path, input_columns *inputs)
{
	static const char *name[MAX_INPUTS], *encoding[MAX_INPUTS];
	static char encodings[COLUMNS_SIZE];
	const bool encoded = t->encodings[0] != '\0';
	int64_t width = 0;
	memcpy(inputs->names, t->columns, sizeof t->columns);
	memcpy(inputs->texts, t->categories, sizeof t->categories);
	memcpy(encodings, t->encodings, sizeof encodings);
	inputs->n = t->columns[0] == '\0' ? 0 : cut_names(inputs->names, name, MAX_INPUTS);
	const size_t texts =
			t->categories[0] == '\0' ? 0 : cut_names(inputs->texts, inputs->category, MAX_INPUTS);
	bool good = !encoded || cut_names(encodings, encoding, MAX_INPUTS) == inputs->n;
	size_t at = 0;
	for (size_t i = 0; good && i < inputs->n; i++) {
		choir_csv_column *c = &inputs->column[i];
		*c = (choir_csv_column){ .name = name[i], .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_F32 };
		good = !encoded || read_encoding((char *) (uintptr_t) encoding[i], c);
		good = good && c->categories <= texts - at;
		c->category = c->categories > 0 ? inputs->category + at : NULL;
		at += c->categories;
		width += table_column_width(c);
	}
	if (good && at == texts && (!encoded || width == t->inputs))
		return CHOIR_OK;
	return choir_fail(CHOIR_CORRUPT,
			"%s: metadata choir.encodings and choir.categories do not describe the %zu columns "
			"and %lld inputs",
			path, inputs->n, (long long) t->inputs);
}

static void add_name(char *list, size_t *at, const char *name[], size_t *n, const char *column,
		const char *between, const char *more)
{
	const size_t left = METADATA_SIZE - *at;
	if (*n == MAX_INPUTS || left < 2)
		return;
	name[(*n)++] = list + *at;
	const int length = snprintf(list + *at, left, "%s%s%s", column, between, more);
	*at += (size_t) length < left ? (size_t) length + 1 : left;
}

size_t table_number_names(
		const input_columns *inputs, char list[METADATA_SIZE], const char *name[MAX_INPUTS])
{
	size_t at = 0, n = 0;
	for (size_t i = 0; i < inputs->n; i++) {
		const choir_csv_column *c = &inputs->column[i];
		for (size_t k = 0; k < c->categories; k++)
			add_name(list, &at, name, &n, c->name, "=", c->category[k]);
		if (c->categories == 0)
			add_name(list, &at, name, &n, c->name, "", "");
		if (c->indicator)
			add_name(list, &at, name, &n, c->name, "", " is missing");
	}
	return n;
}

static choir_status read_format(const char *path, char *value, table_format *f)
{
	choir_status status;
	if (find_value(path, "choir.separator", value, &status)) {
		percent_decode(value);
		f->separator = value[0];
	}
	if (status == CHOIR_OK && find_value(path, "choir.decimal", value, &status))
		f->decimal = strcmp(value, "comma") == 0 ? ',' : '\0';
	if (status == CHOIR_OK && find_value(path, "choir.missing_values", value, &status)) {
		percent_decode(value);
		f->lists_missing = true;
		snprintf(f->missing, sizeof f->missing, "%.*s", MISSING_SIZE - 1, value);
	}
	return status;
}

choir_status table_plan_read(table_plan *t, const char *path)
{
	int64_t deviations;
	choir_status status;
	char *value = malloc(METADATA_SIZE);
	*t = (table_plan){ .inputs = 0 };
	if (value == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "%s: no memory for its metadata", path);
	status = read_numbers(path, "choir.mean", value, MAX_INPUTS, &t->inputs, t->mean);
	if (status == CHOIR_OK)
		status = read_numbers(
				path, "choir.deviation", value, MAX_INPUTS, &deviations, t->deviation);
	if (status == CHOIR_OK && deviations != t->inputs)
		status = choir_fail(CHOIR_CORRUPT,
				"%s: %lld means, %lld deviations; needs one of each per input", path,
				(long long) t->inputs, (long long) deviations);
	if (status == CHOIR_OK)
		status = read_numbers(
				path, "choir.target_mean", value, MAX_TARGETS, &t->targets, t->target_mean);
	if (status == CHOIR_OK)
		status = read_numbers(path, "choir.target_deviation", value, MAX_TARGETS, &deviations,
				t->target_deviation);
	if (status == CHOIR_OK && deviations != t->targets)
		status = choir_fail(CHOIR_CORRUPT,
				"%s: %lld target means, %lld deviations; needs one of each per target", path,
				(long long) t->targets, (long long) deviations);
	if (status == CHOIR_OK && find_value(path, "choir.columns", value, &status))
		snprintf(t->columns, sizeof t->columns, "%.*s", COLUMNS_SIZE - 1, value);
	if (status == CHOIR_OK && find_value(path, "choir.encodings", value, &status))
		snprintf(t->encodings, sizeof t->encodings, "%.*s", COLUMNS_SIZE - 1, value);
	if (status == CHOIR_OK && find_value(path, "choir.categories", value, &status))
		snprintf(t->categories, sizeof t->categories, "%s", value);
	if (status == CHOIR_OK && find_value(path, "choir.missing", value, &status))
		t->imputes = strcmp(value, "impute") == 0;
	if (status == CHOIR_OK)
		status = read_format(path, value, &t->format);
	if (status == CHOIR_OK && find_value(path, "choir.target", value, &status)) {
		percent_decode(value);
		snprintf(t->target, sizeof t->target, "%.255s", value);
	}
	if (status == CHOIR_OK && find_value(path, "choir.names", value, &status)) {
		snprintf(t->names, sizeof t->names, "%.*s", (int) sizeof t->names - 1, value);
		t->classes = cut_names(t->names, t->name, MAX_CLASS_NAMES);
	}
	free(value);
	return status;
}
