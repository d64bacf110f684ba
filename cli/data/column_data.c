// Named columns: one holds the labels, all others are concatenated to the input. A single input
// column keeps its shape, so images stay images.
#include "data/column_data.h"
#include "percent_encoding.h"
#include "data/data_report.h"
#include "data/raw_data.h"
#include "number.h"
#include "output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INSPECTED_AT_ONCE = 1024 };

static choir_status not_all_arrays(const source *s)
{
	const data_name *d = &s->data;
	const choir_status status = choir_error_status();
	if (d->arrays > 0 || status == CHOIR_NOT_FOUND || status == CHOIR_IO ||
			(d->kind != DATA_NPZ && d->kind != DATA_HDF5))
		return status;
	return choir_fail(
			status, "%s (select arrays with %s:%s#NAME,NAME)", choir_error(), d->word, d->path);
}

static choir_status take_inputs(source *s, const choir_dataset *d)
{
	column_plan *p = s->columns;
	const choir_column *c;
	bool bytes = true;
	int64_t numbers = 0;
	for (size_t i = 0; (c = choir_dataset_column(d, i)) != NULL; i++) {
		const int64_t n = choir_shape_elements(&c->shape);
		if (i == p->target || n < 1)
			continue;
		if (p->inputs == MAX_COLUMNS)
			return choir_fail(CHOIR_UNSUPPORTED,
					"data \"%s\": too many input columns; needs at most %d", s->name, MAX_COLUMNS);
		p->input[p->inputs++] = i;
		bytes = bytes && c->dtype == CHOIR_U8;
		numbers += n;
		s->shape = c->shape;
	}
	if (p->inputs == 0)
		return choir_fail(CHOIR_INVALID,
				"data \"%s\": has no column of numbers besides the target \"%s\"; needs one",
				s->name, s->target);
	if (p->inputs > 1 || s->shape.rank == 0)
		s->shape = CHOIR_SHAPE(numbers);
	s->scale = bytes ? 1 / 255.0 : 1;
	s->standardized = !bytes && s->shape.rank == 1;
	return CHOIR_OK;
}

static choir_status no_such_target(const source *s, const choir_dataset *d)
{
	char known[400] = "";
	size_t at = 0;
	const choir_column *c;
	for (size_t i = 0; (c = choir_dataset_column(d, i)) != NULL && at < sizeof known; i++)
		at += (size_t) snprintf(
				known + at, sizeof known - at, "%s\"%.60s\"", i == 0 ? "" : ", ", c->name);
	return choir_fail(CHOIR_NOT_FOUND, "data \"%s\": has no column \"%s\"; known: %s", s->name,
			s->target, known);
}

static choir_status take_target(source *s, const choir_dataset *d)
{
	const choir_column *c, *found = NULL;
	const char *name = s->target[0] != '\0' ? s->target : "label";
	for (size_t i = 0; (c = choir_dataset_column(d, i)) != NULL; i++) {
		const bool same = strcmp(c->name, name) == 0;
		if (same || s->target[0] == '\0') {
			found = c;
			s->columns->target = i;
		}
		if (same)
			break;
	}
	if (found == NULL)
		return no_such_target(s, d);
	CHOIR_TRY(source_set_target(s, found->name));
	const bool whole = found->dtype == CHOIR_I64 || found->dtype == CHOIR_I32 ||
			found->dtype == CHOIR_U8 || found->dtype == CHOIR_BOOL;
	if (!whole || choir_shape_elements(&found->shape) != 1)
		return choir_fail(CHOIR_INVALID,
				"data \"%s\": column \"%s\" is %s with %d dimensions; needs one whole number per "
				"example (choose another with --target)",
				s->name, s->target, choir_dtype_name(found->dtype), found->shape.rank);
	return CHOIR_OK;
}

