// Small files for the tests of sources, and what a dataset made of them, in words.
#pragma once

#include "choir/source.h"

#include <stddef.h>

// A path in a new folder that all tests of a program share. The text is overwritten by the
// eighth call after it.
const char *scratch_path(const char *name);
// For a group of tests: makes that folder the current one, for names without a path; and removes
// it with all that is in it.
int scratch_enter(void **state);
int scratch_leave(void **state);
// Writes a file and returns its path.
const char *scratch_write(const char *name, const void *bytes, size_t n);
const char *scratch_text(const char *name, const char *text);
const char *scratch_numbers(const char *name, int64_t n); // 0, 1, ... n-1, each 8 bytes
// numpy.savez of the npy file "number": an archive with one member, stored.
const char *scratch_npz(const char *name, const char *npy);
// The bytes of a file, which is not empty; the caller frees them.
unsigned char *scratch_read(const char *path, size_t *n);

// Sources of a file, with columns named by it or "x".
choir_dataset *scratch_idx(const char *path);
choir_dataset *scratch_npy(const char *path);
choir_dataset *scratch_csv(const char *path);
choir_dataset *scratch_lines(const char *path);
choir_dataset *scratch_bytes(const char *path);
choir_dataset *scratch_records(const char *path);

// A pass of d, a line for each example: the columns' values with spaces between, those of a
// column with a shape in brackets. A failure is the last line, "! STATUS text". The text is
// overwritten by the next call. d may be NULL.
const char *pass_in_words(choir_dataset *d);
// The pass ends with a failure that holds text. Frees d.
void assert_pass_fails(choir_dataset *d, const char *text);

// A CSV dataset of a scratch file with that text.
choir_dataset *csv_of_text(const char *text, const choir_csv_options *o);
#define CSV_OF(text, ...) csv_of_text(text, CHOIR_OPTIONS(choir_csv_options, __VA_ARGS__))
// The same of examples read count at a time, through a batch step that takes d over.
const char *batches_in_words(choir_dataset *d, int64_t count);
// A pass in words is expected; in single reads and in batches, in two passes. Frees d.
void assert_pass(choir_dataset *d, const char *expected);

// Calls use for each truncation of n bytes, and for each byte changed in three ways, written to
// a file. use must find out whether the result is one that can be. It gets how the file was
// damaged.
typedef void damage_fn(const char *path, const char *how);
void damage(const char *name, const void *bytes, size_t n, damage_fn *use);
