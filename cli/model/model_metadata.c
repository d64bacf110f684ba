// A model's plan as metadata of its weights.
#include "model/model_kinds.h"
#include "model/table_metadata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES = 4, VALUE_SIZE = 512 };

static const char *const activations[] = { "gelu", "gelu_tanh" };
static const char *const size_keys[SIZES] = { "width", "layers", "heads", "context" };

int model_read_list(const char *text, int64_t max, int capacity, int64_t out[])
{
	int n = 0;
	for (const char *p = text;; p++) {
		char *end;
		const long long value = strtoll(p, &end, 10);
		if (n == capacity || *p < '0' || *p > '9' || value < 1 || value > max)
			return -1;
		out[n++] = value;
		p = end;
		if (*p == '\0')
			return n;
		if (*p != ',')
			return -1;
	}
}

static size_t write_list(char *text, size_t size, const char *key, int n, const int64_t values[])
{
	size_t at = (size_t) snprintf(text, size, "choir.%s=", key);
	for (int i = 0; i < n && at < size; i++)
		at += (size_t) snprintf(
				text + at, size - at, "%s%lld", i == 0 ? "" : ",", (long long) values[i]);
	if (at < size)
		at += (size_t) snprintf(text + at, size - at, "\n");
	return at < size ? at : size;
}

static size_t write_size(char *text, size_t size, const model_size *s)
{
	const int64_t values[] = { s->width, s->layers, s->heads, s->context };
	size_t at = 0;
	for (size_t i = 0; i < SIZES; i++)
		if (values[i] != 0)
			at += write_list(text + at, size - at, size_keys[i], 1, &values[i]);
	if (s->batch_norm && at < size)
		at += (size_t) snprintf(text + at, size - at, "choir.normalization=batch\n");
	if (s->dropout > 0 && at < size)
		at += (size_t) snprintf(text + at, size - at, "choir.dropout=%.17g\n", s->dropout);
	return at < size ? at : size;
}

bool model_plan_write(const model_plan *plan, char text[METADATA_SIZE])
{
	size_t at = (size_t) snprintf(text, METADATA_SIZE,
			"choir.model=%s\nchoir.classes=%lld\nchoir.scale=%.17g\n", plan->kind,
			(long long) plan->classes, plan->scale);
	if (strcmp(plan->kind, "gpt") == 0)
		at += (size_t) snprintf(text + at, METADATA_SIZE - at, "choir.activation=%s\n",
				activations[plan->gelu_tanh]);
	if (plan->widths != 0)
		at += write_list(text + at, METADATA_SIZE - at, "widths", plan->widths, plan->width);
	at += write_size(text + at, METADATA_SIZE - at, &plan->size);
	at += write_list(text + at, METADATA_SIZE - at, "image", plan->image.rank, plan->image.dim);
	if (plan->table != NULL)
		at += table_plan_write(plan->table, text + at, METADATA_SIZE - at);
	return at < METADATA_SIZE;
}

static choir_status wrong_value(const char *path, const char *key, const char *value)
{
	return choir_fail(
			CHOIR_CORRUPT, "%s: metadata choir.%s has the invalid value \"%s\"", path, key, value);
}

static choir_status find(const char *path, const char *key, char value[VALUE_SIZE], bool *there)
{
	char name[VALUE_SIZE];
	snprintf(name, sizeof name, "choir.%s", key);
	const choir_status status = choir_weights_metadata(path, name, value, VALUE_SIZE);
	*there = status == CHOIR_OK;
	return status == CHOIR_NOT_FOUND ? CHOIR_OK : status;
}

