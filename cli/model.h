// The models that the command can train: built for images of any size, and rebuilt from what is
// written beside their weights.
#pragma once

#include <choir/choir.h>

enum { MOST_WIDTHS = 8, METADATA_SIZE = 512 };

// What a model is, without its weights.
typedef struct {
	const char *kind; // "mlp", "cnn"
	int64_t width[MOST_WIDTHS]; // mlp: of the hidden layers; cnn: two convolutions, one dense
	int widths;
	choir_shape image; // of an example; cnn: [h, w] or [h, w, channels]
	int64_t classes;
	double scale; // by which its images were multiplied
} model_plan;

extern const char *const model_kinds[]; // ending in NULL

// Sets the kind and its widths: "512,512", or NULL for the usual ones. CHOIR_INVALID: they do
// not fit it.
choir_status model_plan_set(model_plan *plan, const char *kind, const char *widths);
// The plan as "key=value" lines.
void model_plan_write(const model_plan *plan, char text[METADATA_SIZE]);
// The plan of the weights at path.
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
