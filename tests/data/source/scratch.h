// Files for the tests of sources, and the contents of datasets as text.
#pragma once

#include "choir/source.h"

#include <stddef.h>

// Returns a path in a temporary folder of this program. The eighth next call overwrites the text.
const char *scratch_path(const char *name);
// For a group of tests: makes that folder the current one, and removes it at the end.
int scratch_enter(void **state);
int scratch_leave(void **state);
// Writes a file and returns its path.
const char *scratch_write(const char *name, const void *bytes, size_t n);
const char *scratch_text(const char *name, const char *text);
const char *scratch_numbers(const char *name, int64_t n); // 0, 1, ... n-1, 8 bytes each
// Writes numpy.savez of the npy file as member "number", not compressed.
const char *scratch_npz(const char *name, const char *npy);
// Returns the bytes of a file, which is not empty; the caller frees them.
unsigned char *scratch_read(const char *path, size_t *n);

// Make a source of a file; the column is named in the file, or "x".
choir_dataset *scratch_idx(const char *path);
choir_dataset *scratch_npy(const char *path);
choir_dataset *scratch_csv(const char *path);
choir_dataset *scratch_lines(const char *path);
choir_dataset *scratch_bytes(const char *path);
choir_dataset *scratch_records(const char *path);

// Returns a pass of d as text, one line per example: the values of the columns, separated by
// spaces, with brackets around those with a shape. A failure is the last line, "! STATUS text".
// The next call overwrites the text. d may be NULL.
const char *pass_in_words(choir_dataset *d);
// Asserts that a pass ends with a failure that contains text; frees d.
void assert_pass_fails(choir_dataset *d, const char *text);

// Makes a CSV dataset of this text.
choir_dataset *csv_of_text(const char *text, const choir_csv_options *o);
#define CSV_OF(text, ...) csv_of_text(text, CHOIR_OPTIONS(choir_csv_options, __VA_ARGS__))
// Returns the same for batches of count examples; takes d over.
const char *batches_in_words(choir_dataset *d, int64_t count);
// Asserts the text of a pass, read by single examples and by batches, in two passes; frees d.
void assert_pass(choir_dataset *d, const char *expected);

// Writes damaged copies of a file and calls use for each: all truncations, and every byte changed
// in three ways. use checks whether the result is acceptable; how describes the damage.
typedef void damage_fn(const char *path, const char *how);
void damage(const char *name, const void *bytes, size_t n, damage_fn *use);
