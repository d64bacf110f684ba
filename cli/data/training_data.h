// Data to train on or to classify. They are read once to find their shape, labels and number.
#pragma once

#include "data/data_name.h"
#include "data/table_format.h"
#include "model/model.h"

enum { TARGET_SIZE = 256, MAX_COLUMNS = 64 };
typedef enum { TASK_AUTO, TASK_CLASSIFICATION, TASK_REGRESSION } task;

// Columns of a dataset, by index.
typedef struct {
	size_t inputs, input[MAX_COLUMNS], target;
} column_plan;

// The rows of a table in memory.
typedef struct {
	float *image;
	void *label;
	choir_dtype dtype; // of the labels
	int64_t n, capacity;
} table_rows;

typedef struct source source;
typedef choir_status inspect_fn(source *s, choir_values *batch);

struct source {
	const char *name; // the value of --data
	data_name data; // of mnist, its files
	bool csv, text, images;
	bool gathered; // from named columns
	column_plan *columns; // gathered; owned
	bool labelled;
	bool mixed; // shuffled before test examples are held out: the file may be sorted
	bool standardized;
	char target[TARGET_SIZE]; // the column of labels; "": no columns
	table_format format;
	bool whole_target; // a comma belongs to the name
	bool plain_labels; // whole numbers are classes as they are: too many texts to save
	task task; // of a table; after opening not AUTO
	bool chosen_task; // it was not AUTO
	// Of a regression: columns of numbers, which are the labels.
	size_t targets;
	char target_names[TARGET_SIZE];
	const char *target_name[MAX_TARGETS];
	choir_bad_record wrong; // policy
	int64_t image_side; // images: pixels; 0: the library's default
	choir_shape wanted; // images: of the model's examples; rank 0: unknown
	int64_t moments; // means and deviations: of channels, or of all inputs
	bool numbered; // csv: column "row" has the row's number in the file
	bool kept; // csv: in memory
	// csv: names from the weights file. With inputs, columns are found by their names, and labels
	// are not needed.
	size_t given_classes, given_inputs;
	const char *const *given_class;
	const choir_csv_column *given_input;
	bool optional_labels; // csv: a missing or unknown label is -1 or NaN, and its row is kept
	bool imputes; // csv: missing numbers are NaN; else their rows are dropped
	int64_t max_categories; // csv: columns with more different texts are no input
	char categorical_names[COLUMNS_SIZE]; // csv: columns of texts whatever they look like
	const char *categorical[MAX_COLUMNS];
	size_t categoricals;
	int64_t context; // text: bytes of an example; 0: not a model of text
	uint64_t seed; // of synthetic digits
	int64_t examples;
	int64_t held_out; // test examples at the end; 0: unknown
	int64_t first_held_out; // counting skipped examples
	choir_shape shape; // of an example
	double scale; // makes the values 0 to 1
	int64_t classes; // largest label + 1; 0 without labels; of a regression: numbers to predict
	const char *input, *label; // names of columns
	choir_dataset *names; // csv, images: schema and class names; owned
	table_rows rows; // csv with kept
	inspect_fn *count; // csv
	int64_t dropped, skipped; // rows: with a missing value; bad
	int64_t strays; // bad rows with an invalid label
	int64_t max_classes; // limit of labels
	int64_t *counts; // of examples, by class, while they are counted
	void *user; // of a function of source_inspect
	size_t label_at; // index of the label column, if there are strays
};

// Opens and inspects data. In s only target, format, wrong, kept, numbered, what is given,
// imputes, max_categories, context, image_side and wanted may be set.
choir_status source_open(source *s, const char *name, uint64_t seed);
// Prints columns and skipped rows: lines, or fields of the current JSON object.
void source_print(const source *s, bool json);
// Writes the names of input columns, percent-encoded and separated by tabs. Returns the length;
// size if they do not fit.
size_t source_inputs(const source *s, char *list, size_t size);
// Describes the columns and the target for the weights. CHOIR_UNSUPPORTED: it would be too long.
choir_status source_describe(const source *s, table_plan *t);
// Sets the mean to 0 and the deviation to 1 for inputs that are 0 or 1: one-hot and indicators.
void source_keep_one_hot(const source *s, float mean[], float deviation[]);
void source_close(source *s);
// The columns of --categorical. CHOIR_INVALID: too many.
choir_status source_set_categorical(source *s, const char *list);
// CHOIR_INVALID: the name is too long.
choir_status source_set_target(source *s, const char *name);
// Sets the task to a regression of the target's columns, separated by commas, or of the given
// classes.
choir_status source_set_regression(source *s);
// A label of a batch; u8, i32 or i64.
int64_t source_label(const choir_tensor *labels, int64_t i);
// Calls fn with each batch of d, or the first. Takes d over.
choir_status source_inspect(source *s, choir_dataset *d, bool all, inspect_fn *fn);
// A column of a batch. NULL: an error.
choir_tensor *source_column(choir_values *batch, const char *name);
// Examples with the columns s->input ("image", f32; text: "input", u8) and, with labels, s->label.
choir_dataset *source_examples(const source *s);
