// Opens data as the files hold them, for all commands.
#pragma once

#include "data/data_name.h"

// All examples. CSV: complete rows; a table with more columns than a dataset can have gives all
// its numbers as one column. Not for DATA_MNIST, DATA_DIGITS and DATA_TEXT. d must live as long as
// the dataset. NULL: an error.
choir_dataset *data_open(const data_name *d, choir_bad_record wrong);
// One array of idx or npy, in the files of a name or pattern. column must live as long as the
// dataset.
choir_dataset *data_open_array(const data_name *d, const char *path, char *column);
// Compression of the first file, by its first bytes: "none", "gzip" or "zlib".
const char *data_compression(const data_name *d);
