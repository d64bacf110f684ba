// Stored or deflated members, also zip64.
#pragma once

#include "base/file.h"

typedef struct {
	char *name;
	uint64_t local, begin;
	uint64_t compressed, bytes;
	uint32_t crc;
	bool deflated;
} chi_zip_member;

typedef struct {
	size_t n, capacity;
	chi_zip_member *member;
} chi_zip_members;

// CHOIR_CORRUPT names the fault and place; overlapping members could make a small file claim many.
// CHOIR_UNSUPPORTED: encryption, other compression.
choir_status chi_zip_read(chi_file *file, const char *name, chi_zip_members *members);
void chi_zip_members_free(chi_zip_members *members);
