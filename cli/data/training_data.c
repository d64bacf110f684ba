// Data to train on or to classify: opens them by kind, and finds shapes, labels and the number of
// examples.
#include "data/training_data.h"
#include "data/column_data.h"
#include "data/image_data.h"
#include "data/raw_data.h"
#include "data/table_data.h"
#include "data/text_data.h"
#include "output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_CLASSES = 1 << 20, INSPECTED_AT_ONCE = 1024 };

static const char mnist_images[] = "mnist-10k-images-idx3-ubyte.gz";
static const char mnist_labels[] = "mnist-10k-labels-idx1-ubyte.gz";

static bool in_directory(data_name *d, const char *directory)
{
	const int a = snprintf(d->path, sizeof d->path, "%s/%s", directory, mnist_images);
	const int b = snprintf(d->labels, sizeof d->labels, "%s/%s", directory, mnist_labels);
	return a < PATH_SIZE && b < PATH_SIZE && access(d->path, R_OK) == 0 &&
			access(d->labels, R_OK) == 0;
}

// The path of this program without its last steps components, then inside; "": unknown.
static void near_program(char directory[PATH_SIZE], int steps, const char *inside)
{
	const ssize_t n = readlink("/proc/self/exe", directory, PATH_SIZE - strlen(inside) - 1);
	directory[n < 0 ? 0 : n] = '\0';
	for (int up = 0; up < steps; up++) {
		char *slash = strrchr(directory, '/');
		if (slash == NULL) {
			directory[0] = '\0';
			return;
		}
		*slash = '\0';
	}
	strcat(directory, inside);
}

static choir_status find_mnist(data_name *d)
{
	char installed[PATH_SIZE], built[PATH_SIZE];
	near_program(installed, 2, "/share/choir");
	near_program(built, 1, "/data"); // a link in a build
	const char *directories[] = { getenv("CHOIR_DATA_DIR"), installed, built };
	for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++)
		if (directories[i] != NULL && directories[i][0] != '\0' && in_directory(d, directories[i]))
			return CHOIR_OK;
	return choir_fail(CHOIR_NOT_FOUND,
			"data mnist: %s and %s not found in %s%s%s and %s; set CHOIR_DATA_DIR", mnist_images,
			mnist_labels, directories[0] ? directories[0] : "", directories[0] ? ", " : "",
			installed, built);
}

choir_status source_set_target(source *s, const char *name)
{
	const size_t n = strlen(name);
	if (n >= sizeof s->target)
		return choir_fail(CHOIR_INVALID, "target: a column name of %zu bytes; needs at most %d", n,
				TARGET_SIZE - 1);
	memcpy(s->target, name, n + 1);
	return CHOIR_OK;
}

choir_status source_set_categorical(source *s, const char *list)
{
	if (strlen(list) >= sizeof s->categorical_names)
		return choir_fail(CHOIR_INVALID, "--categorical: a list of %zu bytes; needs at most %d",
				strlen(list), COLUMNS_SIZE - 1);
	strcpy(s->categorical_names, list);
	for (char *p = s->categorical_names; p != NULL;) {
		if (s->categoricals == MAX_COLUMNS)
			return choir_fail(CHOIR_INVALID, "--categorical: more than %d columns; needs fewer",
					MAX_COLUMNS);
		s->categorical[s->categoricals++] = p;
		p = strchr(p, ',');
		if (p != NULL)
			*p++ = '\0';
	}
	return CHOIR_OK;
}

choir_status source_set_regression(source *s)
{
	snprintf(s->target_names, sizeof s->target_names, "%s", s->target);
	s->task = TASK_REGRESSION;
	s->targets = 0;
	for (; s->targets < s->given_classes && s->targets < MAX_TARGETS; s->targets++)
		s->target_name[s->targets] = s->given_class[s->targets];
	if (s->whole_target)
		s->target_name[s->targets++] = s->target_names;
	for (char *p = s->targets > 0 ? NULL : s->target_names; p != NULL; s->targets++) {
		if (s->targets == MAX_TARGETS)
			return choir_fail(CHOIR_INVALID, "--target %s: more than %d columns; needs fewer",
					s->target, MAX_TARGETS);
		s->target_name[s->targets] = p;
		p = strchr(p, ',');
		if (p != NULL)
			*p++ = '\0';
	}
	return CHOIR_OK;
}

// The columns' names, which must live as long as the datasets.
static char image_column[] = "image", label_column[] = "label";

choir_tensor *source_column(choir_values *batch, const char *name)
{
	return choir_value_local(choir_values_find(batch, name), 0);
}

