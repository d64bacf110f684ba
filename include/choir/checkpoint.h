// Checkpoints: a strategy's whole state in a directory. A training continues from it with the
// bits of one that never stopped, if program, data and number of replicas are the same; devices,
// workers and strategy may differ. With another number of replicas ON_READ variables get shares
// of their aggregate, as from a weights file. Calls that take a strategy are made in
// cross-replica context.
//
// A checkpoint directory holds steps. A step is a folder "step-1500" of three files.
// weights.safetensors has the weights. state.safetensors has, as named tensors, all else that
// the next step depends on: slots, counters and loss scales of optimizers, metrics, positions of
// distributed datasets, the strategy's step and seed, and each replica's components of ON_READ
// variables. manifest.json has a CRC-32C of every tensor, the number of the save, and metadata.
// A step gets its name when all of it is on the disk.
//
// Security: a step that is a link, or has a link in place of a file, counts as damaged, and
// nothing is removed through a link. The path of the directory itself may be a link.
//
// Several workers (cluster.h): all make the same calls in the same order, and get the same
// results. The chief alone uses the directory. If a worker fails during a save or a restore, or
// the chief's disk takes longer than the cluster's timeout, the job ends.
//
// If workers read different parts of the data (docs/rules.md, section 9), restoring with another
// number of workers or another policy is CHOIR_INVALID and changes nothing. Data that read a
// queue, or have .checkpoint = CHOIR_OFF (input.h), are exempt and continue where they are.
// Threads: the program's, while no run is under way.
#pragma once

#include "weights.h"

CHOIR_C_BEGIN

typedef struct choir_checkpoint_options {
	size_t size;
	int max_to_keep; // of the last saves; 0: 5; CHOIR_ALL: all
	// A key of the metadata with a number as value: the steps with the largest values are kept
	// as well (with best_is_lowest the smallest). NULL: none.
	const char *best_metric;
	int max_best_to_keep; // 0: 1
	bool best_is_lowest;
	// A save takes only as long as the copy to memory; a thread of the lowest priority writes
	// from there. A save during a write waits for it. Memory of every manager: on the chief the
	// size of the checkpoint, until the manager is freed; on other workers that of their
	// components of ON_READ variables.
	bool asynchronous;
} choir_checkpoint_options;

// Saves a strategy to, and restores it from, one directory. Free it before its strategy.
typedef struct choir_checkpoint_manager choir_checkpoint_manager;

// Makes the directory if it does not exist (its parent must), and locks it until the manager is
// freed or the process ends. s NULL: the current strategy. Half-written files of a job that died
// are removed. CHOIR_STATE: another manager has the directory. CHOIR_UNSUPPORTED: a newer Choir
// has written there. CHOIR_CORRUPT: ".lock" or a half-written file is a link, or not what Choir
// makes; it is left as it is.
choir_checkpoint_manager *choir_checkpoint_manager_new(
		choir_strategy *s, const char *directory, const choir_checkpoint_options *o);

// Waits for writes under way. A failure that no call has returned is logged.
void choir_checkpoint_manager_free(choir_checkpoint_manager *m);

// Saves the strategy under the number of its updates so far, then removes the steps that need
// not be kept. metadata: lines of "key=value", or NULL. Do not save between receiving a batch
// and running it: that batch would be skipped after a restore.
//
// After a failure the earlier steps are unchanged. CHOIR_INVALID: metadata has no number for
// .best_metric. CHOIR_STATE also: the directory's ".lock" was removed or replaced, so another
// job may have the directory; the manager saves nothing more. Else as choir_strategy_save.
// Asynchronous: a failure of the writer is returned once, by the next call of save, check or
// wait. That save is done all the same.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_save(
		choir_checkpoint_manager *m, const char *metadata);

// Returns a writer's failure that is known by now, on the chief, without waiting; call it after
// each step. With an asynchronous manager it also prepares the memory of the first save, so that
// this save takes no longer than others.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_check(choir_checkpoint_manager *m);

// Waits until all saves are on the disk.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_wait(choir_checkpoint_manager *m);

// Restores the last complete save. Damaged ones are skipped; the log names each and what is
// wrong. CHOIR_NOT_FOUND: there is none. CHOIR_INVALID: it is another program's, and nothing was
// changed. CHOIR_IO: the system refused to read one; that is not skipped.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_restore_latest(choir_checkpoint_manager *m);

// Restores one step. CHOIR_CORRUPT: it is damaged. Else as
// choir_checkpoint_manager_restore_latest.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_restore(
		choir_checkpoint_manager *m, int64_t step);

// The folder of the step that was last saved (and is written) or restored, or NULL. In any
// context. Valid until the next call with m.
const char *choir_checkpoint_manager_latest(const choir_checkpoint_manager *m);

// Restores the step in the folder path without a manager, also while a job saves to the same
// directory; it writes nothing there. Fails as choir_checkpoint_manager_restore, with
// CHOIR_NOT_FOUND if there is no manifest, and with CHOIR_INVALID if path does not end in a
// step's name.
CHOIR_MUST_CHECK choir_status choir_strategy_restore_checkpoint(
		choir_strategy *s, const char *path);

// The contents of a checkpoint directory, also while a job saves there.
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
// damaged). Out of range: CHOIR_NONE, NULL and 0.
int64_t choir_checkpoint_list_step(const choir_checkpoint_list *l, size_t i);
const char *choir_checkpoint_list_path(const choir_checkpoint_list *l, size_t i);
int choir_checkpoint_list_replicas(const choir_checkpoint_list *l, size_t i);

// The value of key in its metadata, or NULL.
const char *choir_checkpoint_list_metadata(
		const choir_checkpoint_list *l, size_t i, const char *key);

// Reads all of the i-th step. CHOIR_OK: it is complete; its tensors can be listed until the next
// check. CHOIR_CORRUPT, CHOIR_NOT_FOUND: something is damaged or missing.
CHOIR_MUST_CHECK choir_status choir_checkpoint_list_check(choir_checkpoint_list *l, size_t i);

// The number of tensors of the last successful check (0 without one), and the k-th, valid until
// the next call.
size_t choir_checkpoint_list_tensors(const choir_checkpoint_list *l);
const choir_checkpoint_tensor *choir_checkpoint_list_tensor(choir_checkpoint_list *l, size_t k);

CHOIR_C_END
