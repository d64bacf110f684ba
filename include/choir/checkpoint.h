// Checkpoints: a strategy's whole state in a directory. With the same program, data and number of
// replicas, a restored training gives the bits of an uninterrupted training, even on other
// devices, workers and strategies. With another number of replicas, ON_READ components get shares
// of the aggregate. The rules of weights.h hold.
//
// The directory has steps: folders ("step-1500") with three files. weights.safetensors has the
// weights. state.safetensors has all else on which training depends: optimizers' slots, counters
// and loss scales, metrics, positions of distributed datasets, the strategy's step and seed, and
// each replica's ON_READ components. manifest.json has a CRC-32C of every tensor, the number of
// the save, and metadata.
//
// Security: a step whose folder or file is a link counts as damaged. The directory itself may be a
// link.
//
// Several workers (cluster.h) make the same calls in one order. If a worker fails in a save or
// restore, or the chief's disk takes longer than the cluster's .timeout, the job ends.
//
// If workers read different parts of the data (docs/rules.md, section 9), a restore with another
// number of workers or another .auto_shard (input.h) fails with CHOIR_INVALID. A restore does not
// move datasets that read a queue or have .checkpoint = CHOIR_OFF.
// Threads: one at a time, outside of runs.
#pragma once

#include "weights.h"

CHOIR_C_BEGIN

// What a manager keeps.
typedef struct choir_checkpoint_options {
	size_t size;
	int max_to_keep; // the number of newest saves to keep; 0: 5; CHOIR_ALL: all
	// A key of the metadata, whose value is a number. The steps with the largest values
	// (best_is_lowest: the smallest; never NAN) are also kept. NULL: none.
	const char *best_metric;
	int max_best_to_keep; // default: 1
	bool best_is_lowest;
	// True: a save copies the state to memory, which the manager keeps, and a thread of the lowest
	// priority writes it. The next save waits for it.
	bool asynchronous;
} choir_checkpoint_options;

// Saves and restores a strategy in one directory. Free it before the strategy.
typedef struct choir_checkpoint_manager choir_checkpoint_manager;

// Makes a manager of s (NULL: the current strategy), and locks the directory until the manager is
// freed or the process ends. Makes the directory if its parent exists. Removes half-written files.
// CHOIR_STATE: another manager has locked the directory. CHOIR_UNSUPPORTED: a newer version of
// Choir has written there. CHOIR_CORRUPT: ".lock" or a half-written file is a link, or not
// Choir's.
choir_checkpoint_manager *choir_checkpoint_manager_new(
		choir_strategy *s, const char *directory, const choir_checkpoint_options *o);

// Waits for writes, and frees m. Logs a failure that no call has returned.
void choir_checkpoint_manager_free(choir_checkpoint_manager *m);

// Saves the strategy in a new step, named by the number of updates. Then removes steps not to be
// kept. metadata: as in choir_strategy_save. If the program got a batch before the save and did
// not run it, a restore skips it.
//
// After a failure the earlier steps are unchanged. Fails as choir_strategy_save. CHOIR_INVALID:
// metadata has no number for .best_metric. CHOIR_STATE: the directory's ".lock" was removed or
// replaced; the manager saves no more. The next save, check or wait returns an asynchronous
// write's failure, once; such a save has saved the new state.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_save(
		choir_checkpoint_manager *m, const char *metadata);

// On the chief, returns a known failure of an asynchronous write, without waiting. Call it after
// each step: it prepares memory for the first save.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_check(choir_checkpoint_manager *m);

// Waits until all saves are on the disk.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_wait(choir_checkpoint_manager *m);

// Restores the last complete save, and logs damaged ones. CHOIR_NOT_FOUND: no save is complete.
// CHOIR_INVALID, and nothing changes: another program made the save. CHOIR_IO: a save cannot be
// read.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_restore_latest(choir_checkpoint_manager *m);

// Restores the step of this number. CHOIR_CORRUPT: it is damaged. Otherwise fails as
// choir_checkpoint_manager_restore_latest.
CHOIR_MUST_CHECK choir_status choir_checkpoint_manager_restore(
		choir_checkpoint_manager *m, int64_t step);

// The last folder written or restored, or NULL. Valid until the next call with m. Any context.
const char *choir_checkpoint_manager_latest(const choir_checkpoint_manager *m);

// Restores the step in the folder path without a manager, also while a job saves there. Fails as
// choir_checkpoint_manager_restore. CHOIR_NOT_FOUND: the folder has no manifest.
CHOIR_MUST_CHECK choir_status choir_strategy_restore_checkpoint(
		choir_strategy *s, const char *path);

// The steps in a checkpoint directory at the time of the call.
typedef struct choir_checkpoint_list choir_checkpoint_list;
// A tensor of a step.
typedef struct {
	const char *name;
	bool state; // false: the tensor is a weight
	choir_dtype dtype;
	choir_shape shape;
} choir_checkpoint_tensor;

// CHOIR_NOT_FOUND: no such directory.
choir_checkpoint_list *choir_checkpoint_list_new(const char *directory);
void choir_checkpoint_list_free(choir_checkpoint_list *l);

// The number of steps, also damaged and half-written ones, in the order of saves.
size_t choir_checkpoint_list_steps(const choir_checkpoint_list *l);

// The i-th step's number (or CHOIR_NONE), its folder, and its number of replicas (0: damaged).
int64_t choir_checkpoint_list_step(const choir_checkpoint_list *l, size_t i);
const char *choir_checkpoint_list_path(const choir_checkpoint_list *l, size_t i);
int choir_checkpoint_list_replicas(const choir_checkpoint_list *l, size_t i);

// The value of key in the i-th step's metadata, or NULL.
const char *choir_checkpoint_list_metadata(
		const choir_checkpoint_list *l, size_t i, const char *key);

// Reads and checks the i-th step. CHOIR_OK: complete; the calls below list its tensors until the
// next check. CHOIR_CORRUPT: damaged or half-written. CHOIR_NOT_FOUND: a file is missing.
CHOIR_MUST_CHECK choir_status choir_checkpoint_list_check(choir_checkpoint_list *l, size_t i);

// The tensors of the last successful check's step. The k-th is valid until the next call.
size_t choir_checkpoint_list_tensors(const choir_checkpoint_list *l);
const choir_checkpoint_tensor *choir_checkpoint_list_tensor(choir_checkpoint_list *l, size_t k);

CHOIR_C_END
