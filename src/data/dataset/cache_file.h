// The file of a cache stage. It records whose share it holds, because workers must not mix
// shares.
#pragma once

#include "data/stage.h"

typedef struct chi_cache_file chi_cache_file;
// NULL: the file cannot be read (CHOIR_IO), is no cache (CHOIR_CORRUPT), or belongs to another
// chain (CHOIR_INVALID).
chi_cache_file *chi_cache_file_new(const char *path, const choir_dataset *d);
void chi_cache_file_free(chi_cache_file *f); // removes an incomplete file
// CHOIR_INVALID: the file holds another share.
choir_status chi_cache_file_share(chi_cache_file *f, int64_t count, int64_t index);
bool chi_cache_file_whole(const chi_cache_file *f);
choir_status chi_cache_file_rewind(chi_cache_file *f); // discards an incomplete file
choir_status chi_cache_file_write(
		chi_cache_file *f, const choir_dataset *d, void *const column[], int64_t examples);
// CHOIR_INVALID: another worker's file has appeared.
choir_status chi_cache_file_finish(chi_cache_file *f);
// CHOIR_CORRUPT names the byte. CHOIR_INVALID: the file holds another share.
choir_status chi_cache_file_read(
		chi_cache_file *f, const choir_dataset *d, void *const column[], int64_t *examples);
