// Weights: the values of a strategy's variables, without slots of optimizers and metrics. They are
// saved by name in one safetensors file, which Python's safetensors and numpy can read. An ON_READ
// variable's aggregate is saved, so a file fits any strategy and any number of replicas. All
// workers make the calls that take a strategy, in cross-replica context, and get the same results.
// Only the chief uses files.
// Threads: one at a time, outside of runs.
#pragma once

#include "strategy.h"

CHOIR_C_BEGIN

// Saves the weights of s; path always holds the complete old file or the complete new one.
// metadata is NULL, or lines of "key=value" with different keys, in UTF-8. CHOIR_INVALID: an
// ON_READ variable without aggregation. CHOIR_STATE: a variable is undefined.
CHOIR_MUST_CHECK choir_status choir_strategy_save(
		choir_strategy *s, const char *path, const char *metadata);

// Restores every variable of s from the tensor with its name. ON_READ components with SUM get
// equal shares. CHOIR_INVALID: the file lacks a variable, has an unknown one, or another dtype or
// shape; nothing changes. CHOIR_CORRUPT: the file is damaged. Variables become undefined only if
// the copy to them fails.
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
	// Renames tensors of the file: lines of "TENSOR VARIABLE". TENSOR may have one star, which
	// matches any text; a star in VARIABLE stands for that text. The first matching line counts.
	// If no line matches, a tensor keeps its name. VARIABLE "-" skips the tensor. "#" begins a
	// comment. At most 1000 lines may have a star.
	//
	// After the names, "axes AXES", or AXES alone, permutes axes as choir_transpose does: "1,0"
	// for PyTorch's dense kernels, "2,3,1,0" for its convolutions. "reshape SHAPE" before the axes
	// first gives the tensor this shape; at the end it gets the variable's shape (docs/pytorch.md
	// has examples). Parentheses enclose dimensions that are one axis in the file: "reshape
	// 10,(64,7,7)" reads [10, 3136].
	//
	// A line "torch" says that the file has the names and layouts of PyTorch: "a.b.weight" becomes
	// "a/b/kernel", "a/b/gamma" or "a/b/embeddings", and so on. Axes of kernels are permuted
	// without a line, and so are those of a flattened image in front of a dense layer in a
	// choir_sequential. Lines without axes then rename modules: "0.* hidden.*".
	//
	// A line "keras" says that the file has the names and layouts of Keras. Names may end in ":0",
	// and may have a recurrent layer's cell ("gru/gru_cell/kernel"). A GRU's bias, [2, 3 h], has
	// Choir's bias and recurrent bias.
	//
	// "torch" also puts the gates of a GRU into Choir's order, and adds the two biases of an LSTM.
	// "rnn.weight_ih_l1_reverse" belongs to the layer "rnn/l1_reverse", and "_l0" to "rnn/l0" or
	// "rnn". A line "rnn.*_l1 top.*_l0" renames one layer of a module.
	const char *map;
	choir_restored_fn *report; // called at the end, once for each name
	void *user;
} choir_restore_options;

// Restores the variables for which the file has a tensor. Values are cast between floating-point
// dtypes. Missing and unexpected names are only reported. Fails as choir_strategy_restore.
// CHOIR_INVALID also: a shape that does not fit; two tensors for one variable; an invalid line of
// the map; no value for any variable. CHOIR_INVALID also if the shape fits, but elements would be
// in the wrong order: "axes 1,0" for a dense kernel behind a flattened image in a
// choir_sequential; no axes for a kernel whose shape is the same in both orders, while other lines
// have axes. With "torch" also: a recurrent layer without all of its tensors. With "keras" also: a
// GRU without reset_after. CHOIR_UNSUPPORTED: an LSTM with projections. All workers need the same
// map.
CHOIR_MUST_CHECK choir_status choir_strategy_restore_partial(
		choir_strategy *s, const char *path, const choir_restore_options *o);

// Saves the weights of s with the names and layouts of the file that map describes: the inverse of
// choir_strategy_restore_partial. With "torch", the second bias of an LSTM is zeros. A variable
// without a line keeps its name and shape. Fails as
// choir_strategy_save. CHOIR_INVALID also: an invalid line; a shape that does not fit; two
// variables for one tensor; a variable without a tensor, because another line uses its name.
CHOIR_MUST_CHECK choir_status choir_strategy_save_mapped(
		choir_strategy *s, const char *path, const char *map, const char *metadata);

// A hash of what choir_strategy_save would save: names, dtypes, shapes and bytes. The order of
// variables does not matter. 0 after a failure.
uint64_t choir_strategy_hash(choir_strategy *s);

// Reads the value of key in a file's metadata. CHOIR_NOT_FOUND: no such key. CHOIR_INVALID: size
// is too small. CHOIR_CORRUPT: not a safetensors file. Threads: any.
CHOIR_MUST_CHECK choir_status choir_weights_metadata(
		const char *path, const char *key, char *value, size_t size);

// The tensors of any safetensors file, from its header, in the order of names. CHOIR_UNSUPPORTED:
// an unknown dtype, or more than CHOIR_MAX_RANK dimensions. Threads: any, one at a time.
typedef struct choir_weights_list choir_weights_list;
typedef struct {
	const char *name;
	const char *dtype; // the file's name for it: "F32"
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
