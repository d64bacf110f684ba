// Files of examples by kind and name, for the commands that look at any of them.
#pragma once

#include "data/choose_arrays.h"

typedef struct {
	const char *kind; // "idx", "npy", "npz", "csv", "text", "tfrecord", "hdf5", "fixed", "cifar10"
	const char *path; // in arrays, or in the name that was given
	int64_t record; // fixed: bytes of one
	array_names arrays; // npz, hdf5: which of them
} named_file;

extern const char named_file_help[];

// Understands "csv:FILE", "npz:FILE#x,y" or FILE, whose kind is seen by how its name ends.
// CHOIR_INVALID: it is not.
choir_status named_file_set(named_file *f, const char *name);
// A dataset of all that is in it: text by lines, and of CSV the complete rows; where a table has
// more columns than a dataset can, all its numbers in one. NULL: an error.
choir_dataset *named_file_open(const named_file *f);
// The files behind it: one, or those of a folder or pattern. NULL: an error.
choir_files *named_file_list(const named_file *f);
// How the first of them is compressed, by how it begins: "none", "gzip" or "zlib".
const char *named_file_compression(const named_file *f);
