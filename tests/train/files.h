// Small files for tests, in a folder of their own.
#pragma once

#include <stddef.h>

// A path in a new folder that all tests of a program share; files_remove removes it with what is
// in it.
const char *files_path(const char *name);
void files_remove(void);
int files_teardown(void **state); // the same, as what a group of tests ends with
void files_write(const char *path, const void *data, size_t size);
// The whole of a file; *size is its length. To be freed.
char *files_read(const char *path, size_t *size);
// Writes a safetensors file of that header (its length is put before it) and data.
void files_write_safetensors(const char *path, const char *header, const void *data, size_t size);
void files_remove_directory(const char *path); // with all that is in it
// How many files there are in the folder, hidden ones included.
int files_count(void);
