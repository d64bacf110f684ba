// A directory of checkpoints. Each step is a folder, "step-1500" (if there was one of this name
// already, "step-1500.2"), of weights.safetensors, state.safetensors and manifest.json. It is
// written as ".step-1500.tmp" and renamed when all of it is on the disk, and one that is to go is
// renamed to ".step-1500.old" before its files are removed: what is called "step-..." is whole,
// but for damage that came later.
#pragma once

#include "train/steps/manifest.h"
#include "train/steps/snapshot.h"

typedef struct {
	char *name; // "step-1500"
	char *path;
	bool half; // ".step-1500.tmp", ".step-1500.old": left by a job that died
	bool readable; // its manifest is
	uint64_t step; // by its name
	chi_manifest manifest;
} chi_step;

typedef struct {
	size_t n, room;
	chi_step *step; // in the order in which they were saved; those without a manifest first
} chi_steps;

// What there is; a manifest that cannot be read is no failure, unless memory or the system is it.
choir_status chi_steps_find(const char *directory, chi_steps *steps);
void chi_steps_free(chi_steps *steps);
// The step whose folder path is. CHOIR_INVALID: no step's folder is called so; else what its
// manifest fails with. It is to be freed whatever happens.
choir_status chi_step_open(const char *path, chi_step *step);
void chi_step_free(chi_step *step);

// A step's two files in memory, every tensor compared with its checksum.
typedef struct {
	unsigned char *data[CHI_STEP_FILES]; // whole files
	size_t bytes[CHI_STEP_FILES]; // of them
	chi_safetensors header[CHI_STEP_FILES];
	char *path; // of the step
} chi_step_content;
// CHOIR_CORRUPT: something is damaged: the tensor, or else the file; CHOIR_NOT_FOUND: a file is
// missing. *c is to be freed whatever happens.
choir_status chi_step_read(const chi_step *step, chi_step_content *c);
void chi_step_content_free(chi_step_content *c);
// Brings a strategy to what was read, which had status: of its workers the chief reads, and the
// others get what it has; the errors of reading, or of chi_snapshot_apply, everywhere.
choir_status chi_step_apply(choir_strategy *s, choir_status status, chi_step_content *c);

// Whether a failure to read is of what the files hold, and not of the system.
bool chi_step_is_damage(choir_status status);

// Writes a step and makes it appear; *path is its folder, to be freed. After a failure nothing of
// it is there, as far as the system lets it be removed, and *path is NULL. But where only the last
// sync of the directory fails, the whole step is there under its name, and may outlast a crash or
// not.
typedef struct {
	const char *directory;
	const chi_folder_lock *lock; // on it
	const chi_snapshot *snapshot;
	uint64_t save;
	size_t pairs;
	const chi_st_pair *pair;
} chi_step_plan;
choir_status chi_step_write(const chi_step_plan *plan, char **path);
// Takes steps away: all renamed, one sync, then removed.
choir_status chi_steps_remove(const char *directory, size_t n, chi_step *const steps[]);