choir_status source_inspect(source *s, choir_dataset *d, bool all, inspect_fn *fn)
{
	choir_strategy *one = choir_one_device_strategy_new(NULL);
	if (one == NULL) {
		choir_dataset_free(d);
		return choir_error_status();
	}
	choir_distributed_dataset *data = choir_strategy_distribute_dataset(one, d, NULL);
	choir_values *batch = NULL;
	choir_status status = data == NULL ? choir_error_status() : CHOIR_OK;
	do {
		if (status == CHOIR_OK)
			status = choir_distributed_dataset_next(data, &batch);
		if (status == CHOIR_OK)
			status = fn(s, batch);
	} while (all && status == CHOIR_OK);
	if (status == CHOIR_END) {
		s->dropped = choir_dataset_dropped(d);
		s->skipped = choir_dataset_skipped(d);
	}
	choir_values_free(batch);
	choir_strategy_free(one);
	return status;
}

static choir_status inspect_image(source *s, choir_values *batch)
{
	const choir_tensor *t = source_column(batch, "image");
	const choir_shape *shape = choir_tensor_shape(t);
	s->shape.rank = shape->rank - 1;
	for (int i = 0; i < s->shape.rank; i++)
		s->shape.dim[i] = shape->dim[i + 1];
	s->scale = choir_tensor_dtype(t) == CHOIR_U8 ? 1 / 255.0 : 1;
	return CHOIR_OK;
}

static int64_t label_of(choir_dtype dtype, const void *data, int64_t i)
{
	switch (dtype) {
	case CHOIR_U8:
		return ((const uint8_t *) data)[i];
	case CHOIR_I32:
		return ((const int32_t *) data)[i];
	default:
		return ((const int64_t *) data)[i];
	}
}

int64_t source_label(const choir_tensor *labels, int64_t i)
{
	return label_of(choir_tensor_dtype(labels), choir_tensor_data(labels), i);
}

static choir_status inspect_stray(source *s, int64_t label)
{
	const int64_t number = s->examples + s->strays;
	if (s->wrong == CHOIR_BAD_RECORD_ERROR)
		return choir_fail(CHOIR_INVALID,
				"data \"%s\": example %lld has label %lld%s%s; needs 0 to %lld%s", s->name,
				(long long) number, (long long) label, s->csv ? " in column " : "",
				s->csv ? s->target : "", (long long) s->max_classes - 1,
				s->csv ? ", or --task regression" : "");
	s->strays++;
	if (s->held_out > 0 && number >= s->first_held_out)
		s->held_out--;
	return CHOIR_OK;
}

static choir_status inspect_labels(source *s, choir_values *batch)
{
	const choir_tensor *t = source_column(batch, "label");
	const choir_shape *shape = choir_tensor_shape(t);
	const choir_dtype dtype = choir_tensor_dtype(t);
	if (shape->rank != 1 || (dtype != CHOIR_U8 && dtype != CHOIR_I32 && dtype != CHOIR_I64))
		return choir_fail(CHOIR_INVALID,
				"data \"%s\": labels are %s with %d dimensions; needs "
				"one whole number (u8, i32 or i64) per example",
				s->name, choir_dtype_name(dtype), shape->rank - 1);
	for (int64_t i = 0; i < shape->dim[0]; i++) {
		const int64_t label = source_label(t, i);
		if (label < 0 || label >= s->max_classes) {
			CHOIR_TRY(inspect_stray(s, label));
			continue;
		}
		if (label >= s->classes)
			s->classes = label + 1;
		s->examples++;
	}
	return CHOIR_OK;
}

static choir_status count_images(source *s, choir_values *batch)
{
	s->examples += choir_tensor_shape(source_column(batch, "image"))->dim[0];
	return CHOIR_OK;
}

static choir_status inspect_files(source *s)
{
	const data_name *d = &s->data;
	choir_status status =
			source_inspect(s, choir_dataset_batch(data_open_array(d, d->path, image_column), 1),
					false, inspect_image);
	if (status == CHOIR_END)
		return choir_fail(CHOIR_INVALID, "%s: has no examples; needs at least one", d->path);
	CHOIR_TRY(status);
	s->labelled = d->labels[0] != '\0';
	s->mixed = s->standardized = d->kind == DATA_NPY;
	choir_dataset *counted = s->labelled ? data_open_array(d, d->labels, label_column)
										 : data_open_array(d, d->path, image_column);
	status = source_inspect(s, choir_dataset_batch(counted, INSPECTED_AT_ONCE), true,
			s->labelled ? inspect_labels : count_images);
	return status == CHOIR_END ? CHOIR_OK : status;
}

static choir_status set_digits(source *s)
{
	s->examples = s->data.number;
	s->labelled = true;
	s->shape = CHOIR_SHAPE(28, 28);
	s->scale = 1 / 255.0;
	s->classes = 10;
	return CHOIR_OK;
}

