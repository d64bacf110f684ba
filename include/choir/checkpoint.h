// Weights in one safetensors file, which Python's safetensors and numpy can read. Saved are the
// values of all variables of a strategy by name, but not the slots of optimizers and the state of
// metrics; the value of an ON_READ variable is its aggregation over replicas. So a file moves
// freely between strategies, numbers of replicas and devices. All calls are made in cross-replica
// context.
// Threads: the program's, while no run is under way.
#pragma once

#include "strategy.h"

CHOIR_C_BEGIN

// Writes a file beside path and renames it when it is on the disk: whatever happens, path holds
// the old file or the new one, whole. metadata: "key=value" lines, for what else a reader must
// know; or NULL. CHOIR_IO: the system refused, and why; CHOIR_INVALID: a line without "=", a key
// that stands twice, text that is no UTF-8, an ON_READ variable without aggregation; CHOIR_STATE:
// a variable is undefined.
choir_status choir_strategy_save(choir_strategy *s, const char *path, const char *metadata);
// Gives every variable the value that the file has under its name; an ON_READ variable with SUM
// gets equal shares. All or nothing: if the file lacks a variable, has one too many, or one of
// another dtype or shape, CHOIR_INVALID names them and nothing changes; if the file is damaged,
// CHOIR_CORRUPT says where. Only a device, or memory for an ON_READ variable, that fails while
// values are being copied leaves variables undefined, until they are restored again.
choir_status choir_strategy_restore(choir_strategy *s, const char *path);
// What became of a name in a restore of a part.
typedef enum {
	CHOIR_RESTORED_VALUE, // a variable that has the file's value now
	CHOIR_RESTORED_MISSING, // a variable of which the file has no tensor: it stays as it was
	CHOIR_RESTORED_UNEXPECTED // a tensor of the file for which there is no variable
} choir_restored;
typedef void choir_restored_fn(choir_restored what, const char *name, void *user);
typedef struct {
	size_t size;
	// How tensors of the file are called here: lines of "TENSOR VARIABLE", with spaces between. A
	// star in TENSOR is any text, which a star in VARIABLE stands for; the first line that matches
	// counts, and without one a tensor's name is the variable's. VARIABLE "-": the tensor is left
	// out. A third word changes the order of axes, as choir_transpose does: "1,0" for PyTorch's
	// dense kernels, "2,3,1,0" for its convolutions. "#" begins a comment. NULL: no line.
	const char *map;
	choir_restored_fn *tell; // called with all names when all is done; or NULL
	void *user;
} choir_restore_options;
// Gives the variables of which the file has a tensor its value, cast between floating dtypes; for
// fine-tuning, also weights of other libraries. All or nothing, with the errors of
// choir_strategy_restore, but that what is missing or unexpected is told and no error;
// CHOIR_INVALID also for a shape that does not fit, with both, for two tensors of one variable, a
// line of the map that is none, and a file that has no value for any variable. o may be NULL.
choir_status choir_strategy_restore_part(
		choir_strategy *s, const char *path, const choir_restore_options *o);
// A 64-bit hash of what would be saved: names, dtypes, shapes and bytes. Equal for equal weights,
// however many devices hold them and in whatever order variables were made. 0 after a failure.
uint64_t choir_strategy_hash(choir_strategy *s);
// The value that a file's metadata has for key, as text with a zero byte at the end.
// CHOIR_NOT_FOUND: no such file or key (the text lists the keys); CHOIR_INVALID: size is too
// small, and what is needed; CHOIR_CORRUPT: no safetensors file. Needs no strategy. Threads: any.
choir_status choir_checkpoint_metadata(
		const char *path, const char *key, char *value, size_t size);

CHOIR_C_END
