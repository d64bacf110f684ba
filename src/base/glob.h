// Lists of files from names and glob patterns.
#pragma once

#include "choir/status.h"

typedef struct {
	size_t n, capacity;
	char **path;
} chi_glob;

// A file or, if it does not exist, those that match the shell pattern, in byte order.
// CHOIR_NOT_FOUND: none.
choir_status chi_glob_add(chi_glob *p, const char *pattern);
choir_status chi_glob_add_path(chi_glob *p, const char *path);
// index, index + count, and so on.
void chi_glob_shard(chi_glob *p, size_t count, size_t index);
void chi_glob_free(chi_glob *p);
