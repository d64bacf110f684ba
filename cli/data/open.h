// Data files by kind and name, for the commands that read any of them.
#pragma once

#include "data/choose_arrays.h"

typedef struct {
	const char *kind; // "idx", "npy", "npz", "csv", "text", "tfrecord", "hdf5", "fixed", "cifar10"
	const char *path; // in arrays, or in the name that was given
	int64_t record; // fixed: bytes of a record
	array_names arrays; // npz, hdf5: the selected arrays
} named_file;

extern const char named_file_help[];

// Splits "csv:FILE", "npz:FILE#x,y" or FILE, whose suffix tells the kind. CHOIR_INVALID: the kind
// is unknown.
choir_status named_file_set(named_file *f, const char *name);
// Opens the whole file: lines of a text, complete rows of CSV. A table with more columns than a
// dataset can have gives all its numbers as one column. NULL: an error.
choir_dataset *named_file_open(const named_file *f);
// The files of the name: one, or those of a directory or pattern. NULL: an error.
choir_files *named_file_list(const named_file *f);
// Compression of the first file, by its first bytes: "none", "gzip" or "zlib".
const char *named_file_compression(const named_file *f);
