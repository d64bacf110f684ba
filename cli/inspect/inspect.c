// choir inspect: shows what a file holds. It reads to the end, so it finds all damage.
#include "commands.h"
#include "inspect/inspect.h"
#include "number.h"
#include "data/raw_data.h"
#include "command_options.h"
#include "output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BATCH = 256, BATCH_BYTES = 4 << 20, SHOWN = 3, MAX_VALUES = 8, MAX_TEXT = 60 };

static struct {
	const char *separator, *decimal, *missing_values;
	bool json;
} given;
static const option options[] = {
	{ "--missing-values", "LIST", OPTION_TEXT, &given.missing_values,
			.help = missing_values_help },
	{ "--separator", "CHAR", OPTION_TEXT, &given.separator, .help = separator_help },
	{ "--decimal", "MARK", OPTION_CHOICE, &given.decimal, .help = decimal_help,
			.choices = decimal_names },
	{ "--json", NULL, OPTION_FLAG, &given.json, .help = json_help },
};
static const command self = {
	.name = "choir inspect",
	.operands = "FILE",
	.about =
			"Shows what a file holds and where it is damaged.\n\n"
			"Data: kind, columns, number of rows and the first rows.\n"
			"A directory of checkpoints: its checkpoints, their tensors, and which checkpoints\n"
			"are damaged.\n"
			"Weights: tensors, metadata, and values that are not finite.\n\n"
			"If the suffix of FILE does not show the kind, write the kind in front:\n" DATA_FILES
			",\nlines:FILE (a text), fixed:BYTES:FILE (records of BYTES bytes), safetensors:FILE.",
	.examples = { "choir inspect rows.csv", "choir inspect digits.safetensors --json" },
	.n = sizeof options / sizeof options[0],
	.options = options,
};

typedef struct {
	data_name file;
	table_format format;
	choir_strategy *strategy;
	choir_array_list *arrays; // or NULL
	choir_dataset *source; // owned by data
	choir_distributed_dataset *data;
	choir_values *batch;
	int64_t rows;
} inspection;

static void print_categories(const inspection *i, const char *column)
{
	char name[CLEAN_TEXT];
	const size_t n = choir_dataset_categories(i->source, column);
	for (size_t k = 0; k < n && k < MAX_VALUES; k++)
		printf("%s%s", k == 0 ? "  " : ", ",
				clean_text(choir_dataset_category(i->source, column, (int64_t) k), name));
	if (n > MAX_VALUES)
		printf(", ... (%zu)", n);
}

static void print_file(const inspection *i)
{
	const char *compression = data_compression(&i->file);
	const bool plain = strcmp(compression, "none") == 0;
	clean_print(stdout, i->file.path);
	printf(": %s%s%s", i->file.word, plain ? "" : ", ", plain ? "" : compression);
	char text[2];
	const char separator = choir_csv_dataset_separator(i->source);
	if (separator != '\0' && separator != ',')
		printf(", separator: %s", table_separator_name(separator, text));
	printf("\n");
}

static void print_mostly(const choir_csv_inferred *c)
{
	char other[CLEAN_TEXT];
	printf(", %lld %s", (long long) (c->values - c->others), c->mostly);
	if (c->other != NULL)
		printf(" (row %lld: \"%s\")", (long long) c->other_row, clean_text(c->other, other));
}

static void print_file_columns(const inspection *i)
{
	char shape[SHAPE_TEXT], name[CLEAN_TEXT];
	choir_csv_inferred found;
	print_file(i);
	for (size_t c = 0; choir_csv_dataset_column(i->source, c, &found); c++) {
		printf("  %-24s %s", clean_text(found.name, name), found.holds);
		if (found.missing != 0)
			printf(", %lld without a value", (long long) found.missing);
		if (found.mostly != NULL)
			print_mostly(&found);
		if (found.output != NULL)
			print_categories(i, found.output);
		printf("\n");
	}
	const choir_column *column;
	for (size_t c = 0;
			i->file.kind != DATA_CSV && (column = choir_dataset_column(i->source, c)) != NULL; c++)
		printf("  %-24s %s %s\n", clean_text(column->name, name), choir_dtype_name(column->dtype),
				shape_text(&column->shape, shape));
}

// The length without trailing zeros; 0: not a text.
static int64_t text_bytes(const choir_column *c, const uint8_t *bytes, int64_t n)
{
	if (c->dtype != CHOIR_U8 || c->shape.rank != 1)
		return 0;
	while (n > 0 && bytes[n - 1] == 0)
		n--;
	for (int64_t k = 0; k < n; k++)
		if (bytes[k] < 0x20 || bytes[k] == 0x7f)
			return 0;
	return n;
}

