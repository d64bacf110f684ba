// Shared libraries opened at run time.
#pragma once

#include "choir/status.h"

#include <stdbool.h>

typedef struct chi_module chi_module;
bool chi_module_exists(const char *path);
// Takes a path or, without a slash, looks in the system's search path. It stays open. NULL:
// CHOIR_NOT_FOUND with the system's message.
chi_module *chi_module_open(const char *path);
// Symbols are private: the program may use another version.
chi_module *chi_module_open_alone(const char *path);
void *chi_module_symbol(chi_module *m, const char *name);
// In any shared library of the process.
bool chi_module_find(const char *name, void (**function)(void));
// Gives that of the file that contains Choir, without the last slash; "": unknown.
const char *chi_module_directory(char *out, size_t size);
// Works as chi_file_fingerprint, or gives "in the program".
void chi_module_fingerprint(char *out, size_t size);
// libchoir-NAME.so of this build: in Choir's directory, else in the library directory beside it,
// else in the system's search path. alone: with private symbols.
chi_module *chi_module_open_own(const char *name, bool alone);
