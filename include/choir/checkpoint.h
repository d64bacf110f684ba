// What stays when a program ends: the weights of a strategy in one file, or whole checkpoints,
// from which a training goes on as if it had never stopped. All calls that take a strategy are
// made in cross-replica context. Threads: the program's, while no run is under way.
#pragma once

#include "strategy.h"

CHOIR_C_BEGIN

// ---- Weights in one safetensors file, which Python's safetensors and numpy can read. Saved are
// the values of all variables of a strategy by name, but not the slots of optimizers and the state
// of metrics; the value of an ON_READ variable is its aggregation over replicas. So a file moves
// freely between strategies, numbers of replicas and devices.

// Writes a file beside path and renames it when it is on the disk: whatever happens, path holds
// the old file or the new one, whole. metadata: "key=value" lines, for what else a reader must
// know; or NULL. CHOIR_IO: the system refused, and why; CHOIR_INVALID: a line without "=", a key
// that stands twice, text that is no UTF-8, an ON_READ variable without aggregation; CHOIR_STATE:
// a variable is undefined. Over several workers all of them call it, and the chief alone writes.
CHOIR_MUST_CHECK choir_status choir_strategy_save(
		choir_strategy *s, const char *path, const char *metadata);
// Gives every variable the value that the file has under its name; an ON_READ variable with SUM
// gets equal shares. All or nothing: if the file lacks a variable, has one too many, or one of
// another dtype or shape, CHOIR_INVALID names them and nothing changes; if the file is damaged,
// CHOIR_CORRUPT says where. Only a device, or memory for an ON_READ variable, that fails while
// values are being copied leaves variables undefined, until they are restored again. Over several
// workers all of them call it, the chief alone reads, and what came of it is the same for all; so
// it is with restore_part, to which all give the same map.
CHOIR_MUST_CHECK choir_status choir_strategy_restore(choir_strategy *s, const char *path);
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
	// out. "axes AXES" after them, or only the axes, changes the order of axes as choir_transpose
	// does: "1,0" for PyTorch's dense kernels, "2,3,1,0" for its convolutions. "reshape SHAPE"
	// before it gives the tensor another shape of the same elements first; what comes of both then
	// takes the variable's shape. The dense layer that follows a flattened image needs it: PyTorch
	// flattens c,h,w, Choir h,w,c, so for 64 channels of 7 by 7 and 10 scores the line is
	//     fc.weight fc/kernel reshape 10,64,7,7 axes 2,3,1,0
	// With "1,0" alone the shapes fit as well, and the scores are wrong: a file does not say what
	// was flattened. At most 1000 lines may have a star. "#" begins a comment. NULL: no line.
	const char *map;
	choir_restored_fn *tell; // called with all names when all is done; or NULL
	void *user;
} choir_restore_options;
// Gives the variables of which the file has a tensor its value, cast between floating dtypes; for
// fine-tuning, also weights of other libraries. All or nothing, with the errors of
// choir_strategy_restore, but that what is missing or unexpected is told and no error;
// CHOIR_INVALID also for a shape that does not fit, with both, for two tensors of one variable, a
// line of the map that is none, and a file that has no value for any variable. o may be NULL.
CHOIR_MUST_CHECK choir_status choir_strategy_restore_part(
		choir_strategy *s, const char *path, const choir_restore_options *o);
// A 64-bit hash of what would be saved: names, dtypes, shapes and bytes. Equal for equal weights,
// however many devices hold them and in whatever order variables were made. 0 after a failure.
uint64_t choir_strategy_hash(choir_strategy *s);
// The value that a file's metadata has for key, as text with a zero byte at the end.
// CHOIR_NOT_FOUND: no such file or key (the text lists the keys); CHOIR_INVALID: size is too
// small, and what is needed; CHOIR_CORRUPT: no safetensors file. Needs no strategy. Threads: any.
CHOIR_MUST_CHECK choir_status choir_checkpoint_metadata(
		const char *path, const char *key, char *value, size_t size);

