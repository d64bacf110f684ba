// The files of a source.
#pragma once

#include "base/glob.h"
#include "choir/source.h"

// Exactly one is given. On failure paths is empty.
choir_status chi_files_paths(
		chi_glob *paths, const char *what, const char *path, const choir_files *files);
