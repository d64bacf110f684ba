// Opens the data of --data by name, and inspects shapes, labels and number of examples.
#include "data/source.h"
#include "data/columns.h"
#include "data/open.h"
#include "data/table_data.h"
#include "data/text_data.h"
#include "report.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DRAWN = 12000, MAX_CLASSES = 1 << 20, INSPECTED_AT_ONCE = 1024 };

const char source_help[] = "mnist (10,000 real digits), digits or digits:N (synthetic),\n"
						   "idx:IMAGES,LABELS (IDX files, also .gz), npy:X,Y, npy:FILE.npz,\n"
						   "csv:FILE, tfrecord:FILE, hdf5:FILE, cifar10:DIR; for gpt:\n"
						   "text:FILE (any bytes). FILE may be a list with commas or a\n"
						   "pattern; npy:FILE.npz#x,y and hdf5:FILE#x,y select arrays\n"
						   "(train: mnist; predict: required)";

// ---- The files of mnist.

static const char mnist_images[] = "mnist-10k-images-idx3-ubyte.gz";
static const char mnist_labels[] = "mnist-10k-labels-idx1-ubyte.gz";

static bool in_directory(source *s, const char *directory)
{
	const int a = snprintf(s->images, sizeof s->images, "%s/%s", directory, mnist_images);
	const int b = snprintf(s->labels, sizeof s->labels, "%s/%s", directory, mnist_labels);
	return a < PATH_SIZE && b < PATH_SIZE && access(s->images, R_OK) == 0 &&
			access(s->labels, R_OK) == 0;
}

// Removes the last steps components of this program's path and appends inside; "": unknown.
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

static choir_status open_mnist(source *s)
{
	char installed[PATH_SIZE], built[PATH_SIZE];
	near_program(installed, 2, "/share/choir");
	near_program(built, 1, "/data"); // in a build: a link to the source's data
	const char *directories[] = { getenv("CHOIR_DATA_DIR"), installed, built };
	for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++)
		if (directories[i] != NULL && directories[i][0] != '\0' && in_directory(s, directories[i]))
			return CHOIR_OK;
	return choir_fail(CHOIR_NOT_FOUND,
			"data mnist: %s and %s not found in %s%s%s and %s; set CHOIR_DATA_DIR", mnist_images,
			mnist_labels, directories[0] ? directories[0] : "", directories[0] ? ", " : "",
			installed, built);
}

// ---- Names.

static choir_status open_files(source *s, const char *files)
{
	const size_t length = strcspn(files, ",");
	const char *labels = files[length] == ',' ? files + length + 1 : "";
	if (length == 0 || (files[length] == ',' && labels[0] == '\0') || strchr(labels, ',') != NULL)
		return choir_fail(CHOIR_INVALID, "data \"%s\": needs %s", s->name,
				s->npy ? "npy:INPUTS,LABELS" : "idx:IMAGES,LABELS");
	if (length >= PATH_SIZE || strlen(labels) >= PATH_SIZE)
		return choir_fail(CHOIR_INVALID, "data: path too long: %zu bytes",
				length < PATH_SIZE ? strlen(labels) : length);
	memcpy(s->images, files, length);
	s->images[length] = '\0';
	memcpy(s->labels, labels, strlen(labels) + 1);
	return CHOIR_OK;
}

// The number of synthetic digits in "N"; 0: not a valid number.
static int64_t drawn_count(const char *count)
{
	char *end = NULL;
	const long long n = strtoll(count, &end, 10);
	return isdigit((unsigned char) count[0]) && *end == '\0' && n <= INT32_MAX ? n : 0;
}

static choir_status open_drawn(source *s, const char *count)
{
	s->drawn = true;
	s->examples = count == NULL ? DRAWN : drawn_count(count);
	return s->examples > 0
			? CHOIR_OK
			: choir_fail(CHOIR_INVALID, "data \"%s\": needs digits:N with N from 1 to %d", s->name,
					  INT32_MAX);
}

bool source_is_built_in(const char *name, int64_t max)
{
	if (strncmp(name, "digits:", 7) == 0)
		return drawn_count(name + 7) <= max;
	return strcmp(name, "mnist") == 0 || strcmp(name, "digits") == 0;
}

// The kind of data that a file's suffix means; NULL: unknown.
static const char *kind_by_name(const char *name)
{
	named_file file;
	if (strchr(name, ':') != NULL || named_file_set(&file, name) != CHOIR_OK)
		return NULL;
	return file.kind;
}

static choir_status understand(source *s)
{
	if (strcmp(s->name, "mnist") == 0)
		return open_mnist(s);
	if (strcmp(s->name, "digits") == 0)
		return open_drawn(s, NULL);
	if (strncmp(s->name, "digits:", 7) == 0)
		return open_drawn(s, s->name + 7);
	if (strncmp(s->name, "idx:", 4) == 0)
		return open_files(s, s->name + 4);
	if (strncmp(s->name, "npy:", 4) == 0) {
		s->npy = s->mixed = true;
		return open_files(s, s->name + 4);
	}
	const char *kind = kind_by_name(s->name);
	if (kind != NULL)
		return choir_fail(CHOIR_NOT_FOUND, "data \"%s\": unknown data; did you mean %s:%s?",
				s->name, kind, s->name);
	return choir_fail(CHOIR_NOT_FOUND,
			"data \"%s\": unknown data; known: mnist, digits, digits:N, "
			"idx:IMAGES,LABELS, npy:INPUTS,LABELS, npy:FILE.npz, "
			"csv:FILE, tfrecord:FILE, hdf5:FILE, cifar10:DIR, text:FILE",
			s->name);
}

