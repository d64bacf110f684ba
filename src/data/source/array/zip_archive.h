// The members of a zip archive, for npz: found by the directory at its end, of which nothing is
// believed that the file does not bear out. Members are stored or deflated, in archives of any
// size (zip64).
#pragma once

#include "base/file.h"

typedef struct {
	char *name;
	uint64_t local, begin; // of the file: where its own header begins, and its data
	uint64_t compressed, bytes; // in the file, and unpacked
	uint32_t crc;
	bool deflated;
} chi_zip_member;

typedef struct {
	size_t n, capacity;
	chi_zip_member *member;
} chi_zip_members;

// Reads the directory. name: the file's, for messages. CHOIR_CORRUPT, with what is wrong and
// where; so are members that share bytes of the file, as a small one could be said to hold many;
// CHOIR_UNSUPPORTED: encryption, other ways to compress.
choir_status chi_zip_read(chi_file *file, const char *name, chi_zip_members *members);
void chi_zip_members_free(chi_zip_members *members);
