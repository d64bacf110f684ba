// Checkpoints: a strategy's weights in one file, or its whole state, from which a training
// continues as if it had never stopped. All calls that take a strategy are made in cross-replica
// context.
// Threads: the program's, while no run is under way.
#pragma once

#include "strategy.h"

CHOIR_C_BEGIN

// Weights

// A weights file is one safetensors file, which Python's safetensors and numpy can read. It has
// the values of all variables of a strategy by name, without the slots of optimizers and the
// state of metrics. The value of an ON_READ variable is its aggregation over replicas. So a file
// does not depend on the strategy or the numbers of replicas and devices.

// Saves the weights of s to path. Writes a file next to path and renames it when it is on the
// disk: path always holds the old or the new file, complete. metadata: lines of "key=value" for
// readers; may be NULL. With several workers all call this, and the chief alone writes.
// CHOIR_IO: the system refused; the text says why. CHOIR_INVALID: a line without "=", a key that
// occurs twice, text that is not UTF-8, an ON_READ variable without aggregation. CHOIR_STATE: a
// variable is undefined.
CHOIR_MUST_CHECK choir_status choir_strategy_save(
		choir_strategy *s, const char *path, const char *metadata);

// Restores every variable of s from the tensor of its name; an ON_READ variable with SUM gets
// equal shares. All or nothing: if the file lacks a variable, has an unknown one, or one of
// another dtype or shape, CHOIR_INVALID names them and nothing changes. CHOIR_CORRUPT: the file
// is damaged; the text says where. Variables become undefined only if a device, or memory for an
// ON_READ variable, fails while values are copied; they stay so until they are restored again.
// With several workers all call this, the chief alone reads, and the result is the same for all.
CHOIR_MUST_CHECK choir_status choir_strategy_restore(choir_strategy *s, const char *path);

// What happened to a name in choir_strategy_restore_part.
typedef enum {
	CHOIR_RESTORED_VALUE, // the variable has the file's value
	CHOIR_RESTORED_MISSING, // the file has no tensor for the variable, which is unchanged
	CHOIR_RESTORED_UNEXPECTED // the file has a tensor without a variable
} choir_restored;

typedef void choir_restored_fn(choir_restored what, const char *name, void *user);

typedef struct {
	size_t size;
	// Renames tensors of the file: lines of "TENSOR VARIABLE", separated by spaces. A star in
	// TENSOR matches any text; a star in VARIABLE stands for that text. The first line that
	// matches counts; a tensor without one keeps its name. VARIABLE "-" skips the tensor. "#"
	// begins a comment. At most 1000 lines may have a star. NULL: no lines.
	//
	// "axes AXES", after the names or instead of VARIABLE, permutes axes as choir_transpose:
	// "1,0" for PyTorch's dense kernels, "2,3,1,0" for its convolutions. "reshape SHAPE" before
	// it first gives the tensor another shape with the same elements. The result of both then
	// takes the variable's shape. The dense layer after a flattened image needs a reshape:
	// PyTorch flattens c,h,w, Choir h,w,c. For 64 channels of 7 by 7 and 10 scores the line is
	//     fc.weight fc/kernel reshape 10,64,7,7 axes 2,3,1,0
	// With "axes 1,0" alone the shapes fit as well, but the scores are wrong: a file does not
	// say what was flattened.
	const char *map;
	choir_restored_fn *tell; // called for each name at the end; may be NULL
	void *user;
} choir_restore_options;

// Restores the variables for which the file has a tensor, cast between floating-point dtypes;
// for fine-tuning and for weights of other libraries. o may be NULL. All or nothing, with the
// errors of choir_strategy_restore, except that missing and unexpected names are reported
// (.tell) and are no error. CHOIR_INVALID also: a shape that does not fit (the text has both),
// two tensors for one variable, an invalid line of the map, no value for any variable. With
// several workers all call this with the same map; else as choir_strategy_restore.
CHOIR_MUST_CHECK choir_status choir_strategy_restore_part(
		choir_strategy *s, const char *path, const choir_restore_options *o);

// A 64-bit hash of what choir_strategy_save would save: names, dtypes, shapes and bytes. Equal
// for equal weights, whatever the number of devices and the order in which variables were made.
// 0 after a failure.
uint64_t choir_strategy_hash(choir_strategy *s);

