// Shared libraries opened at run time.
#pragma once

#include "choir/status.h"

#include <stdbool.h>

typedef struct chi_dynamic_library chi_dynamic_library;
bool chi_dynamic_library_exists(const char *path);
// A path or, without a slash, a name to search. Never closed. NULL: CHOIR_NOT_FOUND with the
// system's message.
chi_dynamic_library *chi_dynamic_library_open(const char *path);
// With private symbols.
chi_dynamic_library *chi_dynamic_library_open_alone(const char *path);
void *chi_dynamic_library_symbol(chi_dynamic_library *library, const char *name);
bool chi_dynamic_library_find(const char *name, void (**function)(void));
// Of the file that contains Choir; "": unknown.
const char *chi_dynamic_library_directory(char *out, size_t size);
// As chi_file_fingerprint, or "in the program".
void chi_dynamic_library_fingerprint(char *out, size_t size);
// libchoir-NAME.so, in Choir's directory, the library directory beside it, or the search path.
// alone: with private symbols.
chi_dynamic_library *chi_dynamic_library_open_own(const char *name, bool alone);
