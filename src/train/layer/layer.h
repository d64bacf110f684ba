// Layers from inside: each kind is a struct that begins with a choir_layer, and a table of what it
// does.
#pragma once

#include "choir/layer.h"
#include "op/op.h"
#include "strategy/strategy.h"
#include "train/export_c/export_c.h"

typedef struct {
	const char *name; // of the kind, in messages
	// x is usable, and f32 if the layer has variables of its own. NULL: recorded in x's frame.
	choir_tensor *(*apply)(choir_layer *l, choir_tensor *x);
	// The same but for the ReLU at its end, for kinds that have layers that rectify.
	choir_tensor *(*apply_linear)(choir_layer *l, choir_tensor *x);
	bool maximum; // what comes out are elements of x that are the largest of some
	// For kinds that hold other layers; NULL: those of the layer itself. index is in range.
	choir_variable *(*variable)(choir_layer *l, int index);
	bool any_dtype; // x need not be f32, variables or not
	// Describes the formula on a value, for a file of C; NULL: that cannot be.
	int (*describe)(choir_layer *l, chi_export *e, int x);
} chi_layer_kind;

enum { CHI_LAYER_VARIABLES = 4, CHI_LAYER_SETTING = 64 };

struct choir_layer {
	const chi_layer_kind *kind;
	choir_strategy *strategy;
	char *name; // NULL: the kind has none
	char setting[CHI_LAYER_SETTING]; // its options in words; "": it has none
	bool rectifies; // ReLU is the last that it does
	int variables; // all, those of layers inside included
	choir_variable *variable[CHI_LAYER_VARIABLES]; // its own; NULL: none
};

// What every constructor checks of its arguments.
choir_status chi_layer_check(
		const char *kind, const char *name, bool needs_name, choir_activation activation);
// A zeroed layer of bytes, which nobody owns yet; name is copied and may be NULL. NULL after a
// failure.
choir_layer *chi_layer_new(size_t bytes, const chi_layer_kind *kind, const char *name);
// Makes the variable "name/what"; o NULL: zeros.
choir_status chi_layer_make_variable(
		choir_layer *l, const char *what, choir_shape shape, const choir_variable_options *o);
// Makes the variables "name/kernel", of that shape, and, if there is to be one, "name/bias", of
// its last dimension.
choir_status chi_layer_make_weights(choir_layer *l, const choir_shape *kernel, bool bias);
// Says the options of l that its variables do not show, before it is finished. A layer that holds
// others says their chi_layer_hash, too. Costs nothing else where there are no other workers.
void chi_layer_set(choir_layer *l, const char *fmt, ...) CHOIR_PRINTF(2, 3);
uint64_t chi_layer_hash(const choir_layer *l); // NULL: 0
// The strategy takes l over, and l is returned. If l has variables and no replica makes it,
// workers compare its options after the first update (strategy/worker_consistency.h). If status is
// a failure, or this fails, l and what was made for it are taken back. l NULL gives NULL.
choir_layer *chi_layer_finish(choir_layer *l, choir_status status);
// The same of a layer that holds n others, some of them NULL.
choir_layer *chi_layer_finish_around(
		choir_layer *l, size_t n, choir_layer *const inside[], choir_status status);
const char *chi_layer_activation(choir_activation activation); // its name in messages

// A layer that rectifies, applied without its ReLU.
choir_tensor *chi_layer_apply_linear(choir_layer *l, choir_tensor *x);
// Records 'layer "hidden": ' and the message in x's frame, as CHOIR_INVALID; NULL.
choir_tensor *chi_layer_fail(const choir_layer *l, choir_tensor *x, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);
// What fused kernels can do of an activation, and what is left to be done with their result.
choir_activate chi_layer_fused(choir_activation activation);
choir_tensor *chi_layer_rest(choir_activation activation, choir_tensor *y);
// The whole of an activation.
choir_tensor *chi_layer_activate(choir_activation activation, choir_tensor *y);
// What is to be held by a layer that is being made is there, and of the current strategy.
choir_status chi_layer_check_inside(const char *kind, size_t n, choir_layer *const layers[]);