// Reads the value of key in a weights file's metadata, as a string. Needs no strategy.
// CHOIR_NOT_FOUND: no such file or key (the text lists the keys); CHOIR_INVALID: size is too
// small (the text has the size needed); CHOIR_CORRUPT: not a safetensors file. Threads: any.
CHOIR_MUST_CHECK choir_status choir_checkpoint_metadata(
		const char *path, const char *key, char *value, size_t size);

// The contents of a weights file, Choir's or another program's, without a strategy. Only the
// header is read, strictly. CHOIR_CORRUPT: the text says what is wrong and at which byte of the
// file. CHOIR_UNSUPPORTED: an unknown dtype, or more than CHOIR_MAX_RANK dimensions. Threads:
// any, one at a time for a list.
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

// The number of tensors, and the i-th in the order of names. It belongs to the list. NULL: i is
// out of range.
size_t choir_weights_list_entries(const choir_weights_list *l);
const choir_weights_entry *choir_weights_list_entry(const choir_weights_list *l, size_t i);

// The i-th key of the metadata, in order, and its value. NULL: i is out of range.
const char *choir_weights_list_key(const choir_weights_list *l, size_t i);
const char *choir_weights_list_value(const choir_weights_list *l, size_t i);

// Checkpoints

// A checkpoint directory holds steps. A step is a folder "step-1500" of three files.
// weights.safetensors has the weights. state.safetensors has, as named tensors, all else that
// the next step depends on: slots, counters and loss scales of optimizers, metrics, positions of
// distributed datasets, the strategy's step and seed, and each replica's components of ON_READ
// variables. manifest.json has a CRC-32C of every tensor, the number of the save, and metadata.
// A step gets its name when all of it is on the disk, so a job or machine that dies leaves only
// complete ones.
//
// A restored training gives the same bits as one that never stopped, with the same program, data
// and number of replicas; devices, workers and strategy may differ. With another number of
// replicas ON_READ variables get shares of their aggregate, as from a weights file.
//
// Security: a directory may come from a stranger. Choir follows no link in it: a step that is a
// link, or has a link in place of a file, counts as damaged, and nothing is removed through a
// link. The path of the directory itself may be a link.
//
// Several workers (cluster.h): all make the same calls in the same order, and get the same
// results. The chief alone reads and writes the directory, which need not be on another worker's
// disk; the others get restored values from it. If a worker fails during a save or a restore, or
// the chief's disk takes longer than the cluster's timeout, the job ends. Start it again from
// the last complete checkpoint.
//
// Workers that read different parts of the data (a policy other than DATA, or
// choir_strategy_distribute_datasets_from_function) each have a position in a checkpoint, and
// worker w continues at worker w's. Restoring with another number of workers or another policy
// is CHOIR_INVALID, names both, and changes nothing. Two kinds of data are exempt and continue
// from where they are: those that read a queue (whose past elements are gone), and those with
// the option .checkpoint = CHOIR_OFF (input.h).

typedef struct choir_checkpoint_options {
	size_t size;
	int keep; // how many of the last saves are kept; 0: 5; CHOIR_NONE: all
	// A key of the metadata with a number as value: the steps with the largest values are kept
	// as well (with less_is_better the smallest). NULL: none.
	const char *best;
	int keep_best; // how many; 0: 1
	bool less_is_better;
	// On: a save takes only as long as the copy to memory; a thread of the lowest priority
	// writes from there. A save during a write waits for it. Memory, also of a manager that is
	// not asynchronous: on the chief the size of the checkpoint, until the manager is freed; on
	// other workers the size of their components of ON_READ variables.
	bool asynchronous;
} choir_checkpoint_options;

// Saves a strategy to, and restores it from, one directory. It is made and used in cross-replica
// context, else CHOIR_STATE; only choir_checkpoint_manager_path may be called elsewhere. Free it
// before its strategy.
typedef struct choir_checkpoint_manager choir_checkpoint_manager;

// Makes the directory if it does not exist (its parent must), and locks it until the manager is
// freed or the process ends. s NULL: the current strategy. Half-written files of a job that died
// are named in the log and removed. CHOIR_STATE: another manager has the directory; the text
// names its process. CHOIR_UNSUPPORTED: a newer Choir has written there. CHOIR_CORRUPT: ".lock"
// or a half-written file is a link, or not what Choir makes; it is left as it is.
choir_checkpoint_manager *choir_checkpoint_manager_new(
		choir_strategy *s, const char *directory, const choir_checkpoint_options *o);