// What is in such a file, Choir's or another program's: to look at, without a strategy. Only its
// header is read, strictly: CHOIR_CORRUPT says what is wrong in it and at which byte of the file.
// CHOIR_UNSUPPORTED: a dtype that is not known, or more than CHOIR_MAX_RANK dimensions. Threads:
// any, one at a time for a list.
typedef struct choir_weights_list choir_weights_list;
typedef struct {
	const char *name;
	const char *dtype; // as the file calls it: "F32"
	int known; // the choir_dtype that it is; CHOIR_NONE: none of Choir's
	choir_shape shape;
	uint64_t first, bytes; // where its data begins in the file, and how many they are
} choir_weights_entry;
choir_weights_list *choir_weights_list_new(const char *path);
void choir_weights_list_free(choir_weights_list *l);
// In the order of names; an entry belongs to the list. NULL: there is no i-th.
size_t choir_weights_list_entries(const choir_weights_list *l);
const choir_weights_entry *choir_weights_list_entry(const choir_weights_list *l, size_t i);
// The i-th key of its metadata, in order, and the value; NULL: there is no i-th.
const char *choir_weights_list_key(const choir_weights_list *l, size_t i);
const char *choir_weights_list_value(const choir_weights_list *l, size_t i);

// ---- Checkpoints: a directory of steps. A step is a folder "step-1500" of three files:
// weights.safetensors as above; state.safetensors with all else that the next step depends on
// (slots, counters and loss scales of optimizers, metrics, positions of distributed datasets, the
// strategy's step and seed, each replica's part of ON_READ variables), as named tensors;
// manifest.json with a CRC-32C of every tensor, the number of the save, and metadata. It appears
// under its name when all of it is on the disk, so a job or a machine that dies leaves whole ones.
//
// A directory may come from a stranger: Choir follows no link in it. A step that is a link, or has
// one in the place of a file, counts as damaged, and nothing is removed through a link. The
// directory's own path may be a link.
//
// A training that is restored gets the same bits as one that never stopped, if it has the same
// program, data and number of replicas; devices, workers and strategy may be others. With another
// number of replicas ON_READ variables get shares of their aggregate, as from a file of weights.
//
// Over several workers (cluster.h) all of them make the same calls in the same order, and what
// came of one is the same for all. The chief alone reads and writes the directory, so it need be
// on no other's disk; the others get what is restored from it. A worker that fails in the middle
// of a save or a restore ends the job, which then begins at the last checkpoint that is whole; so
// does a disk of the chief's that takes longer than the time-out of the cluster.
// Where each worker reads a part of the data of its own (a policy other than DATA, or
// choir_strategy_distribute_datasets_from_function), a checkpoint has the place of each, and
// worker w goes on from worker w's: with as many workers and under the same policy; else restoring
// is CHOIR_INVALID, naming both, and nothing has changed. Two kinds of data go on all the same,
// from where they are: what reads a queue (of which nothing that was read is there any more), and
// what has the option .checkpoint = CHOIR_OFF (input.h).

typedef struct choir_checkpoint_options {
	size_t size;
	int keep; // so many of the last saves; 0: 5; CHOIR_NONE: all
	// A key of the metadata whose value is a number: the steps with the largest (or, if less is
	// better, the least) ones are kept as well. NULL: none.
	const char *best;
	int keep_best; // so many; 0: 1
	bool less_is_better;
	// Saving takes no longer than copying to memory, and a thread of Choir's, of the lowest
	// priority, writes from there. A save that comes while it writes waits for it. Memory, also of
	// saves that are not asynchronous: on the chief as much as the checkpoint has bytes, which is
	// kept until the manager is freed; on other workers only that of parts.
	bool asynchronous;
} choir_checkpoint_options;

// Saves to and restores from one directory. It is made, and but for its path used, in
// cross-replica context: else CHOIR_STATE. It is freed before its strategy.
typedef struct choir_checkpoint_manager choir_checkpoint_manager;
// Makes the directory if it is not there (its parent must be), and takes it: CHOIR_STATE, naming
// the process, while another manager has it. The hold ends with the process, however that ends.
// What a job that died had half written is named in the log and removed. NULL strategy: the
// current one. CHOIR_UNSUPPORTED: a newer Choir has written here. CHOIR_CORRUPT: ".lock", or what
// a job has left half written, is a link, or is not what Choir makes there; it stays as it is.
choir_checkpoint_manager *choir_checkpoint_manager_new(
		choir_strategy *s, const char *directory, const choir_checkpoint_options *o);
