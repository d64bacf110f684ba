// A kind of layer is a struct that begins with a choir_layer, and a table of functions.
#pragma once

#include "choir/layer.h"
#include "op/op.h"
#include "strategy/strategy.h"
#include "train/export_c/export_c.h"

// For imports whose images have another order of axes.
typedef enum {
	CHI_IMAGE_KEPT = 0,
	CHI_IMAGE_MADE,
	CHI_IMAGE_FLATTENED,
	CHI_IMAGE_USED,
	CHI_IMAGE_ENDED // what follows has no order of pixels
} chi_image_role;

typedef struct {
	int64_t channels; // 0: no image, or unknown
	bool flat;
} chi_image;

typedef struct {
	const char *name;
	chi_image_role image;
	void (*follow)(choir_layer *l, chi_image *image);
	// x is usable, and f32 if the layer has its own variables.
	choir_tensor *(*apply)(choir_layer *l, choir_tensor *x);
	choir_tensor *(*apply_linear)(choir_layer *l, choir_tensor *x);
	bool maximum; // results are maxima of elements of x
	// NULL: the layer's own.
	choir_variable *(*variable)(choir_layer *l, int index);
	bool any_dtype; // x need not be f32, even with variables
	bool sequences; // takes sequences of different lengths (x->frame->lengths)
	// NULL: no export to C.
	int (*describe)(choir_layer *l, chi_export *e, int x);
} chi_layer_kind;

enum { CHI_LAYER_VARIABLES = 4, CHI_LAYER_SETTING = 80 };

struct choir_layer {
	const chi_layer_kind *kind;
	choir_strategy *strategy;
	char *name;
	char setting[CHI_LAYER_SETTING];
	bool rectifies;
	int64_t channels;
	choir_precision precision;
	int variables;
	choir_variable *variable[CHI_LAYER_VARIABLES];
};

choir_status chi_layer_check(
		const char *kind, const char *name, bool needs_name, choir_activation activation);
// Without an owner. name is copied, and may be NULL.
choir_layer *chi_layer_new(size_t bytes, const chi_layer_kind *kind, const char *name);
choir_status chi_layer_make_variable(
		choir_layer *l, const char *what, choir_shape shape, const choir_variable_options *o);
// "name/kernel" and, with bias, "name/bias".
choir_status chi_layer_make_weights(choir_layer *l, const choir_shape *kernel, bool bias);
// Options that variables do not show. A containing layer adds chi_layer_hash of the others.
void chi_layer_set(choir_layer *l, const char *fmt, ...) CHOIR_PRINTF(2, 3);
uint64_t chi_layer_hash(const choir_layer *l); // 0 for NULL
// Gives l (may be NULL) to the strategy. If l has variables and no replica makes it, workers
// compare its options after the first update. NULL: a failure here or in status deletes l and its
// variables.
choir_layer *chi_layer_finish(choir_layer *l, choir_status status);
choir_layer *chi_layer_finish_around(
		choir_layer *l, size_t n, choir_layer *const inside[], choir_status status);
const char *chi_layer_activation(choir_activation activation);

bool chi_layer_is_regularized(choir_layer *l);
// Sets flattened_channels (value/variable.h).
void chi_layer_follow(choir_layer *l, chi_image *image);
choir_tensor *chi_layer_apply_linear(choir_layer *l, choir_tensor *x);
// *ended: without time steps.
choir_tensor *chi_layer_apply_sequences(
		choir_layer *l, choir_tensor *x, choir_tensor *lengths, bool *ended);
// Records 'layer "hidden": ' and the message as CHOIR_INVALID in x's frame. Returns NULL.
choir_tensor *chi_layer_fail(const choir_layer *l, choir_tensor *x, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);
choir_status chi_layer_check_inside(const char *kind, size_t n, choir_layer *const layers[]);