static choir_status read_size(model_plan *plan, const char *path)
{
	model_size s = { 0 };
	int64_t *const to[SIZES] = { &s.width, &s.layers, &s.heads, &s.context };
	static const int64_t max[SIZES] = { MAX_WIDTH, MAX_LAYERS, MAX_WIDTH, MAX_CONTEXT };
	char value[VALUE_SIZE], *end;
	bool there;
	for (size_t i = 0; i < SIZES; i++) {
		CHOIR_TRY(find(path, size_keys[i], value, &there));
		if (there && model_read_list(value, max[i], 1, to[i]) != 1)
			return wrong_value(path, size_keys[i], value);
	}
	CHOIR_TRY(find(path, "dropout", value, &there));
	if (there)
		s.dropout = strtod(value, &end);
	if (there && (end == value || *end != '\0' || !(s.dropout > 0 && s.dropout < 1)))
		return wrong_value(path, "dropout", value);
	CHOIR_TRY(find(path, "normalization", value, &there));
	s.batch_norm = there;
	if (there && strcmp(value, "batch") != 0)
		return wrong_value(path, "normalization", value);
	return model_plan_resize(plan, &s);
}

// Files without this key have the tanh approximation.
static choir_status read_activation(model_plan *plan, const char *path)
{
	char value[VALUE_SIZE];
	bool there;
	CHOIR_TRY(find(path, "activation", value, &there));
	plan->gelu_tanh =
			strcmp(plan->kind, "gpt") == 0 && (!there || strcmp(value, activations[1]) == 0);
	if (there && strcmp(value, activations[plan->gelu_tanh]) != 0)
		return wrong_value(path, "activation", value);
	return CHOIR_OK;
}

static choir_status read_kind(model_plan *plan, const char *path)
{
	char kind[VALUE_SIZE], widths[VALUE_SIZE];
	bool there;
	CHOIR_TRY(choir_weights_metadata(path, "choir.model", kind, sizeof kind));
	CHOIR_TRY(find(path, "widths", widths, &there));
	CHOIR_TRY(model_plan_set(plan, kind, there ? widths : NULL));
	CHOIR_TRY(read_activation(plan, path));
	return read_size(plan, path);
}

// Whether products with the number of elements do not overflow.
static bool has_elements(const choir_shape *image)
{
	double elements = 1;
	for (int i = 0; i < image->rank; i++)
		elements *= (double) image->dim[i];
	return elements <= INT32_MAX;
}

choir_status model_plan_read(model_plan *plan, const char *path)
{
	char value[VALUE_SIZE];
	CHOIR_TRY(read_kind(plan, path));
	CHOIR_TRY(choir_weights_metadata(path, "choir.classes", value, sizeof value));
	if (model_read_list(value, MAX_WIDTH, 1, &plan->classes) != 1)
		return wrong_value(path, "classes", value);
	CHOIR_TRY(choir_weights_metadata(path, "choir.image", value, sizeof value));
	plan->image.rank = model_read_list(value, INT32_MAX, CHOIR_MAX_RANK - 1, plan->image.dim);
	if (plan->image.rank < 1 || !has_elements(&plan->image))
		return wrong_value(path, "image", value);
	CHOIR_TRY(choir_weights_metadata(path, "choir.scale", value, sizeof value));
	char *end;
	plan->scale = strtod(value, &end);
	if (end == value || *end != '\0' || !(plan->scale > 0))
		return wrong_value(path, "scale", value);
	if (model_plan_text(plan) && plan->classes != BYTES)
		return choir_fail(CHOIR_CORRUPT, "%s: a vocabulary of %lld; text needs %d", path,
				(long long) plan->classes, BYTES);
	CHOIR_TRY(model_plan_check(plan));
	if (plan->table == NULL)
		return CHOIR_OK;
	CHOIR_TRY(table_plan_read(plan->table, path));
	const int64_t inputs = plan->table->inputs, elements = choir_shape_elements(&plan->image);
	const int64_t channels = plan->image.rank < 3 ? elements : image_channels(plan);
	if (inputs != 0 && inputs != elements && inputs != channels)
		return choir_fail(CHOIR_CORRUPT,
				"%s: means of %lld inputs, examples of %lld numbers; needs one mean per number or "
				"channel",
				path, (long long) inputs, (long long) elements);
	if (plan->table->targets != 0 && plan->table->targets != plan->classes)
		return choir_fail(CHOIR_CORRUPT,
				"%s: means of %lld targets, a model of %lld targets; needs one mean per target",
				path, (long long) plan->table->targets, (long long) plan->classes);
	return CHOIR_OK;
}
