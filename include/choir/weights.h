// Weights: the values of a strategy's variables, without slots and metrics, by name in one
// safetensors file. An ON_READ variable is saved as its aggregate, so a file fits every strategy
// and number of replicas. All workers make the calls that take a strategy, in cross-replica
// context, with the same results. Only the chief uses files.
// Threads: one at a time, outside of runs.
#pragma once

#include "strategy.h"

CHOIR_C_BEGIN

// Saves the weights of s. path always holds the complete old or new file. metadata is NULL, or
// lines of "key=value" with different keys, in UTF-8. CHOIR_INVALID: an ON_READ variable without
// aggregation. CHOIR_STATE: a variable is undefined.
CHOIR_MUST_CHECK choir_status choir_strategy_save(
		choir_strategy *s, const char *path, const char *metadata);

// Restores every variable of s from the tensor with its name. Components of ON_READ variables with
// SUM get equal shares. CHOIR_INVALID, and nothing changes: the file lacks a variable, has an
// unknown one, or has another dtype or shape. CHOIR_CORRUPT: a damaged file. Variables become
// undefined only if the copy to them fails.
CHOIR_MUST_CHECK choir_status choir_strategy_restore(choir_strategy *s, const char *path);

// The result for one name.
typedef enum {
	CHOIR_RESTORED_VALUE,
	CHOIR_RESTORED_MISSING, // unchanged: the file has no tensor for it
	CHOIR_RESTORED_UNEXPECTED // the file has a tensor without a variable
} choir_restored;

// Gets the result for one variable or tensor.
typedef void choir_restored_fn(choir_restored what, const char *name, void *user);

// How a file's names become names of variables.
typedef struct {
	size_t size;
	// Renames the file's tensors by lines "TENSOR VARIABLE" (docs/pytorch.md), equal on all
	// workers. TENSOR may have one star, which matches any text; a star in VARIABLE is that text.
	// The first matching line applies; without one, a tensor keeps its name. VARIABLE "-" skips
	// the tensor. "#" begins a comment. At most 1000 lines may have a star.
	//
	// After the names, "axes AXES", or AXES alone, permutes axes as choir_transpose does: "1,0"
	// for PyTorch's dense kernels, "2,3,1,0" for its convolutions. Before the axes, "reshape
	// SHAPE" first gives the tensor this shape; at the end it gets the variable's. Parentheses
	// enclose dimensions that are one axis in the file: "reshape 10,(64,7,7)" reads [10, 3136].
	//
	// After a line "torch", the file has PyTorch's names and layouts: "a.b.weight" becomes
	// "a/b/kernel", "a/b/gamma" or "a/b/embeddings", and so on. Choir permutes the axes of
	// kernels, and of a flattened image in front of a dense layer in a choir_sequential. Lines
	// without axes rename modules: "0.* hidden.*".
	//
	// After a line "keras", names may end in ":0", and may name a recurrent layer's cell
	// ("gru/gru_cell/kernel"). A GRU's bias [2, 3 h] holds both of Choir's.
	//
	// With "torch", a recurrent layer's tensor "rnn.weight_ih_l1_reverse" belongs to the layer
	// "rnn/l1_reverse", and "_l0" to "rnn/l0" or "rnn".
	const char *map;
	choir_restored_fn *report; // called at the end, for each name
	void *user;
} choir_restore_options;

// Restores the variables for which the file has a tensor, and casts between floating-point dtypes.
// Missing and unexpected names are only reported. CHOIR_CORRUPT: as choir_strategy_restore.
// CHOIR_UNSUPPORTED: an LSTM with projections. CHOIR_INVALID:
// - an invalid line of the map; a shape that does not fit; two tensors for one variable; no value
//   for any variable;
// - "axes 1,0" for a dense kernel behind a flattened image in a choir_sequential (a wrong order);
// - no axes for a kernel whose shape is the same in both orders, if other lines have axes;
// - with "torch", a recurrent layer that lacks some of its tensors;
// - with "keras", a GRU without reset_after.
CHOIR_MUST_CHECK choir_status choir_strategy_restore_partial(
		choir_strategy *s, const char *path, const choir_restore_options *o);

// Saves the weights of s with map's names and layouts: the inverse of
// choir_strategy_restore_partial. With "torch", an LSTM's second bias is zeros. A variable without
// a line keeps its name and shape. Fails as choir_strategy_save. CHOIR_INVALID also: an invalid
// line; a shape that does not fit; two variables for one tensor; a variable without a line, if
// another line uses its name for a tensor.
CHOIR_MUST_CHECK choir_status choir_strategy_save_mapped(
		choir_strategy *s, const char *path, const char *map, const char *metadata);

// A hash of what choir_strategy_save saves: names, dtypes, shapes and bytes, in any order. 0: a
// failure.
uint64_t choir_strategy_hash(choir_strategy *s);

// Reads the value of key in a file's metadata. CHOIR_INVALID: size is too small. CHOIR_CORRUPT:
// not a safetensors file. Threads: any.
CHOIR_MUST_CHECK choir_status choir_weights_metadata(
		const char *path, const char *key, char *value, size_t size);

// Lists the tensors of a safetensors file by name. Reads only its header. CHOIR_UNSUPPORTED: an
// unknown dtype, or more than CHOIR_MAX_RANK dimensions. Threads: any, one at a time.
typedef struct choir_weights_list choir_weights_list;
typedef struct {
	const char *name;
	const char *dtype; // its name in the file: "F32"
	int known; // the choir_dtype; CHOIR_NONE: Choir has no such dtype
	choir_shape shape;
	uint64_t first, bytes; // offset and length of the data in the file
} choir_weights_entry;
choir_weights_list *choir_weights_list_new(const char *path);
void choir_weights_list_free(choir_weights_list *l);
size_t choir_weights_list_entries(const choir_weights_list *l);
const choir_weights_entry *choir_weights_list_entry(const choir_weights_list *l, size_t i);

// The i-th key of the metadata and its value.
const char *choir_weights_list_key(const choir_weights_list *l, size_t i);
const char *choir_weights_list_value(const choir_weights_list *l, size_t i);

CHOIR_C_END
