// CSV files. A first reading infers the columns, and all datasets use this schema. For a training
// the rows are kept in memory, where a shuffle would hold them anyway.
#include "data/table_data.h"
#include "data/table_check.h"
#include "percent_encoding.h"
#include "data/data_report.h"
#include "output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { INSPECTED_AT_ONCE = 1024 };

static choir_dataset *open_csv(const source *s, const choir_csv_options *options)
{
	choir_csv_options o = *options;
	choir_files *files = data_name_files(&s->data);
	choir_dataset *d = NULL;
	missing_texts texts;
	table_format_apply(&s->format, s->data.path, &o, &texts);
	o.files = files;
	o.bad_record = s->wrong;
	o.finite = true;
	if (files != NULL)
		d = choir_csv_dataset_new(NULL, &o);
	choir_files_free(files);
	return d;
}

static choir_missing missing(const source *s)
{
	return s->imputes ? CHOIR_MISSING_NAN : CHOIR_MISSING_DROP;
}

// The columns of labels: one of classes, or numbers to predict. A trained model without names of
// classes has the numbers of the file. Returns their number.
static size_t label_columns(const source *s, choir_csv_column out[MAX_TARGETS])
{
	for (size_t i = 0; i < s->targets; i++)
		out[i] = (choir_csv_column){ .name = s->target_name[i],
			.output = "label",
			.kind = CHOIR_CSV_NUMBER,
			.dtype = CHOIR_F32,
			.drop_missing = !s->optional_labels,
			.optional = s->optional_labels };
	if (s->targets > 0)
		return s->targets;
	const bool as_written = s->plain_labels || (s->numbered && s->given_classes == 0);
	out[0] = (choir_csv_column){
		.name = s->target,
		.output = "label",
		.kind = as_written ? CHOIR_CSV_NUMBER : CHOIR_CSV_CLASS,
		.dtype = CHOIR_I64,
		.categories = s->given_classes,
		.category = s->given_class,
		.drop_missing = !s->optional_labels,
		.optional = s->optional_labels,
	};
	return 1;
}

// The columns with the names of the training, in its order, and labels if the file has them.
static choir_dataset *open_given(const source *s)
{
	const size_t n = s->given_inputs;
	choir_csv_column *columns = calloc(n + MAX_TARGETS, sizeof *columns);
	if (columns == NULL) {
		choir_fail(CHOIR_NO_MEMORY, "data: no memory for %zu columns", n);
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		columns[i] = s->given_input[i];
		columns[i].output = "image";
	}
	const size_t labels = label_columns(s, columns + n);
	choir_dataset *d = open_csv(s,
			CHOIR_OPTIONS(choir_csv_options, .columns = s->labelled ? n + labels : n,
					.column = columns, .missing = missing(s),
					.row_number = s->numbered ? "row" : NULL));
	free(columns);
	return d;
}

static choir_dataset *open_examples(const source *s)
{
	if (s->given_inputs != 0)
		return open_given(s);
	choir_csv_column label[MAX_TARGETS];
	const size_t labels = label_columns(s, label);
	return open_csv(s,
			CHOIR_OPTIONS(choir_csv_options, .columns = labels, .column = label,
					.other_columns = "image", .other_dates = true,
					.other_categories = (size_t) s->max_categories, .indicators = s->imputes,
					.missing = missing(s), .schema = s->names,
					.row_number = s->numbered ? "row" : NULL, .other_texts = s->categoricals,
					.other_text = s->categorical));
}

static choir_shape label_shape(const source *s)
{
	return s->targets > 1 ? CHOIR_SHAPE((int64_t) s->targets) : CHOIR_SCALAR;
}

choir_dataset *table_examples(const source *s)
{
	const table_rows *rows = &s->rows;
	if (rows->image == NULL)
		return open_examples(s);
	const choir_column columns[] = {
		{ .name = "image", .dtype = CHOIR_F32, .shape = s->shape, .data = rows->image },
		{ .name = "label", .dtype = rows->dtype, .shape = label_shape(s), .data = rows->label },
	};
	return choir_memory_dataset_new(rows->n, 2, columns, false);
}

