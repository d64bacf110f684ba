// The models, for images of any size or for text. Metadata of the weights describe them.
#pragma once

#include "data/table_format.h"

enum {
	MAX_WIDTHS = 8,
	MAX_LAYERS = 1024,
	MAX_WIDTH = 1 << 20,
	MAX_CONTEXT = 1 << 20,
	MAX_INPUTS = 2048,
	METADATA_SIZE = 1 << 16,
	MAX_CLASS_NAMES = 1024,
	MAX_TARGETS = 16,
	AUC_THRESHOLDS = 1000,
	COLUMNS_SIZE = 4096,
	BYTES = 256 // the vocabulary of text
};

// The table that a model was trained on.
typedef struct {
	int64_t inputs; // of mean and deviation; 0: inputs are not standardized
	float mean[MAX_INPUTS], deviation[MAX_INPUTS];
	char columns[COLUMNS_SIZE]; // as by source_inputs; "": unknown
	// How columns become inputs, separated by tabs: "number", "date", or the number of
	// categories, and "?" if an indicator follows. "": all are numbers.
	char encodings[COLUMNS_SIZE];
	char categories[METADATA_SIZE]; // the texts of all columns with categories, like columns
	bool imputes; // means replace missing numbers
	char target[256]; // "": no table
	table_format format;
	int64_t targets; // of a regression, which the model gives standardized; 0: a classification
	float target_mean[MAX_TARGETS], target_deviation[MAX_TARGETS];
	size_t classes; // named ones
	char names[METADATA_SIZE]; // zero-terminated, one after another
	const char *name[MAX_CLASS_NAMES];
} table_plan;

typedef struct {
	int64_t width; // gpt, lstm: embedding size; resnets, mobilenet: channels of the first stage
	int64_t layers; // gpt, lstm: blocks; resnet20: 6 n + 2
	int64_t heads, context; // gpt; lstm: context
	double dropout; // gpt, lstm, mlp
	bool batch_norm; // mlp
} model_size;

// The input columns of a table.
typedef struct {
	size_t n; // 0: unknown
	choir_csv_column column[MAX_INPUTS];
	char names[COLUMNS_SIZE], texts[METADATA_SIZE]; // column points into them
	const char *category[MAX_INPUTS];
} input_columns;

// Decodes them. CHOIR_CORRUPT: the plan, of the weights at path, contradicts itself.
choir_status table_plan_inputs(const table_plan *t, const char *path, input_columns *inputs);
// The numbers that a column becomes.
int64_t table_column_width(const choir_csv_column *c);
// Writes the name of each number, as "colour=red", to list; name[i] points into it. Returns how
// many there are, at most MAX_INPUTS.
size_t table_number_names(
		const input_columns *inputs, char list[METADATA_SIZE], const char *name[MAX_INPUTS]);

// A model without its weights.
typedef struct {
	const char *kind; // "mlp", "cnn", one of model_kinds
	int64_t width[MAX_WIDTHS]; // mlp: hidden layers; cnn: two convolutions, one dense
	int widths; // 0: it has a size instead
	model_size size;
	bool gelu_tanh; // gpt
	choir_shape image; // an example: [h, w], [h, w, channels]; text: [context]
	int64_t classes; // or numbers to predict
	double scale; // factor of the images
	table_plan *table; // NULL: not trained on a table
} model_plan;

extern const char *const model_kinds[]; // ending in NULL

// Sets the kind and its widths ("512,512") or size; NULL: defaults. CHOIR_INVALID: wrong widths.
choir_status model_plan_set(model_plan *plan, const char *kind, const char *widths);
// Sets the sizes that are not 0. CHOIR_INVALID: the kind has no such size.
choir_status model_plan_resize(model_plan *plan, const model_size *size);
// Whether it is a language model.
bool model_plan_text(const model_plan *plan);
// Estimates by formulas: weights, and activations kept per example.
double model_plan_weights(const model_plan *plan);
double model_plan_activations(const model_plan *plan);

// The work of a training step per example. Attention counts what its mask leaves. Biases and the
// forward pass of ReLU belong to the products before them.
typedef struct {
	double products, convolutions, attention; // multiplications and additions
	double numbers; // elements that all other operations read and write
} model_work;
model_work model_plan_work(const model_plan *plan);
// CHOIR_INVALID: sizes that do not fit each other or the input.
choir_status model_plan_check(const model_plan *plan);

// Writes the plan as "key=value" lines. False: it does not fit.
bool model_plan_write(const model_plan *plan, char text[METADATA_SIZE]);
// Reads the plan of the weights at path, with plan->table unless that is NULL.
choir_status model_plan_read(model_plan *plan, const char *path);

typedef struct {
	model_plan plan;
	choir_layer *net;
} model;

// Creates the layers in the current scope.
choir_status model_build(model *m, const model_plan *plan);
// Images [n, ...] to scores [n, classes]; text, u8 [n, positions], to scores of the next byte [n,
// positions, 256].
choir_tensor *model_apply(const model *m, choir_tensor *input);
// An example as the layers take it: the numbers for an mlp, [h, w, channels], or [context].
choir_shape model_input(const model_plan *plan);
// CHOIR_CORRUPT: the file is too small for the weights. Metadata are untrusted, so this is checked
// before memory is allocated.
choir_status model_plan_fits(const model_plan *plan, const char *path);
enum { WEIGHTS_PATH = 4096 };
// Replaces the path of a checkpoint, or of a directory of them (its newest undamaged one), by that
// of the weights.
choir_status model_find_weights(const char **path, char found[WEIGHTS_PATH]);
// Creates the layers in s and restores the weights at path.
choir_status model_load(model *m, choir_strategy *s, const model_plan *plan, const char *path);
// Whether the model predicts numbers.
bool model_plan_regression(const model_plan *plan);
// The numbers of a regression, as they are in the table, from standardized ones [n, targets].
choir_tensor *model_numbers(const model *m, choir_tensor *standardized);
choir_tensor *model_standardized(const model *m, choir_tensor *numbers); // the inverse
// From scores [n, 2]: 0 to 1, in the order of the probabilities of the second class and on the
// same side of 0.5. Few are close to 0 or 1, where thresholds cannot tell them apart.
choir_tensor *model_ranks(choir_tensor *scores);
// The loss of each example: cross entropy in nats; of text the mean over positions; of a
// regression the mean squared error of standardized numbers.
choir_tensor *model_losses(const model *m, choir_tensor *labels, choir_tensor *scores);
