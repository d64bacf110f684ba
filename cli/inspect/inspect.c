// choir inspect: what a file of examples holds, or one of weights. It is read to its end, so what
// is wrong anywhere in it is found, with its place.
#include "commands.h"
#include "inspect/inspect.h"
#include "number.h"
#include "data/open.h"
#include "options.h"
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { BATCH = 256, BATCH_BYTES = 4 << 20, SHOWN = 3, MOST_VALUES = 8, MOST_TEXT = 60 };

static struct {
	bool json;
} given;
// clang-format off
static const option options[] = {
	{ .name = "--json", .kind = OPTION_FLAG, .to = &given.json, .help = "one JSON object a line" },
};
// clang-format on
static const command self = {
	.name = "choir inspect",
	.operands = "FILE",
	.most_operands = 1,
	.needs_operand = true,
	.about = "Says what a file of examples holds: kind, columns, rows, the first ones, and what "
			 "is\n"
			 "wrong in it and where. Where the name does not tell the kind, it stands before it:\n"
			 "csv:, npy:, npz:, idx:, tfrecord:, text:, hdf5:, cifar10:FOLDER, or\n"
			 "fixed:BYTES:FILE for records of so many bytes. Of a folder of checkpoints: its\n"
			 "steps, their tensors, and which are damaged. Of weights (.safetensors, "
			 "safetensors:):\n"
			 "tensors, metadata, and values that are not finite.",
	.n = sizeof options / sizeof options[0],
	.options = options,
};

typedef struct {
	named_file file;
	choir_dataset *source; // belongs to data
	choir_distributed_dataset *data;
	choir_values *batch;
	int64_t rows;
} inspection;

static void say_categories(const inspection *i, const char *column)
{
	char name[CLEAN_TEXT];
	const size_t n = choir_dataset_categories(i->source, column);
	for (size_t k = 0; k < n && k < MOST_VALUES; k++)
		printf("%s%s", k == 0 ? "  " : ", ",
				clean_text(choir_dataset_category(i->source, column, (int64_t) k), name));
	if (n > MOST_VALUES)
		printf(", ... (%zu)", n);
}

static void say_columns(const inspection *i)
{
	char shape[SHAPE_TEXT], name[CLEAN_TEXT];
	choir_csv_found found;
	const char *compression = named_file_compression(&i->file);
	const bool plain = strcmp(compression, "none") == 0;
	clean_print(stdout, i->file.path);
	printf(": %s%s%s\n", i->file.kind, plain ? "" : ", ", plain ? "" : compression);
	for (size_t c = 0; choir_csv_dataset_column(i->source, c, &found); c++) {
		printf("  %-24s %s", clean_text(found.name, name), found.holds);
		if (found.missing != 0)
			printf(", %lld without a value", (long long) found.missing);
		if (found.as != NULL)
			say_categories(i, found.as);
		printf("\n");
	}
	const choir_column *column;
	for (size_t c = 0; strcmp(i->file.kind, "csv") != 0 &&
			(column = choir_dataset_column(i->source, c)) != NULL;
			c++)
		printf("  %-24s %s %s\n", clean_text(column->name, name), choir_dtype_name(column->dtype),
				shape_text(&column->shape, shape));
}

// Bytes that are a line of text, without the zeros that fill up a shorter one; 0: they are not.
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

static void say_value(const choir_column *c, const choir_tensor *t, int64_t r)
{
	const int64_t n = choir_shape_elements(choir_tensor_shape(t)) / choir_tensor_shape(t)->dim[0];
	const uint8_t *bytes = choir_tensor_data(t);
	const int64_t text = text_bytes(c, bytes + (c->dtype == CHOIR_U8 ? r * n : 0), n);
	if (text > 0) {
		fputs(" \"", stdout);
		clean_write(stdout, bytes + r * n, (size_t) (text < MOST_TEXT ? text : MOST_TEXT),
				&(clean_options){ .more = text > MOST_TEXT });
		printf("\"%s", text > MOST_TEXT ? " ..." : "");
		return;
	}
	printf(c->shape.rank ? " [" : " ");
	for (int64_t k = 0; k < n && k < MOST_VALUES; k++)
		printf("%s%.6g", k == 0 ? "" : " ",
				number_at(choir_tensor_dtype(t), choir_tensor_data(t), r * n + k));
	printf("%s%s", n > MOST_VALUES ? " ..." : "", c->shape.rank ? "]" : "");
}

// Row r of the batch, a column after the other, as far as it fits on a line.
static void say_row(const inspection *i, int64_t r)
{
	printf("  row %lld:", (long long) r);
	const choir_column *column;
	for (size_t c = 0; (column = choir_dataset_column(i->source, c)) != NULL && c < MOST_VALUES;
			c++)
		say_value(column, choir_value_local(choir_values_find(i->batch, column->name), 0), r);
	printf("\n");
}

