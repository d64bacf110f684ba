// Small files for tests, in a temporary folder.
#pragma once

#include <stddef.h>

// Returns a path in the folder of this program; files_remove removes the folder.
const char *files_path(const char *name);
void files_remove(void);
int files_teardown(void **state); // files_remove, to end a group of tests
void files_write(const char *path, const void *data, size_t size);
// Reads a file; the caller frees it. *size: its length.
char *files_read(const char *path, size_t *size);
// Writes a safetensors file; the length of the header is written before it.
void files_write_safetensors(const char *path, const char *header, const void *data, size_t size);
void files_remove_directory(const char *path); // with its contents
// Returns the number of files in the folder, including hidden ones.
int files_count(void);
