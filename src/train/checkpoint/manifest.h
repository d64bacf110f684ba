// A step's manifest: which step it is, and the checksum of everything else in its folder. JSON on
// one line, which ends in the checksum of the line itself.
#pragma once

#include "base/directory.h"
#include "base/text.h"
#include "train/weights/safetensors.h"

enum { CHI_MANIFEST_FORMAT = 1 };

// The two files beside it: what a strategy's weights are, and all else.
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
	uint32_t header; // checksum of what stands before the tensors
	size_t n, capacity;
	chi_manifest_tensor *tensor; // of a manifest that was read: by name
} chi_manifest_file;

typedef struct {
	uint64_t save; // the how many-th save of its directory: newer ones have larger numbers
	uint64_t step, replicas;
	chi_manifest_file file[CHI_CHECKPOINT_FILES];
	size_t pairs, pairs_capacity;
	chi_st_pair *pair; // metadata
	char *text; // that all names lie in, of a manifest that was read
} chi_manifest;

void chi_manifest_print(chi_text *text, const chi_manifest *m);
// CHOIR_CORRUPT: it is damaged; CHOIR_UNSUPPORTED: of a newer format; CHOIR_NOT_FOUND. *m is to be
// freed whatever happens.
choir_status chi_manifest_read(const chi_directory *step, chi_manifest *m);
void chi_manifest_free(chi_manifest *m);
const char *chi_manifest_find(const chi_manifest *m, const char *key); // metadata; NULL: none