static void print_value(
		const choir_dataset *d, const choir_column *c, const choir_tensor *t, int64_t r)
{
	if (choir_dataset_categories(d, c->name) > 0) {
		const int32_t *number = choir_tensor_data(t);
		char name[CLEAN_TEXT];
		printf(" %s", clean_text(choir_dataset_category(d, c->name, number[r]), name));
		return;
	}
	const int64_t n = choir_shape_elements(choir_tensor_shape(t)) / choir_tensor_shape(t)->dim[0];
	const uint8_t *bytes = choir_tensor_data(t);
	const int64_t text = text_bytes(c, bytes + (c->dtype == CHOIR_U8 ? r * n : 0), n);
	if (text > 0) {
		fputs(" \"", stdout);
		clean_write(stdout, bytes + r * n, (size_t) (text < MAX_TEXT ? text : MAX_TEXT),
				&(clean_options){ .more = text > MAX_TEXT });
		printf("\"%s", text > MAX_TEXT ? " ..." : "");
		return;
	}
	printf(c->shape.rank ? " [" : " ");
	for (int64_t k = 0; k < n && k < MAX_VALUES; k++)
		printf("%s%.6g", k == 0 ? "" : " ",
				number_at(choir_tensor_dtype(t), choir_tensor_data(t), r * n + k));
	printf("%s%s", n > MAX_VALUES ? " ..." : "", c->shape.rank ? "]" : "");
}

static void print_row(const inspection *i, int64_t r)
{
	// Rows count from 1, also those without a value, which are no examples.
	const bool table = i->file.kind == DATA_CSV && choir_dataset_dropped(i->source) == 0;
	printf("  %s %lld:", table ? "row" : "example", (long long) (r + table));
	const choir_column *column;
	for (size_t c = 0; (column = choir_dataset_column(i->source, c)) != NULL && c < MAX_VALUES;
			c++)
		print_value(i->source, column,
				choir_value_local(choir_values_find(i->batch, column->name), 0), r);
	printf("\n");
}

static choir_status cut_line(const choir_component in[], choir_component out[], void *user)
{
	(void) user;
	const int64_t n = choir_shape_elements(&in[0].shape);
	memset(out[0].data, 0, MAX_TEXT + 1);
	if (n > 0)
		memcpy(out[0].data, in[0].data, (size_t) (n > MAX_TEXT ? MAX_TEXT + 1 : n));
	return CHOIR_OK;
}

// A batch padded to a line as long as the file would need hundreds of times its memory.
static choir_dataset *cut_lines(choir_dataset *d)
{
	const choir_column column = { .name = choir_dataset_column(d, 0)->name,
		.dtype = CHOIR_U8,
		.shape = CHOIR_SHAPE(MAX_TEXT + 1) };
	return choir_dataset_map(
			d, CHOIR_OPTIONS(choir_map_options, .n = 1, .columns = &column), cut_line, NULL);
}

static choir_dataset *batched(choir_dataset *d, bool *large)
{
	const choir_column *c;
	double bytes = 1;
	for (size_t i = 0; (c = choir_dataset_column(d, i)) != NULL; i++) {
		const int64_t n = choir_shape_elements(&c->shape);
		if (n == CHOIR_NONE)
			return choir_dataset_batch(cut_lines(d), BATCH);
		bytes += 8 * (double) n;
	}
	const int64_t batch = BATCH_BYTES / bytes < BATCH ? (int64_t) (BATCH_BYTES / bytes) : BATCH;
	*large = batch < 1;
	return choir_dataset_batch(d, *large ? 1 : batch);
}

static choir_status count_rows(inspection *i)
{
	choir_status status;
	const char *first = choir_dataset_column(i->source, 0)->name;
	while ((status = choir_distributed_dataset_next(i->data, &i->batch)) == CHOIR_OK) {
		const choir_tensor *t = choir_value_local(choir_values_find(i->batch, first), 0);
		const int64_t n = choir_tensor_shape(t)->dim[0];
		for (int64_t r = 0; r < n && r < SHOWN && i->rows == 0 && !given.json; r++)
			print_row(i, r);
		i->rows += n;
	}
	return status == CHOIR_END ? CHOIR_OK : status;
}

static void print_file_json(const inspection *i)
{
	json_begin();
	json_text("file", i->file.path);
	json_text("kind", i->file.word);
	json_text("compression", data_compression(&i->file));
}