// For the names of columns; one row suffices if it has a value.
static choir_dataset *open_names(const source *s)
{
	choir_csv_options o = {
		.size = sizeof o,
		.other_columns = "image",
		.other_dates = true,
		.other_categories = SIZE_MAX,
		.missing = CHOIR_MISSING_DROP,
		.infer_rows = 1,
	};
	choir_dataset *d = open_csv(s, &o);
	o.infer_rows = 0;
	return d != NULL ? d : open_csv(s, &o);
}

// The column of this name; else one whose name differs only by case; NULL: none. It lives as long
// as d.
static const char *find_column(const choir_dataset *d, const char *name, size_t length)
{
	choir_csv_inferred found;
	const char *similar = NULL;
	for (size_t i = 0; choir_csv_dataset_column(d, i, &found); i++) {
		if (strlen(found.name) != length || strncasecmp(found.name, name, length) != 0)
			continue;
		if (memcmp(found.name, name, length) == 0)
			return found.name;
		similar = found.name;
	}
	return similar;
}

static choir_status check_name(const source *s, const char *name, size_t length, const char *found)
{
	return found == NULL || memcmp(found, name, length) == 0
			? CHOIR_OK
			: choir_fail(CHOIR_NOT_FOUND, "%s: no column \"%.*s\"; there is \"%s\"", s->data.path,
					  (int) length, name, found);
}

// A name with commas, or several ones, without spaces around them.
static choir_status split_target(source *s, const choir_dataset *d)
{
	char list[TARGET_SIZE];
	size_t at = 0;
	const char *whole = find_column(d, s->target, strlen(s->target));
	s->whole_target = whole != NULL || strchr(s->target, ',') == NULL;
	if (s->whole_target)
		return check_name(s, s->target, strlen(s->target), whole);
	for (const char *p = s->target; p != NULL;) {
		p += strspn(p, " ");
		const char *end = strchr(p, ',');
		size_t length = end == NULL ? strlen(p) : (size_t) (end - p);
		while (length > 0 && p[length - 1] == ' ')
			length--;
		if (length == 0)
			return choir_fail(CHOIR_INVALID,
					"--target %s: a name is empty; needs names with one comma between them",
					s->target);
		CHOIR_TRY(check_name(s, p, length, find_column(d, p, length)));
		at += (size_t) snprintf(
				list + at, sizeof list - at, "%s%.*s", at == 0 ? "" : ",", (int) length, p);
		p = end == NULL ? NULL : end + 1;
	}
	return source_set_target(s, list);
}

static choir_status find_target(source *s)
{
	choir_csv_inferred found;
	choir_dataset *d = open_names(s);
	if (d == NULL)
		return choir_error_status();
	const char *target = "";
	for (size_t i = 0; choir_csv_dataset_column(d, i, &found); i++) {
		target = found.name;
		if (strcmp(target, "label") == 0)
			break;
	}
	const bool given = s->target[0] != '\0';
	s->whole_target = !given;
	const choir_status status = given ? split_target(s, d) : source_set_target(s, target);
	choir_dataset_free(d);
	return status;
}

bool table_is_target(const source *s, const char *name)
{
	bool is = s->targets == 0 && strcmp(name, s->target) == 0;
	for (size_t i = 0; i < s->targets; i++)
		is = is || strcmp(name, s->target_name[i]) == 0;
	return is;
}

int64_t table_width_of(const source *s, const choir_csv_inferred *c)
{
	if (c->output == NULL || table_is_target(s, c->name))
		return 0;
	return table_column_width(&(choir_csv_column){
			.kind = c->kind, .categories = c->categories, .indicator = c->indicator });
}

static void count_inputs(source *s)
{
	choir_csv_inferred found;
	for (size_t i = 0; choir_csv_dataset_column(s->names, i, &found); i++)
		s->shape.dim[0] += table_width_of(s, &found);
}

static choir_status reserve(table_rows *rows, int64_t n, size_t inputs, size_t label_bytes)
{
	const int64_t capacity = rows->capacity > n / 2 ? 2 * rows->capacity : n;
	const bool fits = (size_t) capacity <= PTRDIFF_MAX / sizeof(float) / (inputs + 2);
	float *image = fits ? realloc(rows->image, (size_t) capacity * inputs * sizeof *image) : NULL;
	if (image != NULL)
		rows->image = image;
	void *label = image == NULL ? NULL : realloc(rows->label, (size_t) capacity * label_bytes);
	if (label == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "data: no memory for %lld rows of %zu numbers",
				(long long) capacity, inputs);
	rows->label = label;
	rows->capacity = capacity;
	return CHOIR_OK;
}

