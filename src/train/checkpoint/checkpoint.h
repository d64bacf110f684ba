// A checkpoint is a directory "step-1500" ("step-1500.2" if that exists), renamed from
// ".step-1500.tmp" when it is on the disk, and to ".step-1500.old" before deletion. So "step-..."
// is complete, unless damaged later.
#pragma once

#include "train/checkpoint/manifest.h"
#include "train/checkpoint/snapshot.h"

typedef struct {
	char *name;
	char *path;
	bool half; // ".tmp" or ".old" of a killed process
	bool readable;
	uint64_t step;
	chi_manifest manifest;
} chi_checkpoint;

typedef struct {
	size_t n, capacity;
	chi_checkpoint *step;
} chi_checkpoints;

// Also those with an unreadable manifest.
choir_status chi_checkpoints_find(const char *directory, chi_checkpoints *steps);
void chi_checkpoints_free(chi_checkpoints *steps);
// CHOIR_INVALID: not a checkpoint's name. Else as chi_manifest_read. Always free *step.
choir_status chi_checkpoint_open(const char *path, chi_checkpoint *step);
void chi_checkpoint_free(chi_checkpoint *step);

typedef struct {
	unsigned char *data[CHI_CHECKPOINT_FILES];
	size_t bytes[CHI_CHECKPOINT_FILES];
	chi_safetensors header[CHI_CHECKPOINT_FILES];
	char *path;
} chi_checkpoint_content;
// CHOIR_CORRUPT names the tensor or file; CHOIR_NOT_FOUND: a file is missing. Always free *c.
choir_status chi_checkpoint_content_read(const chi_checkpoint *step, chi_checkpoint_content *c);
void chi_checkpoint_content_free(chi_checkpoint_content *c);
// Sends the chief's status and content to the others. All have the same failure.
choir_status chi_checkpoint_content_apply(
		choir_strategy *s, choir_status status, chi_checkpoint_content *c);

bool chi_checkpoint_is_damage(choir_status status);

// The caller frees *path. After a failure it is NULL, and files are removed if possible. If only
// the directory's sync fails, the checkpoint stays, but a crash may lose it.
typedef struct {
	const char *directory;
	const chi_directory_lock *lock;
	const chi_snapshot *snapshot;
	uint64_t save;
	size_t pairs;
	const chi_st_pair *pair;
} chi_checkpoint_plan;
choir_status chi_checkpoint_write(const chi_checkpoint_plan *plan, char **path);
choir_status chi_checkpoints_remove(
		const char *directory, size_t n, chi_checkpoint *const steps[]);