// What the column of a table holds.
static void print_found_json(const inspection *i, const char *output)
{
	choir_csv_inferred found;
	for (size_t c = 0; choir_csv_dataset_column(i->source, c, &found); c++) {
		if (found.output == NULL || strcmp(found.output, output) != 0)
			continue;
		json_text("holds", found.holds);
		json_integer("without_value", found.missing);
		if (found.mostly != NULL) {
			json_text("mostly", found.mostly);
			json_integer("others", found.others);
		}
		if (found.mostly != NULL && found.other != NULL) {
			json_integer("other_row", found.other_row);
			json_text("other", found.other);
		}
	}
}

static void print_json(const inspection *i)
{
	const choir_column *column;
	char text[2];
	const char separator = choir_csv_dataset_separator(i->source);
	print_file_json(i);
	if (separator != '\0')
		json_text("separator", table_separator_name(separator, text));
	json_integer("rows", i->rows);
	json_integer("dropped", choir_dataset_dropped(i->source));
	json_begin_list("columns");
	for (size_t c = 0; (column = choir_dataset_column(i->source, c)) != NULL; c++) {
		json_begin_item();
		json_text("name", column->name);
		json_text("dtype", choir_dtype_name(column->dtype));
		json_list("shape", (size_t) column->shape.rank, column->shape.dim);
		json_integer("categories", (int64_t) choir_dataset_categories(i->source, column->name));
		print_found_json(i, column->name);
		json_end_item();
	}
	json_end_list();
	json_end();
}

// A small file must not unpack to much more memory than its own size.
static choir_status check_memory(const inspection *i, const char *what, double bytes)
{
	enum { ANY = 32 << 20, TIMES = 4 };
	struct stat is = { .st_size = 0 };
	if (stat(i->file.path, &is) != 0 || bytes <= ANY + TIMES * (double) is.st_size)
		return CHOIR_OK;
	char held[32], file[32];
	return choir_fail(CHOIR_UNSUPPORTED,
			"%s: was not read: %s needs %s of memory, the file has only %s", i->file.path, what,
			print_bytes(bytes, held), print_bytes((double) is.st_size, file));
}

static bool is_asked(const inspection *i, const char *name)
{
	bool asked = i->file.arrays == 0;
	for (size_t k = 0; k < i->file.arrays; k++)
		asked = asked || strcmp(i->file.array[k], name) == 0;
	return asked;
}

static choir_status open_source(inspection *i)
{
	const choir_array_entry *e;
	const choir_column *c;
	bool large = false;
	for (size_t k = 0; (e = choir_array_list_entry(i->arrays, k)) != NULL; k++)
		if (is_asked(i, e->name))
			CHOIR_TRY(check_memory(i, "an array in Fortran order", (double) e->held));
	i->source = data_open(&i->file, CHOIR_BAD_RECORD_ERROR);
	for (size_t k = 0; (c = choir_dataset_column(i->source, k)) != NULL; k++)
		CHOIR_TRY(check_memory(i, "an example",
				number_bytes(c->dtype) * (double) choir_shape_elements(&c->shape)));
	choir_dataset *d = batched(i->source, &large);
	i->data = choir_strategy_distribute_dataset(i->strategy, d,
			CHOIR_OPTIONS(choir_input_options, .read_ahead = large ? CHOIR_OFF : CHOIR_DEFAULT));
	i->rows = 0;
	return i->data == NULL ? choir_error_status() : CHOIR_OK;
}

static bool is_column(const choir_array_entry *e)
{
	bool may = e->known != CHOIR_NONE && e->shape.rank > 0;
	for (int k = 1; k < e->shape.rank; k++)
		may = may && e->shape.dim[k] > 0;
	return may;
}

static bool one_dataset(const choir_array_list *l)
{
	const choir_array_entry *first = choir_array_list_entry(l, 0), *e;
	for (size_t k = 0; (e = choir_array_list_entry(l, k)) != NULL; k++)
		if (!is_column(e) || e->shape.dim[0] != first->shape.dim[0] || k == MAX_ARRAYS)
			return false;
	return true;
}

static void print_arrays(const inspection *i)
{
	char name[CLEAN_TEXT], type[CLEAN_TEXT], shape[SHAPE_TEXT];
	const choir_array_entry *e;
	print_file(i);
	for (size_t k = 0; (e = choir_array_list_entry(i->arrays, k)) != NULL; k++)
		printf("  %-24s %s %s%s\n", clean_text(e->name, name),
				e->known == CHOIR_NONE ? clean_text(e->type, type)
									   : choir_dtype_name((choir_dtype) e->known),
				shape_text(&e->shape, shape), is_column(e) ? "" : ", not a column");
}