static choir_status gather(const choir_component in[], choir_component out[], void *user)
{
	const column_plan *p = user;
	float *image = out[0].data;
	for (size_t k = 0; k < p->inputs; k++) {
		const choir_component *from = &in[p->input[k]];
		const int64_t n = choir_shape_elements(&from->shape);
		for (int64_t i = 0; i < n; i++)
			*image++ = (float) number_at(from->dtype, from->data, i);
	}
	const choir_component *label = &in[p->target];
	*(int64_t *) out[1].data = label->dtype == CHOIR_I64 // a double has only 53 bits
			? *(const int64_t *) label->data
			: (int64_t) number_at(label->dtype, label->data, 0);
	return CHOIR_OK;
}

static choir_dataset *gathered(const source *s)
{
	const choir_column columns[] = {
		{ .name = "image", .dtype = CHOIR_F32, .shape = s->shape },
		{ .name = "label", .dtype = CHOIR_I64, .shape = CHOIR_SCALAR },
	};
	return choir_dataset_map(data_open(&s->data, s->wrong),
			CHOIR_OPTIONS(choir_map_options, .n = 2, .columns = columns), gather, s->columns);
}

choir_dataset *columns_examples(const source *s)
{
	return choir_dataset_to_float(gathered(s), "image", s->scale);
}

static int64_t cifar10_tests(const char *directory)
{
	choir_dataset *d = choir_cifar10_dataset_new(directory, true);
	const int64_t n = choir_dataset_cardinality(d);
	choir_dataset_free(d);
	return n;
}

choir_status columns_open(source *s, inspect_fn *count)
{
	s->columns = calloc(1, sizeof *s->columns);
	if (s->columns == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "data \"%s\": out of memory", s->name);
	choir_dataset *d = data_open(&s->data, s->wrong);
	if (d == NULL)
		return not_all_arrays(s);
	const int64_t all = choir_dataset_cardinality(d);
	choir_status status = take_target(s, d);
	if (status == CHOIR_OK)
		status = take_inputs(s, d);
	choir_dataset_free(d);
	CHOIR_TRY(status);
	s->gathered = s->labelled = true;
	if (s->data.kind == DATA_CIFAR10) {
		s->held_out = cifar10_tests(s->data.path);
		s->first_held_out = all - s->held_out;
		s->max_classes = 10;
	}
	s->mixed = s->held_out == 0;
	status = source_inspect(s, choir_dataset_batch(gathered(s), INSPECTED_AT_ONCE), true, count);
	if (status != CHOIR_END && status != CHOIR_OK)
		return status;
	if (s->examples + s->strays == 0)
		return choir_fail(
				CHOIR_INVALID, "data \"%s\": has no examples; needs at least one", s->name);
	return CHOIR_OK;
}

size_t columns_inputs(const source *s, char *list, size_t size)
{
	choir_dataset *d = data_open(&s->data, s->wrong); // for the columns' names
	size_t at = 0;
	for (size_t i = 0; i < s->columns->inputs && at < size; i++) {
		const choir_column *c = choir_dataset_column(d, s->columns->input[i]);
		at = percent_encode_to_list(list, at, size, c == NULL ? "?" : c->name);
	}
	choir_dataset_free(d);
	return at;
}

void columns_print(const source *s, bool json)
{
	choir_dataset *d = data_open(&s->data, s->wrong); // for the columns' names
	const choir_column *c;
	size_t n = 0, printed = 0;
	while (choir_dataset_column(d, n) != NULL)
		n++;
	printed_column *columns = calloc(n + 1, sizeof *columns);
	for (size_t i = 0, k = 0; columns != NULL && (c = choir_dataset_column(d, i)) != NULL; i++) {
		if (i == s->columns->target)
			continue;
		const bool taken = k < s->columns->inputs && s->columns->input[k] == i;
		columns[printed++] = (printed_column){ .name = c->name,
			.left_out = taken ? NULL : "values of different shapes" };
		k += taken;
	}
	char target[CLEAN_TEXT];
	print_columns(printed, columns, json ? s->target : clean_text(s->target, target), json);
	free(columns);
	choir_dataset_free(d);
}
