// A cache stage's file. It records whose share it holds.
#pragma once

#include "data/dataset.h"

typedef struct chi_cache_file chi_cache_file;
// NULL: CHOIR_IO, CHOIR_CORRUPT (no cache), or CHOIR_INVALID (another chain's).
chi_cache_file *chi_cache_file_new(const char *path, const choir_dataset *d);
void chi_cache_file_free(chi_cache_file *f); // removes an incomplete file
// CHOIR_INVALID: another share, here and below.
choir_status chi_cache_file_share(chi_cache_file *f, int64_t count, int64_t index);
bool chi_cache_file_whole(const chi_cache_file *f);
choir_status chi_cache_file_rewind(chi_cache_file *f); // discards an incomplete file
choir_status chi_cache_file_write(
		chi_cache_file *f, const choir_dataset *d, void *const column[], int64_t examples);
choir_status chi_cache_file_finish(chi_cache_file *f);
// CHOIR_CORRUPT names the byte.
choir_status chi_cache_file_read(
		chi_cache_file *f, const choir_dataset *d, void *const column[], int64_t *examples);