choir_status source_set_target(source *s, const char *name)
{
	const size_t n = strlen(name);
	if (n >= sizeof s->target)
		return choir_fail(CHOIR_INVALID,
				"target: column name of %zu bytes; at most %d are supported", n, TARGET_SIZE - 1);
	memcpy(s->target, name, n + 1);
	return CHOIR_OK;
}

choir_files *source_files(const char *list)
{
	const char *name[PATH_SIZE] = { list }; // more than the commas that fit into text
	char text[PATH_SIZE];
	size_t n = 1;
	if (strlen(list) >= sizeof text) {
		choir_fail(CHOIR_INVALID, "data: list of files too long: %zu bytes", strlen(list));
		return NULL;
	}
	strcpy(text, list);
	if (access(list, F_OK) != 0) {
		name[0] = text;
		for (char *p = text; (p = strchr(p, ',')) != NULL;) {
			*p++ = '\0';
			name[n++] = p;
		}
	}
	return choir_files_new(n, name);
}

choir_status source_all_files(const char *name, choir_files **files)
{
	char pattern[PATH_SIZE];
	const char *list = strchr(name, ':'), *all = pattern;
	*files = NULL;
	if (list == NULL || source_is_built_in(name, INT32_MAX))
		return CHOIR_OK;
	array_names arrays;
	CHOIR_TRY(array_names_set(&arrays, list + 1));
	if (strncmp(name, "cifar10:", 8) != 0)
		*files = source_files(arrays.file);
	else if (snprintf(pattern, sizeof pattern, "%s/*_batch*.bin", list + 1) < PATH_SIZE)
		*files = choir_files_new(1, &all);
	else
		choir_fail(CHOIR_INVALID, "data: path too long: %zu bytes", strlen(list));
	return *files == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_dataset *open_idx(const char *path, void *column)
{
	return choir_idx_dataset_new(path, column);
}

static choir_dataset *open_npy(const char *path, void *column)
{
	return choir_npy_dataset_new(path, column);
}

static choir_dataset *open_array(const source *s, const char *path, char *column)
{
	choir_file_fn *open = s->npy ? open_npy : open_idx;
	if (access(path, F_OK) == 0 || strpbrk(path, "*?[") == NULL)
		return open(path, column);
	return choir_files_dataset_new(choir_files_new(1, &path), open, column);
}

// The columns' names, which must live as long as datasets of several files.
static char image_column[] = "image", label_column[] = "label";

// ---- Inspecting the data.

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
		return choir_fail(CHOIR_INVALID, "%s: example %lld has label %lld; needs 0 to %lld",
				s->labels, (long long) number, (long long) label, (long long) s->max_classes - 1);
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
				"%s: labels are %s with %d dimensions; needs "
				"one whole number (u8, i32 or i64) per example",
				s->labels, choir_dtype_name(dtype), shape->rank - 1);
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
	choir_status status = source_inspect(s,
			choir_dataset_batch(open_array(s, s->images, image_column), 1), false, inspect_image);
	if (status == CHOIR_END)
		return choir_fail(CHOIR_INVALID, "%s: has no examples", s->images);
	CHOIR_TRY(status);
	s->labelled = s->labels[0] != '\0';
	if (s->labelled)
		status = source_inspect(s,
				choir_dataset_batch(open_array(s, s->labels, label_column), INSPECTED_AT_ONCE),
				true, inspect_labels);
	else
		status = source_inspect(s,
				choir_dataset_batch(open_array(s, s->images, image_column), INSPECTED_AT_ONCE),
				true, count_images);
	return status == CHOIR_END ? CHOIR_OK : status;
}

static choir_status open_source(source *s, const char *name)
{
	if (strncmp(name, "csv:", 4) == 0)
		return table_open(s, name + 4, inspect_labels);
	if (strncmp(name, "text:", 5) == 0)
		return text_open(s, name + 5);
	if (columns_known(name))
		return columns_open(s, inspect_labels);
	CHOIR_TRY(understand(s));
	s->standardized = s->npy;
	if (!s->drawn)
		return inspect_files(s);
	s->labelled = true;
	s->shape = CHOIR_SHAPE(28, 28);
	s->scale = 1 / 255.0;
	s->classes = 10;
	return CHOIR_OK;
}

static choir_dataset *all_examples(const source *s)
{
	if (s->csv)
		return table_examples(s);
	if (s->text)
		return text_examples(s);
	if (s->gathered)
		return columns_examples(s);
	choir_dataset *d = s->drawn ? choir_synthetic_digits_dataset_new(s->examples, s->seed)
								: open_array(s, s->images, image_column);
	if (!s->drawn && s->labelled)
		d = choir_dataset_zip(d, open_array(s, s->labels, label_column));
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
	if (s->wrong != CHOIR_BAD_RECORD_ERROR && (s->drawn || s->text))
		return choir_fail(CHOIR_UNSUPPORTED,
				"data \"%s\": has no bad rows; --bad-rows skip does not apply", name);
	if (s->strays > 0 && s->examples == 0)
		return choir_fail(CHOIR_INVALID, "data \"%s\": none of %lld examples has a valid label",
				name, (long long) s->strays);
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
	if (json) {
		json_integer("rows_without_value", s->dropped);
		json_integer("wrong_rows", s->skipped);
		return;
	}
	if (s->dropped != 0)
		printf("rows with a missing value, skipped: %lld\n", (long long) s->dropped);
	if (s->skipped != 0)
		printf("bad rows, skipped: %lld\n", (long long) s->skipped);
}

size_t source_inputs(const source *s, char *list, size_t size)
{
	list[0] = '\0';
	if (s->csv)
		return table_inputs(s, list, size);
	return s->gathered ? columns_inputs(s, list, size) : 0;
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
