// Weights: the values of all variables of a strategy, by name, in one safetensors file, which
// Python's safetensors and numpy can read. The slots of optimizers and the state of metrics are
// not in it (checkpoint.h saves these, too). The value of an ON_READ variable is its aggregation
// over replicas. So a file fits any strategy and any number of replicas. Calls that take a
// strategy are made in cross-replica context; with several workers all make them, the chief
// alone reads and writes, and the result is the same for all.
// Threads: the program's, while no run is under way.
#pragma once

#include "strategy.h"

CHOIR_C_BEGIN

// Saves the weights of s to path, which always holds the old or the new file, complete.
// metadata: lines of "key=value" for readers, or NULL. CHOIR_INVALID: a line without "=", a key
// that occurs twice, text that is not UTF-8, an ON_READ variable without aggregation.
// CHOIR_STATE: a variable is undefined.
CHOIR_MUST_CHECK choir_status choir_strategy_save(
		choir_strategy *s, const char *path, const char *metadata);

// Restores every variable of s from the tensor of its name; an ON_READ variable with SUM gets
// equal shares. All or nothing: if the file lacks a variable, has an unknown one, or one of
// another dtype or shape, CHOIR_INVALID names them and nothing changes. CHOIR_CORRUPT: the file
// is damaged. Variables become undefined only if a device, or memory for an ON_READ variable,
// fails while values are copied.
CHOIR_MUST_CHECK choir_status choir_strategy_restore(choir_strategy *s, const char *path);

typedef enum {
	CHOIR_RESTORED_VALUE, // the variable has the file's value
	CHOIR_RESTORED_MISSING, // the variable is unchanged: the file has no tensor for it
	CHOIR_RESTORED_UNEXPECTED // the file has a tensor without a variable
} choir_restored;

typedef void choir_restored_fn(choir_restored what, const char *name, void *user);

typedef struct {
	size_t size;
	// Renames tensors of the file: lines of "TENSOR VARIABLE", separated by spaces. TENSOR may
	// have one star, which matches any text; a star in VARIABLE stands for that text. The first
	// line that matches counts; a tensor without one keeps its name. VARIABLE "-" skips the
	// tensor. "#" begins a comment. At most 1000 lines may have a star. NULL: no lines.
	//
	// "axes AXES" after the names, or AXES alone, permutes axes as choir_transpose: "1,0" for
	// PyTorch's dense kernels, "2,3,1,0" for its convolutions. "reshape SHAPE" before it first
	// gives the tensor another shape with the same elements. The result of both then takes the
	// variable's shape (docs/pytorch.md has examples).
	const char *map;
	choir_restored_fn *report; // called for each name at the end
	void *user;
} choir_restore_options;

// Restores the variables for which the file has a tensor, cast between floating-point dtypes;
// for fine-tuning and for weights of other libraries. As choir_strategy_restore, but missing and
// unexpected names are only reported (.report). CHOIR_INVALID also: a shape that does not fit,
// two tensors for one variable, an invalid line of the map, no value for any variable. All
// workers need the same map.
CHOIR_MUST_CHECK choir_status choir_strategy_restore_partial(
		choir_strategy *s, const char *path, const choir_restore_options *o);

// A hash of what choir_strategy_save would save: names, dtypes, shapes and bytes. The order in
// which variables were made has no effect. 0 after a failure.
uint64_t choir_strategy_hash(choir_strategy *s);

// Reads the value of key in a weights file's metadata, as a string. CHOIR_NOT_FOUND: no such
// file or key. CHOIR_INVALID: size is too small (the text has the size needed). CHOIR_CORRUPT:
// not a safetensors file. Threads: any.
CHOIR_MUST_CHECK choir_status choir_weights_metadata(
		const char *path, const char *key, char *value, size_t size);

// The contents of a weights file, Choir's or another program's, from its header.
// CHOIR_UNSUPPORTED: an unknown dtype, or more than CHOIR_MAX_RANK dimensions. Threads: any, one
// at a time for a list.
typedef struct choir_weights_list choir_weights_list;

typedef struct {
	const char *name;
	const char *dtype; // the file's name for it: "F32"
	int known; // the choir_dtype; CHOIR_NONE: there is none
	choir_shape shape;
	uint64_t first, bytes; // offset of its data in the file, and their length
} choir_weights_entry;

choir_weights_list *choir_weights_list_new(const char *path);
void choir_weights_list_free(choir_weights_list *l);

// The number of tensors, and the i-th in the order of names.
size_t choir_weights_list_entries(const choir_weights_list *l);
const choir_weights_entry *choir_weights_list_entry(const choir_weights_list *l, size_t i);

// The i-th key of the metadata, in order, and its value.
const char *choir_weights_list_key(const choir_weights_list *l, size_t i);
const char *choir_weights_list_value(const choir_weights_list *l, size_t i);

CHOIR_C_END
