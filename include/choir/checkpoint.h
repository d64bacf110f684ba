// Checkpoints: a strategy's whole state in a directory. If program, data and number of replicas
// are the same, a restored training gives the same bits as a training that never stopped.
// Devices, workers and strategy may differ. With another number of replicas, the components of
// ON_READ variables get shares of the aggregate, as from a weights file (weights.h). Calls that
// take a strategy are made in cross-replica context.
//
// A checkpoint directory holds steps. A step is a folder ("step-1500") with three files.
// weights.safetensors has the weights. state.safetensors has, as named tensors, everything else
// that the next step depends on: slots, counters and loss scales of optimizers, metrics,
// positions of distributed datasets, the strategy's step and seed, and each replica's components
// of ON_READ variables. manifest.json has a CRC-32C of every tensor, the number of the save, and
// metadata. The folder gets its name after all its files are on the disk.
//
// Security: if a step's folder or one of its files is a link, the step counts as damaged. Nothing
// is removed through a link. The directory itself may be a link.
//
// Several workers (cluster.h): all make the same calls in the same order, and get the same
// results. Only the chief uses the directory. If a worker fails during a save or a restore, or
// the chief's disk takes longer than the cluster's timeout, the job ends.
//
// If workers read different parts of the data (docs/rules.md, section 9), restoring with another
// number of workers or another policy is CHOIR_INVALID and changes nothing. Datasets that read a
// queue, or have .checkpoint = CHOIR_OFF (input.h), continue where they are instead.
// Threads: the program's, while no run is under way.
#pragma once

#include "weights.h"

CHOIR_C_BEGIN

// Options of choir_checkpoint_manager_new.
typedef struct choir_checkpoint_options {
	size_t size;
	int max_to_keep; // number of last saves that are kept; 0: 5; CHOIR_ALL: all
	// A key of the metadata whose value is a number. The steps with the largest values are kept,
	// too; with best_is_lowest, the steps with the smallest. NULL: no such steps.
	const char *best_metric;
	int max_best_to_keep; // default: 1
	bool best_is_lowest;
	// A save only copies to memory; a thread of the lowest priority then writes the copy. The
	// next save waits until the copy is written. Until the manager is freed, the copy needs
	// memory: on the chief the size of the checkpoint, on other workers the size of their ON_READ
	// components.
	bool asynchronous;
} choir_checkpoint_options;

// Saves and restores a strategy in one directory. Free the manager before its strategy.
typedef struct choir_checkpoint_manager choir_checkpoint_manager;

// Locks the directory until the manager is freed or the process ends. Makes the directory if only
// its parent exists. NULL s: the current strategy. Removes half-written files of a job that died.
// CHOIR_STATE: another manager has locked the directory. CHOIR_UNSUPPORTED: a newer version of
// Choir has written there. CHOIR_CORRUPT: ".lock" or a half-written file is a link, or was not
// made by Choir. The file stays as it is.
choir_checkpoint_manager *choir_checkpoint_manager_new(
		choir_strategy *s, const char *directory, const choir_checkpoint_options *o);

// Waits for writes under way. A failure that no call has returned is logged.
void choir_checkpoint_manager_free(choir_checkpoint_manager *m);

// Saves the strategy, with the number of its updates so far in the step's name. Then removes the
// steps that need not be kept. metadata is NULL or lines of "key=value". Do not save between
// receiving a batch and running it: that batch would be skipped after a restore.
//
// After a failure the earlier steps are unchanged. CHOIR_INVALID: metadata has no number for
// .best_metric. CHOIR_STATE also: the directory's ".lock" was removed or replaced, so another job
// may use the directory. The manager then saves nothing more. Other failures are those of
// choir_strategy_save. If an asynchronous write fails, the next call of save, check or wait
// returns the failure, once. A save that returns such a failure still saves.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_save(
		choir_checkpoint_manager *m, const char *metadata);

// Returns, on the chief, a known failure of an asynchronous write. Does not wait. Call this after
// each step. The call also prepares the memory of the first asynchronous save, so that this save
// takes no longer than others.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_check(choir_checkpoint_manager *m);

// Waits until all saves are on the disk.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_wait(choir_checkpoint_manager *m);

// Restores the last complete save. Damaged saves are skipped; the log says what is wrong with
// each. CHOIR_NOT_FOUND: no save is complete. CHOIR_INVALID: another program made the save;
// nothing was changed. CHOIR_IO: the system refused to read a save. That save is not skipped.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_restore_latest(choir_checkpoint_manager *m);

// Restores the step of this number. CHOIR_CORRUPT: the step is damaged. Other failures are those
// of choir_checkpoint_manager_restore_latest.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_restore(
		choir_checkpoint_manager *m, int64_t step);

// The folder of the step that was last written or restored, or NULL. Valid until the next call
// with m. Call it in any context.
const char *choir_checkpoint_manager_latest(const choir_checkpoint_manager *m);

// Restores the step in the folder path without a manager, also while a job saves to the same
// directory. The call writes nothing there. Failures are those of
// choir_checkpoint_manager_restore. CHOIR_NOT_FOUND: the folder has no manifest. CHOIR_INVALID:
// path does not end in a step's name.
CHOIR_MUST_CHECK choir_status choir_strategy_restore_checkpoint(
		choir_strategy *s, const char *path);

// The contents of a checkpoint directory. A job may save there at the same time. CHOIR_NOT_FOUND:
// no such directory.
typedef struct choir_checkpoint_list choir_checkpoint_list;

// A tensor of a step.
typedef struct {
	const char *name;
	bool state; // false: the tensor is a weight
	choir_dtype dtype;
	choir_shape shape;
} choir_checkpoint_tensor;

// Make and free a list of the steps that directory has at the time of the call.
choir_checkpoint_list *choir_checkpoint_list_new(const char *directory);
void choir_checkpoint_list_free(choir_checkpoint_list *l);

// Steps are in the order of their saves, and include damaged and half-written steps.
size_t choir_checkpoint_list_steps(const choir_checkpoint_list *l);

// The i-th step's number, its folder, and the number of replicas of its training (0: damaged). If
// i is out of range: CHOIR_NONE, NULL and 0.
int64_t choir_checkpoint_list_step(const choir_checkpoint_list *l, size_t i);
const char *choir_checkpoint_list_path(const choir_checkpoint_list *l, size_t i);
int choir_checkpoint_list_replicas(const choir_checkpoint_list *l, size_t i);

// The value of key in the i-th step's metadata, or NULL.
const char *choir_checkpoint_list_metadata(
		const choir_checkpoint_list *l, size_t i, const char *key);

// Reads and checks the i-th step. CHOIR_OK: the step is complete, and its tensors can be listed
// until the next check. CHOIR_CORRUPT: it is damaged or half-written. CHOIR_NOT_FOUND: a file is
// missing.
CHOIR_MUST_CHECK choir_status choir_checkpoint_list_check(choir_checkpoint_list *l, size_t i);

// The number of tensors of the last successful check (0: none), and the k-th tensor, valid until
// the next call.
size_t choir_checkpoint_list_tensors(const choir_checkpoint_list *l);
const choir_checkpoint_tensor *choir_checkpoint_list_tensor(choir_checkpoint_list *l, size_t k);

CHOIR_C_END
