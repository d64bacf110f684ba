// Where the command's examples come from: the digits that come with Choir, drawn digits, or
// files of one's own. What inputs and labels are like is found out by looking at them.
#pragma once

#include "data/choose_arrays.h"

enum { PATH_SIZE = 4096, TARGET_SIZE = 256, MAX_COLUMNS = 64 };

// Which columns of a dataset are what.
typedef struct {
	size_t inputs, input[MAX_COLUMNS], target;
} column_plan;

// The examples of a table, in memory.
typedef struct {
	float *image;
	void *label;
	choir_dtype dtype; // of the labels
	int64_t n, capacity; // examples
} table_rows;

typedef struct source source;
// Sees a batch of examples.
typedef choir_status inspect_fn(source *s, choir_values *batch);

struct source {
	const char *name; // as it was given
	char images[PATH_SIZE], labels[PATH_SIZE]; // IDX files; "": drawn digits, or no labels
	bool drawn, csv, npy, text;
	bool gathered; // of columns of numbers
	array_names arrays; // of those: the files, and which of their arrays
	column_plan *columns; // of those; to be freed
	bool labelled;
	bool mixed; // neighbours may be alike: shuffled before some examples are held out
	bool standardized; // inputs are measured and standardised
	char target[TARGET_SIZE]; // csv, columns: the one of labels
	choir_wrong wrong; // what becomes of rows that are
	bool numbered; // csv: column "row" has the number of each row, with those left out
	bool kept; // csv: its examples are to stay in memory, so that the file is read once
	size_t given_classes; // csv: the texts of the classes, if they are known from elsewhere
	const char *const *given_class;
	int64_t context; // text: bytes of an example; given; 0: another model than text's is meant
	uint64_t seed; // of drawn digits
	int64_t examples;
	int64_t held_out; // so many at the end are to test on; 0: nobody says
	int64_t first_held_out; // of those: its number before any was left out
	choir_shape shape; // of an image
	double scale; // makes the images' values 0 to 1
	int64_t classes; // the largest label + 1; 0 without labels
	const char *input, *label; // the columns' names
	choir_dataset *names; // csv: has its schema and the texts of the classes. To be freed.
	table_rows rows; // csv, where they are kept; to be freed
	inspect_fn *count; // of those
	int64_t dropped, skipped; // rows without a value, and wrong ones
	int64_t strays; // of the wrong ones, those with a label that cannot be
	int64_t max_classes; // labels are below that
	size_t label_at; // where there are strays: the column of labels
};

extern const char source_help[]; // of --data

// Whether name is of data that need no file of the user's: the digits that come with Choir, and
// up to most drawn ones.
bool source_is_built_in(const char *name, int64_t max);

// Understands name and looks at the data. CHOIR_NOT_FOUND: no such data; the text lists what
// there is.
// s is zero, or has target, wrong, kept, classes and context set, which are looked for then.
choir_status source_open(source *s, const char *name, uint64_t seed);
// What was taken for input and label, where there is a choice, and which rows were left out: lines
// for people, or fields of the JSON object that is open.
void source_print(const source *s, bool json);
// The names of the columns that are the input, coded, in their order, with tabs between. How long
// they are, 0 where nothing has names; size: they do not fit.
size_t source_inputs(const source *s, char *list, size_t size);
void source_close(source *s);
// Sets the column of labels by name. CHOIR_INVALID: the name is too long.
choir_status source_set_target(source *s, const char *name);
// All files of the data so named, in order; NULL where it has none.
choir_status source_all_files(const char *name, choir_files **files);
// The files of a list with commas between, each a name or a pattern; or the one file that has
// commas in its name. NULL: an error.
choir_files *source_files(const char *list);
// Label i of a batch of labels: u8, i32 or i64.
int64_t source_label(const choir_tensor *labels, int64_t i);
// Calls fn for each batch of d, or only the first, which is taken over.
choir_status source_inspect(source *s, choir_dataset *d, bool all, inspect_fn *fn);
// A column of a batch. NULL: an error.
choir_tensor *source_column(choir_values *batch, const char *name);
// Columns s->input ("image", f32, scaled; text: "input", u8) and, if there are labels, s->label;
// one example an element. NULL: an error.
choir_dataset *source_examples(const source *s);
