// A directory of checkpoints. Each step is a folder, "step-1500" (if there was one of this name
// already, "step-1500.2"), of weights.safetensors, state.safetensors and manifest.json. It is
// written as ".step-1500.tmp" and renamed when all of it is on the disk, and one that is to go is
// renamed to ".step-1500.old" before its files are removed: what is called "step-..." is whole,
// but for damage that came later.
#pragma once

#include "train/checkpoint/manifest.h"
#include "train/checkpoint/snapshot.h"

typedef struct {
	char *name; // "step-1500"
	char *path;
	bool half; // ".step-1500.tmp", ".step-1500.old": left by a job that died
	bool readable; // its manifest is
	uint64_t step; // by its name
	chi_manifest manifest;
} chi_checkpoint;

typedef struct {
	size_t n, capacity;
	chi_checkpoint *step; // in the order in which they were saved; those without a manifest first
} chi_checkpoints;

// What there is; a manifest that cannot be read is no failure, unless memory or the system is it.
choir_status chi_checkpoints_find(const char *directory, chi_checkpoints *steps);
void chi_checkpoints_free(chi_checkpoints *steps);
// The step whose folder path is. CHOIR_INVALID: no step's folder is called so; else what its
// manifest fails with. It is to be freed whatever happens.
choir_status chi_checkpoint_open(const char *path, chi_checkpoint *step);
void chi_checkpoint_free(chi_checkpoint *step);

// A step's two files in memory, every tensor compared with its checksum.
typedef struct {
	unsigned char *data[CHI_CHECKPOINT_FILES]; // whole files
	size_t bytes[CHI_CHECKPOINT_FILES]; // of them
	chi_safetensors header[CHI_CHECKPOINT_FILES];
	char *path; // of the step
} chi_checkpoint_content;
// CHOIR_CORRUPT: something is damaged: the tensor, or else the file; CHOIR_NOT_FOUND: a file is
// missing. *c is to be freed whatever happens.
choir_status chi_checkpoint_content_read(const chi_checkpoint *step, chi_checkpoint_content *c);
void chi_checkpoint_content_free(chi_checkpoint_content *c);
// Brings a strategy to what was read, which had status: of its workers the chief reads, and the
// others get what it has; the errors of reading, or of chi_snapshot_apply, everywhere.
choir_status chi_checkpoint_content_apply(
		choir_strategy *s, choir_status status, chi_checkpoint_content *c);

// Whether a failure to read is of what the files hold, and not of the system.
bool chi_checkpoint_is_damage(choir_status status);

// Writes a step and makes it appear; *path is its folder, to be freed. After a failure nothing of
// it is there, as far as the system lets it be removed, and *path is NULL. But where only the last
// sync of the directory fails, the whole step is there under its name, and may outlast a crash or
// not.
typedef struct {
	const char *directory;
	const chi_directory_lock *lock; // on it
	const chi_snapshot *snapshot;
	uint64_t save;
	size_t pairs;
	const chi_st_pair *pair;
} chi_checkpoint_plan;
choir_status chi_checkpoint_write(const chi_checkpoint_plan *plan, char **path);
// Takes steps away: all renamed, one sync, then removed.
choir_status chi_checkpoints_remove(
		const char *directory, size_t n, chi_checkpoint *const steps[]);
