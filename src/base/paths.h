// Lists of files, from names and patterns.
#pragma once

#include "choir/status.h"

typedef struct {
	size_t n, room;
	char **path;
} chi_paths;

// Adds the file of this name; or, if there is none, the files that it matches as a pattern of
// the shell (*, ?, [abc]), folders left out, in the order of bytes. CHOIR_NOT_FOUND: none.
choir_status chi_paths_add(chi_paths *p, const char *pattern);
choir_status chi_paths_add_one(chi_paths *p, const char *path); // as it is
// Leaves every count-th, from index on.
void chi_paths_keep(chi_paths *p, size_t count, size_t index);
void chi_paths_free(chi_paths *p); // usable again as if zeroed