// The beginning of a line, which is all that is shown of it.
static choir_status cut_line(const choir_entry in[], choir_entry out[], void *user)
{
	(void) user;
	const int64_t n = choir_shape_elements(&in[0].shape);
	memset(out[0].data, 0, MOST_TEXT + 1);
	if (n > 0)
		memcpy(out[0].data, in[0].data, (size_t) (n > MOST_TEXT ? MOST_TEXT + 1 : n));
	return CHOIR_OK;
}

// Lines, of which one may be as long as the file: filled up to the longest, a batch of them would
// be hundreds of times as large.
static choir_dataset *cut_lines(choir_dataset *d)
{
	const choir_column column = { .name = choir_dataset_column(d, 0)->name,
		.dtype = CHOIR_U8,
		.shape = CHOIR_SHAPE(MOST_TEXT + 1) };
	return choir_dataset_map(
			d, CHOIR_OPTIONS(choir_map_options, .n = 1, .columns = &column), cut_line, NULL);
}

// Batches of what fits in a few megabytes.
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
			say_row(i, r);
		i->rows += n;
	}
	return status == CHOIR_END ? CHOIR_OK : status;
}

static void say_json(const inspection *i)
{
	const choir_column *column;
	json_begin();
	json_text("file", i->file.path);
	json_text("kind", i->file.kind);
	json_text("compression", named_file_compression(&i->file));
	json_integer("rows", i->rows);
	json_integer("dropped", choir_dataset_dropped(i->source));
	json_begin_list("columns");
	for (size_t c = 0; (column = choir_dataset_column(i->source, c)) != NULL; c++) {
		json_begin_item();
		json_text("name", column->name);
		json_text("dtype", choir_dtype_name(column->dtype));
		json_list("shape", (size_t) column->shape.rank, column->shape.dim);
		json_integer("categories", (int64_t) choir_dataset_categories(i->source, column->name));
		json_end_item();
	}
	json_end_list();
	json_end();
}

static choir_status inspect(inspection *i, choir_strategy *s, const char *name)
{
	if (s == NULL)
		return choir_error_status();
	CHOIR_TRY(named_file_set(&i->file, name));
	i->source = named_file_open(&i->file);
	if (i->source == NULL)
		return choir_error_status();
	bool large = false;
	choir_dataset *d = batched(i->source, &large);
	i->data = choir_strategy_distribute_dataset(
			s, d, CHOIR_OPTIONS(choir_input_options, .buffer = large ? CHOIR_NONE : 0));
	if (i->data == NULL)
		return choir_error_status();
	if (!given.json)
		say_columns(i);
	CHOIR_TRY(count_rows(i));
	const int64_t dropped = choir_dataset_dropped(i->source);
	if (given.json)
		say_json(i);
	else if (dropped == 0)
		printf("  %lld rows\n", (long long) i->rows);
	else
		printf("  %lld rows, and %lld without some value\n", (long long) i->rows,
				(long long) dropped);
	return CHOIR_OK;
}

// The file of weights that is named: "safetensors:FILE", or a name that ends so; NULL: none.
static const char *weights_path(const char *name)
{
	static const char prefix[] = "safetensors:", end[] = ".safetensors";
	const size_t length = strlen(name);
	if (strncmp(name, prefix, sizeof prefix - 1) == 0)
		return name + sizeof prefix - 1;
	return length >= sizeof end && strcmp(name + length - (sizeof end - 1), end) == 0 ? name
																					  : NULL;
}

int inspect_main(int argc, char **argv)
{
	const char *name = NULL;
	const options_result result = options_read(&self, argc, argv, &name);
	if (result != OPTIONS_GIVEN)
		return result == OPTIONS_HELP ? EXIT_OK : EXIT_USAGE;
	const char *weights = weights_path(name);
	if (weights != NULL)
		return inspect_weights(weights, given.json) == CHOIR_OK ? EXIT_OK : failed(&self);
	struct stat is;
	const bool there = stat(name, &is) == 0;
	if (there && S_ISDIR(is.st_mode))
		return inspect_steps(name, given.json) == CHOIR_OK ? EXIT_OK : failed(&self);
	if (!there && errno == ENOENT && strchr(name, ':') == NULL) {
		choir_fail(CHOIR_NOT_FOUND, "%s: there is no such file or folder", name);
		return failed(&self);
	}
	inspection i = { .rows = 0 };
	choir_strategy *s = choir_one_device_strategy_new(NULL);
	const int code = inspect(&i, s, name) == CHOIR_OK ? EXIT_OK : failed(&self);
	choir_values_free(i.batch);
	choir_strategy_free(s);
	return code;
}
