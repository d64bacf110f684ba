// The file of a cache step: elements one after another, each with its length and its checksum.
#pragma once

#include "data/step.h"

typedef struct chi_cache_file chi_cache_file;
// The file that is there, which must be of d's chain, or one that is to be written. NULL: the
// file cannot be read (CHOIR_IO), is none (CHOIR_CORRUPT), or is another chain's (CHOIR_INVALID).
chi_cache_file *chi_cache_file_new(const char *path, const choir_dataset *d);
void chi_cache_file_free(chi_cache_file *f); // one that is not whole is removed
bool chi_cache_file_whole(const chi_cache_file *f); // to be read, not written
choir_status chi_cache_file_rewind(chi_cache_file *f); // what was written so far is removed
choir_status chi_cache_file_write(
		chi_cache_file *f, const choir_dataset *d, void *const column[], int64_t examples);
choir_status chi_cache_file_finish(chi_cache_file *f); // the file appears
// The next element; CHOIR_END behind the last; CHOIR_CORRUPT with the byte.
choir_status chi_cache_file_read(
		chi_cache_file *f, const choir_dataset *d, void *const column[], int64_t *examples);
