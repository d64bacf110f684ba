// The models that the command can train: built for images of any size, and rebuilt from what is
// written beside their weights.
#pragma once

#include <choir/choir.h>

enum { MOST_WIDTHS = 8, MOST_INPUTS = 2048, METADATA_SIZE = 1 << 16, MOST_CLASS_NAMES = 256 };

// What a table was like that a model learned from.
typedef struct {
	int64_t inputs; // of mean and deviation; 0: inputs are not standardised
	float mean[MOST_INPUTS], deviation[MOST_INPUTS];
	char target[256]; // the column of labels; "": it was no table
	size_t classes; // that have names; 0: none
	char names[METADATA_SIZE / 2]; // of the classes, each with a zero behind it
	const char *name[MOST_CLASS_NAMES];
} table_plan;

// What a model is, without its weights.
typedef struct {
	const char *kind; // "mlp", "cnn"
	int64_t width[MOST_WIDTHS]; // mlp: of the hidden layers; cnn: two convolutions, one dense
	int widths;
	choir_shape image; // of an example; cnn: [h, w] or [h, w, channels]
	int64_t classes;
	double scale; // by which its images were multiplied
	table_plan *table; // NULL: it did not learn from one
} model_plan;

extern const char *const model_kinds[]; // ending in NULL

// Sets the kind and its widths: "512,512", or NULL for the usual ones. CHOIR_INVALID: they do
// not fit it.
choir_status model_plan_set(model_plan *plan, const char *kind, const char *widths);
// The plan as "key=value" lines.
void model_plan_write(const model_plan *plan, char text[METADATA_SIZE]);
// The plan of the weights at path. plan->table is filled in, and inputs and target stay 0 and
// "" in it if the model did not learn from a table.
choir_status model_plan_read(model_plan *plan, const char *path);

typedef struct {
	model_plan plan;
	choir_layer *net;
} model;

// Makes the layers in the current scope. NULL layers and an error: images that are too small, or
// of a rank that the model cannot take.
choir_status model_build(model *m, const model_plan *plan);
// Images [n, ...] to scores [n, classes].
choir_tensor *model_apply(const model *m, choir_tensor *images);
