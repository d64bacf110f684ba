// The models that the command can train: built for images of any size or for text, and rebuilt
// from what is written beside their weights.
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
	BYTES = 256 // that there are: the vocabulary of text
};

// What a table was like that a model learned from.
typedef struct {
	int64_t inputs; // of mean and deviation; 0: inputs are not standardised
	float mean[MAX_INPUTS], deviation[MAX_INPUTS];
	char columns[COLUMNS_SIZE]; // of the input, as source_inputs gives them; "": not known
	char target[256]; // the column of labels; "": it was no table
	size_t classes; // that have names; 0: none
	char names[METADATA_SIZE]; // of the classes, each with a zero behind it
	const char *name[MAX_CLASS_NAMES];
} table_plan;

// How large a model is that is made of equal blocks.
typedef struct {
	int64_t width; // gpt: numbers at each place; resnet20: channels of the first third
	int64_t layers; // gpt: blocks; resnet20: layers with weights, 6 n + 2
	int64_t heads, context; // gpt
	double dropout; // gpt; 0: none
} model_size;

// What a model is, without its weights.
typedef struct {
	const char *kind; // "mlp", "cnn", "resnet20", "gpt"
	int64_t width[MAX_WIDTHS]; // mlp: of the hidden layers; cnn: two convolutions, one dense
	int widths; // 0: it has a size instead
	model_size size;
	bool gelu_tanh; // gpt: GELU is the approximation by tanh
	choir_shape image; // of an example; cnn: [h, w] or [h, w, channels]; gpt: [context]
	int64_t classes;
	double scale; // by which its images were multiplied
	table_plan *table; // NULL: it did not learn from one
} model_plan;

extern const char *const model_kinds[]; // ending in NULL

// Sets the kind and its widths: "512,512", or NULL for the usual ones; and the usual size of those
// that have one instead. CHOIR_INVALID: they do not fit it.
choir_status model_plan_set(model_plan *plan, const char *kind, const char *widths);
// Sets what is not 0 in size. CHOIR_INVALID: the kind has no such number.
choir_status model_plan_resize(model_plan *plan, const model_size *size);
// Whether the model goes on with text, and does not classify images.
bool model_plan_text(const model_plan *plan);
// How many numbers the weights are, without making them, and how many are kept of one example for
// the way back: near enough to tell what does not fit in memory.
double model_plan_weights(const model_plan *plan);
double model_plan_activations(const model_plan *plan);

// What a training step does for one example, there and back. Attention counts what its mask
// leaves; biases, and ReLU on the way there, are part of the products before them.
typedef struct {
	double products, convolutions, attention; // multiplications and additions
	double numbers; // that all other operations read and write, each its operands and its result
} model_work;
model_work model_plan_work(const model_plan *plan);
// Whether a model can be like that: its size, and its input, which is set before. CHOIR_INVALID:
// it cannot.
choir_status model_plan_check(const model_plan *plan);

// The plan as "key=value" lines. False: they need more room.
bool model_plan_write(const model_plan *plan, char text[METADATA_SIZE]);
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
// Images [n, ...] to scores [n, classes]; text, u8 [n, places], to scores of the byte that comes
// next at each place [n, places, 256].
choir_tensor *model_apply(const model *m, choir_tensor *input);
// One example as the layers take it: of images the pixels of an mlp, else [h, w, channels].
choir_shape model_input(const model_plan *plan);
// Whether the file at path is large enough for the weights of the plan: what a file says of itself
// must not ask for memory that it does not come near to filling. CHOIR_CORRUPT: it is not.
choir_status model_plan_fits(const model_plan *plan, const char *path);
enum { WEIGHTS_PATH = 4096 };
// Where *path is a folder of checkpoints or one step of it, finds the weights of its newest
// whole step, or of that one, and sets *path to it. CHOIR_NOT_FOUND, CHOIR_CORRUPT: there is none.
choir_status model_find_weights(const char **path, char found[WEIGHTS_PATH]);
// Makes the layers in s and gives them the weights at path.
choir_status model_load(model *m, choir_strategy *s, const model_plan *plan, const char *path);
// The loss of each example, [n]: cross entropy in nats, the mean over places for text.
choir_tensor *model_losses(const model *m, choir_tensor *scores, choir_tensor *labels);