// Waits for what is being written; a failure of it that nobody has asked for is a warning in the
// log. NULL is fine.
void choir_checkpoint_manager_free(choir_checkpoint_manager *m);

// Saves the strategy as it is now, under the number of steps in which it was updated, and then
// removes the steps that need not be kept; that one of them could not be removed is a warning in
// the log. metadata: "key=value" lines or NULL. Between a batch's being handed out and its run
// nothing may be saved: the batch would be left out. After a failure the steps of before are as
// they were. CHOIR_IO: the system refused; the text has the bytes needed and free. CHOIR_STATE
// also when the directory's file ".lock" was removed or replaced, so that another job may have the
// directory: the manager saves nothing more. Others: see choir_strategy_save; CHOIR_INVALID:
// metadata has no number for the best's key.
// Asynchronous: after a failure of the writer the next call of save, check or wait returns it,
// once; save has saved all the same.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_save(
		choir_checkpoint_manager *m, const char *metadata);
// Whether a writer has failed, as far as it is known now, without waiting; for after each step.
// Without asking the other workers: the chief alone knows. Of an asynchronous manager it also has
// the memory of the first save made, so that this one takes no longer than others.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_check(choir_checkpoint_manager *m);
// Until what was saved is on the disk.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_wait(choir_checkpoint_manager *m);
// Restores the last save that is whole. Those that are damaged are named in the log, each with
// what is wrong, and passed over. CHOIR_NOT_FOUND: there is none (the text names the damaged).
// CHOIR_INVALID: it is of another program: what it has too many, what it lacks, what differs;
// nothing was changed. CHOIR_IO: the system refused to read one; nothing is passed over then.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_restore_latest(choir_checkpoint_manager *m);
// The same of one step. CHOIR_CORRUPT, naming the tensor or the file: it is damaged.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_restore(
		choir_checkpoint_manager *m, int64_t step);
// The folder of the step that was saved or restored last, and is written; NULL: none was. It is
// the manager's until the next call.
const char *choir_checkpoint_manager_path(const choir_checkpoint_manager *m);
// Restores the step whose folder path is, without a manager, so also while a job saves beside it:
// nothing is written there. Fails as choir_checkpoint_manager_restore, with CHOIR_NOT_FOUND where
// there is no manifest, and with CHOIR_INVALID for a path that ends in no step's name.
CHOIR_MUST_CHECK choir_status choir_strategy_restore_step(choir_strategy *s, const char *path);

// What is in a directory: to look at, without a strategy, also while a job saves there.
typedef struct choir_checkpoint_list choir_checkpoint_list;
typedef struct {
	const char *name;
	bool state; // false: it is a weight
	choir_dtype dtype;
	choir_shape shape;
} choir_checkpoint_tensor;
choir_checkpoint_list *choir_checkpoint_list_new(const char *directory); // CHOIR_NOT_FOUND: none
void choir_checkpoint_list_free(choir_checkpoint_list *l);
// Steps in the order in which they were saved, with those that are damaged or half written.
size_t choir_checkpoint_list_steps(const choir_checkpoint_list *l);
// Of the i-th: its number, its folder, and how many replicas it was trained with (0: damaged).
// Where there is none: CHOIR_NONE, NULL and 0.
int64_t choir_checkpoint_list_step(const choir_checkpoint_list *l, size_t i);
const char *choir_checkpoint_list_path(const choir_checkpoint_list *l, size_t i);
int choir_checkpoint_list_replicas(const choir_checkpoint_list *l, size_t i);
// The value that its metadata have for key; NULL: none.
const char *choir_checkpoint_list_metadata(
		const choir_checkpoint_list *l, size_t i, const char *key);
// Reads all of it. CHOIR_OK: it is whole, and its tensors can be asked for until the next check;
// CHOIR_CORRUPT, CHOIR_NOT_FOUND: what is damaged or missing.
CHOIR_MUST_CHECK choir_status choir_checkpoint_list_check(choir_checkpoint_list *l, size_t i);
size_t choir_checkpoint_list_tensors(const choir_checkpoint_list *l); // of the last check; 0
const choir_checkpoint_tensor *choir_checkpoint_list_tensor(
		choir_checkpoint_list *l, size_t k); // NULL: there is no k-th

CHOIR_C_END
