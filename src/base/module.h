// Libraries that are opened while the program runs.
#pragma once

#include "choir/status.h"

#include <stdbool.h>

typedef struct chi_module chi_module;
bool chi_module_exists(const char *path);
// Opens a library by path or, without a slash, by name as the system looks for it. NULL: none,
// with CHOIR_NOT_FOUND and the system's words. What is opened stays so until the program ends.
chi_module *chi_module_open(const char *path);
// The same; its symbols are for chi_module_symbol alone, so that the program may have another
// version of it.
chi_module *chi_module_open_alone(const char *path);
void *chi_module_symbol(chi_module *m, const char *name); // NULL: it has none
// A function that the program has, whoever brought it; false: it has none. Copied to *function.
bool chi_module_find(const char *name, void (**function)(void));
// The file that Choir itself is in, a library or the program; "": nobody knows. Its folder, with
// no slash behind it. Whether it is the program.
const char *chi_module_file(char *out, size_t size);
const char *chi_module_directory(char *out, size_t size);
bool chi_module_is_program(void);
