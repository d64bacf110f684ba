// The file of a cache stage: elements one after another, each with its length and its checksum. It
// says whose they are, since workers that read parts of their own must not have each other's.
#pragma once

#include "data/stage.h"

typedef struct chi_cache_file chi_cache_file;
// The file that is there, which must be of d's chain, or one that is to be written. NULL: the
// file cannot be read (CHOIR_IO), is none (CHOIR_CORRUPT), or is another chain's (CHOIR_INVALID).
chi_cache_file *chi_cache_file_new(const char *path, const choir_dataset *d);
void chi_cache_file_free(chi_cache_file *f); // one that is not whole is removed
// The chain reads only the share of worker index of count from now on. CHOIR_INVALID: the file
// that is there holds another.
choir_status chi_cache_file_share(chi_cache_file *f, int64_t count, int64_t index);
bool chi_cache_file_whole(const chi_cache_file *f); // to be read, not written
choir_status chi_cache_file_rewind(chi_cache_file *f); // what was written so far is removed
choir_status chi_cache_file_write(
		chi_cache_file *f, const choir_dataset *d, void *const column[], int64_t examples);
// The file appears. CHOIR_INVALID: another worker's has meanwhile.
choir_status chi_cache_file_finish(chi_cache_file *f);
// The next element; CHOIR_END behind the last; CHOIR_CORRUPT with the byte; CHOIR_INVALID: it
// holds another share.
choir_status chi_cache_file_read(
		chi_cache_file *f, const choir_dataset *d, void *const column[], int64_t *examples);