static choir_status open_source(source *s, const char *name)
{
	CHOIR_TRY(data_name_read(&s->data, name, DATA_LEARN));
	switch (s->data.kind) {
	case DATA_DIGITS:
		return set_digits(s);
	case DATA_CSV:
		return table_open(s, inspect_labels);
	case DATA_TEXT:
		return text_open(s);
	case DATA_IMAGES:
		return image_open(s);
	case DATA_NPZ:
	case DATA_HDF5:
	case DATA_TFRECORD:
	case DATA_CIFAR10:
		return columns_open(s, inspect_labels);
	case DATA_MNIST:
		CHOIR_TRY(find_mnist(&s->data));
		return inspect_files(s);
	default:
		return inspect_files(s);
	}
}

static choir_dataset *all_examples(const source *s)
{
	const data_name *data = &s->data;
	if (s->csv)
		return table_examples(s);
	if (s->text)
		return text_examples(s);
	if (s->images)
		return image_examples(s);
	if (s->gathered)
		return columns_examples(s);
	choir_dataset *d = data->kind == DATA_DIGITS
			? choir_synthetic_digits_dataset_new(s->examples, s->seed)
			: data_open_array(data, data->path, image_column);
	if (data->labels[0] != '\0')
		d = choir_dataset_zip(d, data_open_array(data, data->labels, label_column));
	return choir_dataset_to_float(d, "image", s->scale);
}

static choir_status find_labels(source *s)
{
	choir_dataset *d = all_examples(s);
	if (d == NULL)
		return choir_error_status();
	while (strcmp(choir_dataset_column(d, s->label_at)->name, s->label) != 0)
		s->label_at++;
	choir_dataset_free(d);
	return CHOIR_OK;
}

choir_status source_open(source *s, const char *name, uint64_t seed)
{
	s->name = name;
	s->seed = seed;
	s->input = "image";
	s->label = "label";
	s->max_classes = MAX_CLASSES;
	CHOIR_TRY(open_source(s, name));
	if (s->moments == 0)
		s->moments = choir_shape_elements(&s->shape);
	if (s->wrong != CHOIR_BAD_RECORD_ERROR && (s->data.kind == DATA_DIGITS || s->text))
		return choir_fail(CHOIR_UNSUPPORTED,
				"--bad-rows skip: data \"%s\" has no rows that can be bad; needs --bad-rows error",
				name);
	if (s->strays > 0 && s->examples == 0)
		return choir_fail(CHOIR_INVALID,
				"data \"%s\": none of %lld examples has a valid label; needs 0 to %lld", name,
				(long long) s->strays, (long long) s->max_classes - 1);
	s->skipped += s->strays;
	return s->strays == 0 ? CHOIR_OK : find_labels(s);
}

static bool has_label(const choir_component in[], void *user)
{
	const source *s = user;
	const choir_component *e = &in[s->label_at];
	const int64_t label = label_of(e->dtype, e->data, 0);
	return label >= 0 && label < s->max_classes;
}

choir_dataset *source_examples(const source *s)
{
	choir_dataset *d = all_examples(s);
	return s->strays == 0 ? d : choir_dataset_filter(d, has_label, (void *) (uintptr_t) s);
}

void source_print(const source *s, bool json)
{
	if (s->csv)
		table_print(s, json);
	if (s->gathered)
		columns_print(s, json);
	if (s->images && !json)
		image_print(s);
	if (json) {
		json_integer("rows_without_value", s->dropped);
		json_integer("wrong_rows", s->skipped);
		return;
	}
	if (s->dropped != 0)
		printf("rows with a missing value, skipped: %lld\n", (long long) s->dropped);
	if (s->skipped != 0)
		printf("bad %s, skipped: %lld\n", s->images ? "images" : "rows", (long long) s->skipped);
}

size_t source_inputs(const source *s, char *list, size_t size)
{
	list[0] = '\0';
	if (s->csv)
		return table_inputs(s, list, size);
	return s->gathered ? columns_inputs(s, list, size) : 0;
}

choir_status source_describe(const source *s, table_plan *t)
{
	snprintf(t->target, sizeof t->target, "%s", s->target);
	t->imputes = s->imputes;
	t->format = s->format;
	if (source_inputs(s, t->columns, COLUMNS_SIZE) >= COLUMNS_SIZE)
		t->columns[0] = '\0'; // too many to save
	return s->csv ? table_describe(s, t) : CHOIR_OK;
}

void source_keep_one_hot(const source *s, float mean[], float deviation[])
{
	if (s->csv)
		table_keep_one_hot(s, mean, deviation);
}

void source_close(source *s)
{
	choir_dataset_free(s->names);
	s->names = NULL;
	free(s->rows.image);
	free(s->rows.label);
	s->rows = (table_rows){ .n = 0 };
	free(s->columns);
	s->columns = NULL;
}