static choir_status keep(source *s, choir_values *batch)
{
	table_rows *rows = &s->rows;
	const choir_tensor *image = source_column(batch, "image");
	const choir_tensor *label = source_column(batch, "label");
	if (image == NULL || label == NULL)
		return choir_error_status();
	rows->dtype = choir_tensor_dtype(label);
	const size_t n = (size_t) choir_tensor_shape(label)->dim[0];
	const size_t at = (size_t) rows->n, inputs = (size_t) s->shape.dim[0];
	const size_t label_bytes = s->targets > 0 ? s->targets * sizeof(float)
			: rows->dtype == CHOIR_I64		  ? sizeof(int64_t)
											  : sizeof(int32_t);
	if (rows->n + (int64_t) n > rows->capacity)
		CHOIR_TRY(reserve(rows, rows->n + (int64_t) n, inputs, label_bytes));
	memcpy(rows->image + at * inputs, choir_tensor_data(image), n * inputs * sizeof(float));
	memcpy((char *) rows->label + at * label_bytes, choir_tensor_data(label), n * label_bytes);
	rows->n += (int64_t) n;
	return CHOIR_OK;
}

static choir_status keep_and_count(source *s, choir_values *batch)
{
	CHOIR_TRY(keep(s, batch));
	return s->count(s, batch);
}

// Opens the examples again, with what is known of the columns.
static choir_status open_again(source *s)
{
	choir_dataset *names = open_examples(s);
	choir_dataset_free(s->names);
	s->names = names;
	return names == NULL ? choir_error_status() : CHOIR_OK;
}

// AUTO: a target with numbers that are not all whole, or several targets, make a regression. So do
// more than a few different whole numbers with a point.
static choir_status decide_task(source *s)
{
	choir_csv_inferred found = { .name = "" };
	const bool several = strchr(s->target, ',') != NULL && !s->whole_target;
	size_t at = 0;
	s->chosen_task = s->task != TASK_AUTO;
	if (s->task == TASK_REGRESSION || (s->task == TASK_AUTO && several))
		CHOIR_TRY(source_set_regression(s));
	for (size_t i = 0; i < s->categoricals; i++)
		if (table_is_target(s, s->categorical[i]))
			return choir_fail(CHOIR_INVALID,
					"--categorical %s: is the target; needs input columns (a target of classes "
					"needs --task classification)",
					s->categorical[i]);
	CHOIR_TRY(open_again(s));
	if (s->targets > 0)
		return CHOIR_OK;
	while (choir_csv_dataset_column(s->names, at, &found) && !table_is_target(s, found.name))
		at++;
	const char *first = choir_csv_dataset_category(s->names, at, 0);
	const bool point = first != NULL && strpbrk(first, ".,") != NULL;
	const bool whole = strcmp(found.holds, "whole numbers") == 0;
	const bool many = table_has_many_classes((int64_t) found.categories, found.values);
	const bool numbers = strcmp(found.holds, "numbers") == 0 ||
			(whole && point && found.categories > FEW_CLASSES);
	s->plain_labels = whole && !many && found.categories > MAX_CLASS_NAMES;
	if (s->task == TASK_AUTO && numbers)
		CHOIR_TRY(source_set_regression(s));
	else
		s->task = TASK_CLASSIFICATION;
	return s->targets > 0 || s->plain_labels ? open_again(s) : CHOIR_OK;
}

