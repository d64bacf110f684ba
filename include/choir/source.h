// Sources: where the examples of a dataset come from. Files, memory, functions of the program and
// examples that Choir draws itself.
//
// Errors: constructors return NULL, and choir_error says why; what is found out only while reading
// is an error of the element that is asked for (see dataset.h). A file that is not there is
// CHOIR_NOT_FOUND, one that the system refuses CHOIR_IO, and one that is not what its format says
// CHOIR_CORRUPT, with the file, what was found and what was needed.
// Threads: as dataset.h.
#pragma once

#include "dataset.h"

CHOIR_C_BEGIN

// The examples of an IDX file, the format of MNIST, plain or compressed by gzip (which of them
// is seen by how the file begins; gzip needs a build with zlib, else CHOIR_UNSUPPORTED). Axis 0
// of the file counts the examples, so images of [60000, 28, 28] give one column of shape [28,
// 28]. Values are u8, i32, f32 or f64. CHOIR_CORRUPT, with what was promised and what was found:
// a header that is none, a file shorter or longer than its header says, damaged gzip data.
choir_dataset *choir_idx_dataset_new(const char *path, const char *column);
// Examples in memory: columns[i].data holds all of them. copy false: borrowed, unchanged until
// the dataset is freed; true: copied now.
choir_dataset *choir_memory_dataset_new(
		int64_t examples, size_t n, const choir_column columns[], bool copy);
// Fills one example: out[i] is memory for columns[i]. CHOIR_OK; CHOIR_END if there is no example
// any more; or an error, which whoever reads gets with the example's number in front. position
// counts from 0 in each pass. Threads: the one that reads, which below choir_dataset_prefetch is
// a thread of Choir's.
typedef choir_status choir_example_fn(int64_t position, void *const out[], void *user);
// Examples that fn makes, one a call, in order. user is borrowed until the dataset is freed.
choir_dataset *choir_function_dataset_new(
		size_t n, const choir_column columns[], choir_example_fn *fn, void *user);
// Drawn digits that look handwritten, for trying things without a file: "image" u8 [28, 28], 0
// paper and 255 ink, and "label" u8, 0 to 9. Example i depends on seed and i alone, on every
// machine; of every ten in a row each digit is one.
choir_dataset *choir_digits_dataset_new(int64_t examples, uint64_t seed);

CHOIR_C_END
