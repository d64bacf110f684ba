// The command's data: built-in or synthetic digits, or the user's files. Shapes and labels are
// found by reading them.
#pragma once

#include "data/data_name.h"

enum { TARGET_SIZE = 256, MAX_COLUMNS = 64 };

// Input and target columns of a dataset.
typedef struct {
	size_t inputs, input[MAX_COLUMNS], target;
} column_plan;

// The rows of a table in memory.
typedef struct {
	float *image;
	void *label;
	choir_dtype dtype; // of the labels
	int64_t n, capacity; // examples
} table_rows;

typedef struct source source;
typedef choir_status inspect_fn(source *s, choir_values *batch);

struct source {
	const char *name; // the value of --data
	data_name data; // what it means; of mnist, its files
	bool csv, text;
	bool gathered; // from named columns
	column_plan *columns; // named columns; owned
	bool labelled;
	bool mixed; // shuffled before test examples are held out: the file may be sorted
	bool standardized; // inputs are standardized
	char target[TARGET_SIZE]; // csv, named columns: the column of labels
	choir_bad_record wrong; // policy for bad rows
	bool numbered; // csv: column "row" has each row's number in the file
	bool kept; // csv: the examples are kept in memory
	size_t given_classes; // csv: class names from the weights file; 0: none
	const char *const *given_class;
	int64_t context; // text: bytes of an example; 0: the model does not take text
	uint64_t seed; // of synthetic digits
	int64_t examples;
	int64_t held_out; // number of test examples at the end; 0: unknown
	int64_t first_held_out; // index of the first, counting skipped examples
	choir_shape shape; // of an image
	double scale; // factor that makes the images' values 0 to 1
	int64_t classes; // largest label + 1; 0 without labels
	const char *input, *label; // the columns' names
	choir_dataset *names; // csv: has the schema and the class names; owned
	table_rows rows; // csv with kept; owned
	inspect_fn *count; // csv: called with each batch
	int64_t dropped, skipped; // rows with a missing value, and bad rows
	int64_t strays; // bad rows with an invalid label
	int64_t max_classes; // labels must be less
	size_t label_at; // index of the label column, if there are strays
};

// Opens and inspects data. s is zero, except that target, wrong, kept, classes and context may be
// set. CHOIR_NOT_FOUND: unknown name; the text lists the known ones.
choir_status source_open(source *s, const char *name, uint64_t seed);
// Prints the columns and how many rows were skipped: lines for people, or fields of the current
// JSON object.
void source_print(const source *s, bool json);
// Writes the input columns' names in order, percent-encoded and separated by tabs. Returns the
// length; 0 without names; size if they do not fit.
size_t source_inputs(const source *s, char *list, size_t size);
void source_close(source *s);
// Sets the target column by name. CHOIR_INVALID: the name is too long.
choir_status source_set_target(source *s, const char *name);
// Label i of a batch of labels (u8, i32 or i64).
int64_t source_label(const choir_tensor *labels, int64_t i);
// Calls fn with each batch of d, or only the first. Takes d over.
choir_status source_inspect(source *s, choir_dataset *d, bool all, inspect_fn *fn);
// A column of a batch. NULL: an error.
choir_tensor *source_column(choir_values *batch, const char *name);
// A dataset of examples with the columns s->input ("image": f32, scaled; text: "input", u8) and,
// with labels, s->label. NULL: an error.
choir_dataset *source_examples(const source *s);