static void print_arrays_json(const inspection *i)
{
	const choir_array_entry *e;
	print_file_json(i);
	json_begin_list("arrays");
	for (size_t k = 0; (e = choir_array_list_entry(i->arrays, k)) != NULL; k++) {
		json_begin_item();
		json_text("name", e->name);
		json_text("type", e->type);
		if (e->known != CHOIR_NONE)
			json_text("dtype", choir_dtype_name((choir_dtype) e->known));
		json_list("shape", (size_t) e->shape.rank, e->shape.dim);
		json_end_item();
	}
	json_end_list();
	json_end();
}

// Selects unread arrays with equally many examples. Returns their number.
static size_t next_group(inspection *i, bool read[])
{
	const choir_array_entry *e;
	data_name *f = &i->file;
	int64_t rows = CHOIR_NONE;
	f->arrays = 0;
	for (size_t k = 0; (e = choir_array_list_entry(i->arrays, k)) != NULL; k++) {
		if (read[k] || f->arrays == MAX_ARRAYS || !is_column(e) ||
				(rows != CHOIR_NONE && e->shape.dim[0] != rows))
			continue;
		rows = e->shape.dim[0];
		read[k] = true;
		f->array[f->arrays++] = e->name;
	}
	return f->arrays;
}

static choir_status read_groups(inspection *i)
{
	char name[CLEAN_TEXT];
	bool *read = calloc(choir_array_list_entries(i->arrays) + 1, sizeof *read);
	choir_status status =
			read == NULL ? choir_fail(CHOIR_NO_MEMORY, "inspect: out of memory") : CHOIR_OK;
	while (status == CHOIR_OK && next_group(i, read) > 0) {
		status = open_source(i);
		if (status == CHOIR_OK)
			status = count_rows(i);
		if (status != CHOIR_OK || given.json)
			continue;
		printf("  %lld rows of", (long long) i->rows);
		for (size_t k = 0; k < i->file.arrays; k++)
			printf("%s %s", k == 0 ? "" : ",", clean_text(i->file.array[k], name));
		printf("\n");
	}
	free(read);
	return status;
}

static choir_status inspect_arrays(inspection *i)
{
	if (!given.json)
		print_arrays(i);
	CHOIR_TRY(read_groups(i));
	if (given.json)
		print_arrays_json(i);
	return CHOIR_OK;
}

static choir_status list_arrays(inspection *i)
{
	const data_name *f = &i->file;
	const bool known = f->kind == DATA_NPZ || f->kind == DATA_HDF5 || f->kind == DATA_NPY;
	if (!known || f->labels[0] != '\0' || access(f->path, F_OK) != 0)
		return CHOIR_OK;
	i->arrays = choir_array_list_new(f->path);
	return i->arrays == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_status inspect(inspection *i)
{
	if (i->strategy == NULL)
		return choir_error_status();
	CHOIR_TRY(list_arrays(i));
	if (i->file.arrays == 0 && i->file.kind != DATA_NPY &&
			choir_array_list_entries(i->arrays) > 0 && !one_dataset(i->arrays))
		return inspect_arrays(i);
	CHOIR_TRY(open_source(i));
	if (!given.json)
		print_file_columns(i);
	CHOIR_TRY(count_rows(i));
	const int64_t dropped = choir_dataset_dropped(i->source);
	if (given.json)
		print_json(i);
	else if (dropped == 0)
		printf("  %lld rows\n", (long long) i->rows);
	else
		printf("  %lld complete rows; %lld rows have a missing value\n", (long long) i->rows,
				(long long) dropped);
	return CHOIR_OK;
}

static int inspect_data(inspection *i)
{
	i->strategy = choir_one_device_strategy_new(NULL);
	const int code = inspect(i) == CHOIR_OK ? EXIT_OK : failed(&self);
	choir_values_free(i->batch);
	choir_strategy_free(i->strategy);
	choir_array_list_free(i->arrays);
	return code;
}

int inspect_main(int argc, char **argv)
{
	static inspection i;
	const char *name = NULL;
	struct stat is;
	options_read(&self, argc, argv, &name);
	if (stat(name, &is) == 0 && S_ISDIR(is.st_mode))
		return inspect_steps(name, given.json) == CHOIR_OK ? EXIT_OK : failed(&self);
	if (data_name_read(&i.file, name, DATA_INSPECT) != CHOIR_OK)
		return failed(&self);
	if (table_format_set(&i.format, given.separator, given.decimal, given.missing_values) !=
			CHOIR_OK)
		return failed(&self);
	if (i.file.kind != DATA_CSV && table_format_check(&i.format, name) != CHOIR_OK)
		return failed(&self);
	i.file.format = &i.format;
	if (i.file.kind == DATA_SAFETENSORS)
		return inspect_weights(i.file.path, given.json) == CHOIR_OK ? EXIT_OK : failed(&self);
	return inspect_data(&i);
}