// Whether the files have the column of the target, and all inputs: one line names all that lack.
static choir_status look_for_columns(source *s)
{
	choir_csv_inferred found;
	char lacking[400] = "", name[CLEAN_TEXT];
	size_t at = 0;
	choir_dataset *d = open_names(s);
	if (d == NULL)
		return choir_error_status();
	size_t labels = 0;
	for (size_t i = 0; choir_csv_dataset_column(d, i, &found); i++)
		labels += table_is_target(s, found.name);
	s->labelled = labels == (s->targets > 0 ? s->targets : 1);
	for (size_t k = 0; k < s->given_inputs && at < sizeof lacking; k++) {
		bool has = false;
		for (size_t i = 0; !has && choir_csv_dataset_column(d, i, &found); i++)
			has = strcmp(found.name, s->given_input[k].name) == 0;
		if (!has)
			at += (size_t) snprintf(lacking + at, sizeof lacking - at, "%s\"%.60s\"",
					at == 0 ? "" : ", ", clean_text(s->given_input[k].name, name));
	}
	choir_dataset_free(d);
	return at == 0
			? CHOIR_OK
			: choir_fail(CHOIR_NOT_FOUND, "data \"%s\": has no column %s, which the model needs",
					  s->name, lacking);
}

static choir_status count_rows(source *s, choir_values *batch)
{
	const choir_tensor *image = source_column(batch, "image");
	if (image == NULL)
		return choir_error_status();
	s->examples += choir_tensor_shape(image)->dim[0];
	return CHOIR_OK;
}

choir_status table_open(source *s, inspect_fn *count)
{
	s->csv = s->mixed = s->standardized = s->labelled = true;
	s->scale = 1;
	if (s->given_inputs != 0)
		CHOIR_TRY(look_for_columns(s));
	else
		CHOIR_TRY(find_target(s));
	CHOIR_TRY(s->given_inputs == 0 ? decide_task(s) : open_again(s));
	s->shape = CHOIR_SHAPE(0);
	if (s->given_inputs == 0)
		count_inputs(s);
	if (s->given_inputs == 0)
		CHOIR_TRY(table_check_targets(s));
	for (size_t i = 0; i < s->given_inputs; i++)
		s->shape.dim[0] += table_column_width(&s->given_input[i]);
	count = s->labelled && s->targets == 0 && !s->optional_labels ? count : count_rows;
	s->count = count;
	const choir_status status =
			source_inspect(s, choir_dataset_batch(open_examples(s), INSPECTED_AT_ONCE), true,
					s->kept ? keep_and_count : count);
	if (status != CHOIR_END && status != CHOIR_OK)
		return status;
	const size_t classes = choir_dataset_categories(s->names, "label");
	if (classes != 0)
		s->classes = (int64_t) classes;
	if (s->targets > 0)
		s->classes = (int64_t) s->targets;
	if (s->examples + s->strays == 0)
		return choir_fail(CHOIR_INVALID, "%s: has no examples; needs at least one", s->data.path);
	return s->given_inputs == 0 && !s->numbered ? table_check_classes(s) : CHOIR_OK;
}

// Too many numbers to list differ in any case.
static bool spreads_within(const choir_dataset *d, size_t at, size_t n, double limit)
{
	if (n < 2)
		return false;
	const double first = strtod(choir_csv_dataset_category(d, at, 0), NULL);
	return strtod(choir_csv_dataset_category(d, at, n - 1), NULL) - first < limit;
}

void table_find_close(const source *s, size_t n, close_values columns[])
{
	choir_csv_inferred found;
	choir_csv_column column[MAX_CLOSE];
	for (size_t k = 0; k < n; k++)
		column[k] = (choir_csv_column){ .name = columns[k].name, .kind = CHOIR_CSV_CLASS };
	choir_dataset *d = n == 0 ? NULL
							  : open_csv(s,
										CHOIR_OPTIONS(choir_csv_options, .columns = n,
												.column = column, .missing = CHOIR_MISSING_DROP));
	for (size_t i = 0; choir_csv_dataset_column(d, i, &found); i++)
		for (size_t k = 0; k < n; k++)
			if (strcmp(found.name, columns[k].name) == 0)
				columns[k].varies = found.categories > 0
						? spreads_within(d, i, found.categories, columns[k].limit)
						: strcmp(found.holds, "numbers") == 0;
	choir_dataset_free(d);
}

size_t table_inputs(const source *s, char *list, size_t size)
{
	choir_csv_inferred found;
	size_t at = 0;
	for (size_t i = 0; choir_csv_dataset_column(s->names, i, &found) && at < size; i++)
		if (found.output != NULL && !table_is_target(s, found.name))
			at = percent_encode_to_list(list, at, size, found.name);
	return at;
}

