// Lists of files, from names and patterns.
#pragma once

#include "choir/status.h"

typedef struct {
	size_t n, capacity;
	char **path;
} chi_glob;

// Adds the file of this name; or, if there is none, the files that it matches as a pattern of
// the shell (*, ?, [abc]), folders left out, in the order of bytes. CHOIR_NOT_FOUND: none.
choir_status chi_glob_add(chi_glob *p, const char *pattern);
choir_status chi_glob_add_path(chi_glob *p, const char *path); // as it is
// Leaves every count-th, from index on.
void chi_glob_shard(chi_glob *p, size_t count, size_t index);
void chi_glob_free(chi_glob *p); // usable again as if zeroed