// Waits for writes under way. A failure of the writer that no call has returned is logged as a
// warning. NULL is fine.
void choir_checkpoint_manager_free(choir_checkpoint_manager *m);

// Saves the strategy under the number of its updates so far. Then removes the steps that need
// not be kept; a failure of that is a warning in the log. metadata: lines of "key=value", or
// NULL. Do not save between receiving a batch and running it: that batch would be skipped after
// a restore.
//
// After a failure the earlier steps are unchanged. CHOIR_IO: the system refused; the text has
// the bytes needed and free. CHOIR_INVALID: metadata has no number for .best. CHOIR_STATE also:
// the directory's ".lock" was removed or replaced, so another job may have the directory; the
// manager saves nothing more. Others as choir_strategy_save. Asynchronous: a failure of the
// writer is returned once, by the next call of save, check or wait. That save is done all the
// same.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_save(
		choir_checkpoint_manager *m, const char *metadata);

// Returns a writer's failure that is known by now, without waiting; call it after each step. It
// does not ask other workers: only the chief knows. With an asynchronous manager it also
// prepares the memory of the first save, so that this save takes no longer than others.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_check(choir_checkpoint_manager *m);

// Waits until all saves are on the disk.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_wait(choir_checkpoint_manager *m);

// Restores the last complete save. Damaged ones are skipped; the log names each and what is
// wrong. CHOIR_NOT_FOUND: there is none (the text names the damaged ones). CHOIR_INVALID: it is
// another program's; the text lists what is unknown, missing and different, and nothing was
// changed. CHOIR_IO: the system refused to read one; it is not skipped then.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_restore_latest(choir_checkpoint_manager *m);

// Restores one step. CHOIR_CORRUPT: it is damaged; the text names the tensor or the file. Else
// as choir_checkpoint_manager_restore_latest.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_restore(
		choir_checkpoint_manager *m, int64_t step);

// The folder of the step that was last saved (and is written) or restored. Valid until the next
// call with m. NULL: there is none.
const char *choir_checkpoint_manager_path(const choir_checkpoint_manager *m);

// Restores the step in the folder path without a manager, also while a job saves to the same
// directory; it writes nothing there. Fails as choir_checkpoint_manager_restore, with
// CHOIR_NOT_FOUND if there is no manifest, and with CHOIR_INVALID if path does not end in a
// step's name.
CHOIR_MUST_CHECK choir_status choir_strategy_restore_step(choir_strategy *s, const char *path);

// The contents of a checkpoint directory, without a strategy, also while a job saves there.
typedef struct choir_checkpoint_list choir_checkpoint_list;

typedef struct {
	const char *name;
	bool state; // false: it is a weight
	choir_dtype dtype;
	choir_shape shape;
} choir_checkpoint_tensor;

choir_checkpoint_list *choir_checkpoint_list_new(const char *directory); // CHOIR_NOT_FOUND: none
void choir_checkpoint_list_free(choir_checkpoint_list *l);

// The number of steps, in the order of their saves, including damaged and half-written ones.
size_t choir_checkpoint_list_steps(const choir_checkpoint_list *l);

// Of the i-th step: its number, its folder, and the number of replicas of its training (0:
// damaged). If i is out of range: CHOIR_NONE, NULL and 0.
int64_t choir_checkpoint_list_step(const choir_checkpoint_list *l, size_t i);
const char *choir_checkpoint_list_path(const choir_checkpoint_list *l, size_t i);
int choir_checkpoint_list_replicas(const choir_checkpoint_list *l, size_t i);

// The value of key in its metadata. NULL: none.
const char *choir_checkpoint_list_metadata(
		const choir_checkpoint_list *l, size_t i, const char *key);

// Reads all of the i-th step. CHOIR_OK: it is complete; its tensors can be listed until the next
// check. CHOIR_CORRUPT, CHOIR_NOT_FOUND: the text says what is damaged or missing.
CHOIR_MUST_CHECK choir_status choir_checkpoint_list_check(choir_checkpoint_list *l, size_t i);

// The number of tensors of the last successful check (0 without one), and the k-th, valid until
// the next call. NULL: k is out of range.
size_t choir_checkpoint_list_tensors(const choir_checkpoint_list *l);
const choir_checkpoint_tensor *choir_checkpoint_list_tensor(choir_checkpoint_list *l, size_t k);

CHOIR_C_END
