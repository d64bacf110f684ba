// Random bytes in a file that only its owner can read. A process that has the key belongs to the
// job.
#pragma once

#include "choir/status.h"

#include <stddef.h>
#include <stdint.h>

enum { CHI_KEY_MIN = 32, CHI_KEY_MAX = 256 };

typedef struct {
	unsigned char bytes[CHI_KEY_MAX];
	size_t size;
} chi_key;

// CHOIR_INVALID: another owner or size, or others may read the file.
choir_status chi_key_read(const char *path, chi_key *key);
// 32 random bytes with mode 0600. CHOIR_STATE: the file exists.
choir_status chi_key_make(const char *path);
uint64_t chi_key_job(const chi_key *key);
void chi_key_clear(chi_key *key);
