// A checkpoint is a directory "step-1500" ("step-1500.2" if that exists) with
// weights.safetensors, state.safetensors and manifest.json. It is written as ".step-1500.tmp" and
// renamed when it is on the disk; before its deletion it becomes ".step-1500.old". So "step-..."
// is always complete, unless it is damaged later.
#pragma once

#include "train/checkpoint/manifest.h"
#include "train/checkpoint/snapshot.h"

typedef struct {
	char *name; // "step-1500"
	char *path;
	bool half; // ".tmp" or ".old" of a killed process
	bool readable;
	uint64_t step;
	chi_manifest manifest;
} chi_checkpoint;

typedef struct {
	size_t n, capacity;
	chi_checkpoint *step; // in the order of saving; without a manifest first
} chi_checkpoints;

// Also those with an unreadable manifest.
choir_status chi_checkpoints_find(const char *directory, chi_checkpoints *steps);
void chi_checkpoints_free(chi_checkpoints *steps);
// CHOIR_INVALID: not a checkpoint's name; else fails as chi_manifest_read. Always free *step.
choir_status chi_checkpoint_open(const char *path, chi_checkpoint *step);
void chi_checkpoint_free(chi_checkpoint *step);

// Two files, verified by their checksums.
typedef struct {
	unsigned char *data[CHI_CHECKPOINT_FILES];
	size_t bytes[CHI_CHECKPOINT_FILES];
	chi_safetensors header[CHI_CHECKPOINT_FILES];
	char *path;
} chi_checkpoint_content;
// CHOIR_CORRUPT names the tensor or file; CHOIR_NOT_FOUND: a file is missing. Always free *c.
choir_status chi_checkpoint_content_read(const chi_checkpoint *step, chi_checkpoint_content *c);
void chi_checkpoint_content_free(chi_checkpoint_content *c);
// Restores what the chief has read with status, after sending it to the others. Failures are the
// same on all.
choir_status chi_checkpoint_content_apply(
		choir_strategy *s, choir_status status, chi_checkpoint_content *c);

// Damaged files, and not a failing system.
bool chi_checkpoint_is_damage(choir_status status);

// The caller frees *path. After a failure it is NULL and the files are removed if possible. If
// only the directory's last sync fails, the checkpoint stays, but may not survive a crash.
typedef struct {
	const char *directory;
	const chi_directory_lock *lock;
	const chi_snapshot *snapshot;
	uint64_t save;
	size_t pairs;
	const chi_st_pair *pair;
} chi_checkpoint_plan;
choir_status chi_checkpoint_write(const chi_checkpoint_plan *plan, char **path);
// Renames all, syncs once, deletes.
choir_status chi_checkpoints_remove(
		const char *directory, size_t n, chi_checkpoint *const steps[]);