static choir_status too_long(const source *s)
{
	return choir_fail(CHOIR_UNSUPPORTED,
			"data \"%s\": the names and texts of its columns are too long to save; needs fewer "
			"columns of text (--max-categories)",
			s->name);
}

static const char *encoding_of(const choir_csv_inferred *c, char text[32])
{
	const char *const mark = c->indicator ? "?" : "";
	if (c->kind == CHOIR_CSV_ONE_HOT)
		snprintf(text, 32, "%zu%s", c->categories, mark);
	else
		snprintf(text, 32, "%s%s", c->kind == CHOIR_CSV_DATE ? "date" : "number", mark);
	return text;
}

// Without columns of texts, of dates and with indicators nothing is written.
choir_status table_describe(const source *s, table_plan *t)
{
	choir_csv_inferred found;
	char text[32];
	size_t at = 0, texts = 0;
	bool plain = true;
	for (size_t i = 0; choir_csv_dataset_column(s->names, i, &found); i++) {
		if (table_width_of(s, &found) == 0)
			continue;
		plain = plain && found.kind == CHOIR_CSV_NUMBER && !found.indicator;
		at = percent_encode_to_list(t->encodings, at, COLUMNS_SIZE, encoding_of(&found, text));
		for (size_t k = 0; found.kind == CHOIR_CSV_ONE_HOT && k < found.categories; k++)
			texts = percent_encode_to_list(t->categories, texts, METADATA_SIZE,
					choir_csv_dataset_category(s->names, i, k));
		if (texts >= METADATA_SIZE)
			return too_long(s);
		if (at >= COLUMNS_SIZE)
			break;
	}
	if (plain)
		t->encodings[0] = '\0';
	return plain || (t->columns[0] != '\0' && at < COLUMNS_SIZE) ? CHOIR_OK : too_long(s);
}

void table_keep_one_hot(const source *s, float mean[], float deviation[])
{
	choir_csv_inferred found;
	int64_t at = 0;
	for (size_t i = 0; choir_csv_dataset_column(s->names, i, &found); i++) {
		const int64_t end = at + table_width_of(s, &found);
		at += end > at && found.kind != CHOIR_CSV_ONE_HOT; // a number
		for (; at < end; at++) {
			mean[at] = 0;
			deviation[at] = 1;
		}
	}
}

static void name_target(const source *s, char *text, size_t size)
{
	enum { MAX = 8 };
	const size_t n = choir_dataset_categories(s->names, "label");
	char name[CLEAN_TEXT];
	size_t at = (size_t) snprintf(text, size, "%s", clean_text(s->target, name));
	for (size_t i = 0; i < n && i < MAX && at < size; i++)
		at += (size_t) snprintf(text + at, size - at, "%s%s", i == 0 ? ": " : ", ",
				clean_text(choir_dataset_category(s->names, "label", (int64_t) i), name));
	if (n > MAX && at < size)
		snprintf(text + at, size - at, ", ...");
}

static void print_separator(char separator, bool json)
{
	char text[2];
	const char *name = table_separator_name(separator, text);
	if (json)
		json_text("separator", name);
	else
		printf("separator: %s\n", name);
}

void table_print(const source *s, bool json)
{
	choir_csv_inferred found;
	char target[4096];
	size_t n = 0, printed = 0;
	while (choir_csv_dataset_column(s->names, n, &found))
		n++;
	printed_column *columns = calloc(n + 1, sizeof *columns);
	for (size_t i = 0; columns != NULL && i < n; i++)
		if (choir_csv_dataset_column(s->names, i, &found) && !table_is_target(s, found.name))
			columns[printed++] = (printed_column){ .name = found.name,
				.left_out = found.output == NULL ? found.holds : NULL,
				.categories = found.kind == CHOIR_CSV_ONE_HOT ? found.categories : 0,
				.date = found.kind == CHOIR_CSV_DATE,
				.indicator = found.indicator };
	const char separator = choir_csv_dataset_separator(s->names);
	if (separator != ',')
		print_separator(separator, json);
	name_target(s, target, sizeof target);
	print_columns(printed, columns, json ? s->target : target, json);
	free(columns);
}
