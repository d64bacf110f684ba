// Two models: a perceptron on the pixels, and a small convolutional network.
#include "model.h"
#include "table_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNEL = 3, POOL = 2, MOST_WIDTH = 1 << 20, CNN_WIDTHS = 3 };

const char *const model_kinds[] = { "mlp", "cnn", NULL };
static const char *const usual_widths[] = { "512,512", "32,64,128" };

// Numbers from 1 to most with commas between; the count, or -1.
static int read_list(const char *text, int64_t most, int room, int64_t out[])
{
	int n = 0;
	for (const char *p = text;; p++) {
		char *end;
		const long long value = strtoll(p, &end, 10);
		if (n == room || *p < '0' || *p > '9' || value < 1 || value > most)
			return -1;
		out[n++] = value;
		p = end;
		if (*p == '\0')
			return n;
		if (*p != ',')
			return -1;
	}
}

choir_status model_plan_set(model_plan *plan, const char *kind, const char *widths)
{
	int k = 0;
	while (model_kinds[k] != NULL && strcmp(model_kinds[k], kind) != 0)
		k++;
	if (model_kinds[k] == NULL)
		return choir_fail(
				CHOIR_NOT_FOUND, "model \"%s\": there is no such model; known: mlp, cnn", kind);
	plan->kind = model_kinds[k];
	plan->widths =
			read_list(widths ? widths : usual_widths[k], MOST_WIDTH, MOST_WIDTHS, plan->width);
	if (plan->widths < 0)
		return choir_fail(CHOIR_INVALID,
				"widths \"%s\": 1 to %d numbers from 1 to %d with commas "
				"between are needed",
				widths, MOST_WIDTHS, MOST_WIDTH);
	if (k == 1 && plan->widths != CNN_WIDTHS)
		return choir_fail(CHOIR_INVALID,
				"widths \"%s\": a cnn has three: two convolutions and a dense "
				"layer",
				widths);
	return CHOIR_OK;
}

// ---- Beside the weights.

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

void model_plan_write(const model_plan *plan, char text[METADATA_SIZE])
{
	size_t at = (size_t) snprintf(text, METADATA_SIZE,
			"choir.model=%s\nchoir.classes=%lld\nchoir.scale=%.17g\n", plan->kind,
			(long long) plan->classes, plan->scale);
	at += write_list(text + at, METADATA_SIZE - at, "widths", plan->widths, plan->width);
	at += write_list(text + at, METADATA_SIZE - at, "image", plan->image.rank, plan->image.dim);
	if (plan->table != NULL)
		table_plan_write(plan->table, text + at, METADATA_SIZE - at);
}

static choir_status wrong_value(const char *path, const char *key, const char *value)
{
	return choir_fail(CHOIR_CORRUPT, "%s: its %s, \"%s\", is none that choir train writes", path,
			key, value);
}

choir_status model_plan_read(model_plan *plan, const char *path)
{
	char value[METADATA_SIZE], widths[METADATA_SIZE];
	CHOIR_TRY(choir_checkpoint_metadata(path, "choir.widths", widths, sizeof widths));
	CHOIR_TRY(choir_checkpoint_metadata(path, "choir.model", value, sizeof value));
	CHOIR_TRY(model_plan_set(plan, value, widths));
	CHOIR_TRY(choir_checkpoint_metadata(path, "choir.classes", value, sizeof value));
	if (read_list(value, MOST_WIDTH, 1, &plan->classes) != 1)
		return wrong_value(path, "choir.classes", value);
	CHOIR_TRY(choir_checkpoint_metadata(path, "choir.image", value, sizeof value));
	plan->image.rank = read_list(value, INT32_MAX, CHOIR_MAX_RANK - 1, plan->image.dim);
	if (plan->image.rank < 1)
		return wrong_value(path, "choir.image", value);
	CHOIR_TRY(choir_checkpoint_metadata(path, "choir.scale", value, sizeof value));
	char *end;
	plan->scale = strtod(value, &end);
	if (end == value || *end != '\0' || !(plan->scale > 0))
		return wrong_value(path, "choir.scale", value);
	return plan->table != NULL ? table_plan_read(plan->table, path) : CHOIR_OK;
}

// ---- Layers.

static choir_status build_mlp(model *m)
{
	choir_layer *layers[MOST_WIDTHS + 1];
	const model_plan *plan = &m->plan;
	int64_t in = choir_shape_elements(&plan->image);
	for (int i = 0; i < plan->widths; i++) {
		char name[32];
		snprintf(name, sizeof name, "hidden%d", i + 1);
		layers[i] = choir_dense_new(name, in, plan->width[i], CHOIR_RELU);
		in = plan->width[i];
	}
	layers[plan->widths] = choir_dense_new("classes", in, plan->classes, CHOIR_LINEAR);
	m->net = choir_sequential_new((size_t) plan->widths + 1, layers);
	return m->net == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_status build_cnn(model *m)
{
	const model_plan *plan = &m->plan;
	const int64_t *size = plan->image.dim, *width = plan->width;
	const int64_t lost = 2 * (KERNEL - 1), least = lost + POOL;
	if (plan->image.rank != 2 && plan->image.rank != 3)
		return choir_fail(CHOIR_INVALID,
				"cnn: images with %d dimensions: height and width, or height, "
				"width and channels are needed",
				plan->image.rank);
	if (size[0] < least || size[1] < least)
		return choir_fail(CHOIR_INVALID,
				"cnn: images of %lld x %lld are too small: at least %lld x "
				"%lld is needed",
				(long long) size[0], (long long) size[1], (long long) least, (long long) least);
	const choir_conv2d_options *relu =
			CHOIR_OPTIONS(choir_conv2d_options, .activation = CHOIR_RELU);
	const int64_t flat = (size[0] - lost) / POOL * ((size[1] - lost) / POOL) * width[1];
	choir_layer *layers[] = {
		choir_conv2d_new("conv1", plan->image.rank == 3 ? size[2] : 1, width[0], KERNEL, relu),
		choir_conv2d_new("conv2", width[0], width[1], KERNEL, relu),
		choir_max_pool2d_new(POOL, POOL),
		choir_flatten_new(),
		choir_dense_new("hidden", flat, width[2], CHOIR_RELU),
		choir_dense_new("classes", width[2], plan->classes, CHOIR_LINEAR),
	};
	m->net = choir_sequential_new(sizeof layers / sizeof layers[0], layers);
	return m->net == NULL ? choir_error_status() : CHOIR_OK;
}

choir_status model_build(model *m, const model_plan *plan)
{
	m->plan = *plan;
	m->net = NULL;
	if (plan->image.rank < 1)
		return choir_fail(CHOIR_INVALID,
				"%s: its images are single numbers; are images and labels "
				"exchanged?",
				plan->kind);
	return strcmp(plan->kind, "mlp") == 0 ? build_mlp(m) : build_cnn(m);
}

choir_tensor *model_apply(const model *m, choir_tensor *images)
{
	const int64_t n = choir_tensor_shape(images)->dim[0]; // may be 0; that of NULL is
	const choir_shape *one = &m->plan.image;
	if (strcmp(m->plan.kind, "mlp") == 0)
		images = choir_reshape(images, CHOIR_SHAPE(n, choir_shape_elements(one)));
	else
		images = choir_reshape(images,
				CHOIR_SHAPE(n, one->dim[0], one->dim[1], one->rank == 3 ? one->dim[2] : 1));
	return choir_layer_apply(m->net, images);
}
