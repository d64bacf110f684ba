// Opens data as the files hold them.
#pragma once

#include "data/data_name.h"

// All examples, not of mnist, digits and text. CSV: complete rows; a table with more columns than
// a dataset can have gives its numbers as one column. d must live as long as the dataset.
choir_dataset *data_open(const data_name *d, choir_bad_record wrong);
// One array of idx or npy. column must live as long as the dataset.
choir_dataset *data_open_array(const data_name *d, const char *path, char *column);
// The compression of the first file, by its first bytes: "none", "gzip" or "zlib".
const char *data_compression(const data_name *d);
