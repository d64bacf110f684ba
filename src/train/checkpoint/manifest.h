// A checkpoint's step and all checksums, as one line of JSON, which ends in its own checksum.
#pragma once

#include "base/directory.h"
#include "base/text.h"
#include "train/weights/safetensors.h"

enum { CHI_MANIFEST_FORMAT = 1 };

typedef enum {
	CHI_CHECKPOINT_WEIGHTS,
	CHI_CHECKPOINT_STATE,
	CHI_CHECKPOINT_FILES
} chi_checkpoint_file;
extern const char *const chi_checkpoint_file_name[CHI_CHECKPOINT_FILES];

typedef struct {
	const char *name;
	uint32_t crc32c;
} chi_manifest_tensor;

typedef struct {
	uint64_t bytes;
	uint32_t header; // of all before the tensors
	size_t n, capacity;
	chi_manifest_tensor *tensor; // when read: by name
} chi_manifest_file;

typedef struct {
	uint64_t save;
	uint64_t step, replicas;
	chi_manifest_file file[CHI_CHECKPOINT_FILES];
	size_t pairs, pairs_capacity;
	chi_st_pair *pair;
	char *text;
} chi_manifest;

void chi_manifest_print(chi_text *text, const chi_manifest *m);
// CHOIR_CORRUPT: damaged; CHOIR_UNSUPPORTED: a newer format; CHOIR_NOT_FOUND. Always free *m.
choir_status chi_manifest_read(const chi_directory *step, chi_manifest *m);
void chi_manifest_free(chi_manifest *m);
const char *chi_manifest_find(const chi_manifest *m, const char *key);
