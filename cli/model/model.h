// The models of the command, built for images of any size or for text, and rebuilt from metadata.
#pragma once

#include <choir/choir.h>

enum {
	MAX_WIDTHS = 8,
	MAX_LAYERS = 1024,
	MAX_WIDTH = 1 << 20,
	MAX_CONTEXT = 1 << 20,
	MAX_INPUTS = 2048,
	METADATA_SIZE = 1 << 16,
	MAX_CLASS_NAMES = 256,
	COLUMNS_SIZE = 4096,
	BYTES = 256 // the vocabulary of text
};

// The description of the table that a model was trained on.
typedef struct {
	int64_t inputs; // elements of mean and deviation; 0: inputs are not standardized
	float mean[MAX_INPUTS], deviation[MAX_INPUTS];
	char columns[COLUMNS_SIZE]; // input columns, as by source_inputs; "": unknown
	char target[256]; // the target column; "": no table
	size_t classes; // number of class names
	char names[METADATA_SIZE]; // the class names, each with a 0 after it
	const char *name[MAX_CLASS_NAMES];
} table_plan;

typedef struct {
	int64_t width; // gpt: embedding size; resnet20: channels of the first stage
	int64_t layers; // gpt: blocks; resnet20: layers with weights, 6 n + 2
	int64_t heads, context; // gpt
	double dropout; // gpt; 0: none
} model_size;

// A model without its weights.
typedef struct {
	const char *kind; // "mlp", "cnn", "resnet20", "gpt"
	int64_t width[MAX_WIDTHS]; // mlp: hidden layers; cnn: two convolutions, one dense
	int widths; // number of widths; 0: it has a size instead
	model_size size;
	bool gelu_tanh; // gpt: the tanh approximation of GELU
	choir_shape image; // an example; cnn: [h, w] or [h, w, channels]; gpt: [context]
	int64_t classes;
	double scale; // factor of the images
	table_plan *table; // NULL: not trained on a table
} model_plan;

extern const char *const model_kinds[]; // ending in NULL

// Sets the kind and its widths ("512,512"; NULL: default) or default size. CHOIR_INVALID: the
// widths do not fit.
choir_status model_plan_set(model_plan *plan, const char *kind, const char *widths);
// Sets the sizes that are not 0. CHOIR_INVALID: the kind has no such size.
choir_status model_plan_resize(model_plan *plan, const model_size *size);
// Whether the model is a language model, not a classifier.
bool model_plan_text(const model_plan *plan);
// The number of weights, and of activations kept per example: estimates by a formula.
double model_plan_weights(const model_plan *plan);
double model_plan_activations(const model_plan *plan);

// The work of a training step per example, forward and backward. Attention counts what its mask
// leaves; biases and the forward pass of ReLU count with the products before them.
typedef struct {
	double products, convolutions, attention; // multiplications and additions
	double numbers; // elements that all other operations read and write
} model_work;
model_work model_plan_work(const model_plan *plan);
// Checks size and input, which is set before. CHOIR_INVALID: they do not fit the model.
choir_status model_plan_check(const model_plan *plan);

// Writes the plan as "key=value" lines. False: it does not fit.
bool model_plan_write(const model_plan *plan, char text[METADATA_SIZE]);
// Reads the plan of the weights at path. Fills plan->table; without a table inputs is 0 and target
// "".
choir_status model_plan_read(model_plan *plan, const char *path);

typedef struct {
	model_plan plan;
	choir_layer *net;
} model;

// Creates the layers in the current scope; NULL if the images are too small or have a wrong rank.
choir_status model_build(model *m, const model_plan *plan);
// Images [n, ...] to scores [n, classes]; text, u8 [n, positions], to scores of the next byte [n,
// positions, 256].
choir_tensor *model_apply(const model *m, choir_tensor *input);
// The shape of one example for the layers: the pixels for an mlp, else [h, w, channels]; text:
// [context].
choir_shape model_input(const model_plan *plan);
// CHOIR_CORRUPT if the file at path is too small for the plan's weights: metadata of an untrusted
// file must not allocate memory.
choir_status model_plan_fits(const model_plan *plan, const char *path);
enum { WEIGHTS_PATH = 4096 };
// Replaces a directory of checkpoints, or one checkpoint, by the weights of the newest undamaged
// one, or of that one. CHOIR_NOT_FOUND, CHOIR_CORRUPT: there is none.
choir_status model_find_weights(const char **path, char found[WEIGHTS_PATH]);
// Creates the layers in s and restores the weights at path.
choir_status model_load(model *m, choir_strategy *s, const model_plan *plan, const char *path);
// The loss of each example, [n]: cross entropy in nats; for text the mean over positions.
choir_tensor *model_losses(const model *m, choir_tensor *scores, choir_tensor *labels);
