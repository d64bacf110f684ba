// The safetensors format: eight bytes of length (little-endian), a JSON header of that length, and
// the data, in which the header's offsets count. Read strictly, since the format is what strangers
// send: the tensors must tile the data exactly, without gaps, overlaps or rest, nothing stands
// twice, and nothing is believed before it was compared with the file's size.
#pragma once

#include "base/file.h"
#include "base/text.h"
#include "choir/tensor.h"

typedef struct {
	const char *name;
	const char *dtype_name; // "F32"
	size_t element_bytes;
	bool supported; // dtype is one of Choir's, and this is it
	choir_dtype dtype;
	choir_shape shape;
	uint64_t begin, end; // in the data
} chi_st_tensor;

typedef struct {
	const char *key, *value;
} chi_st_pair;

// A file's header. Text in it lies in memory that it owns.
typedef struct {
	char *text;
	uint64_t data; // offset of the data in the file
	size_t n, capacity;
	chi_st_tensor **tensor; // by name
	size_t pairs, pairs_capacity;
	chi_st_pair **pair; // of the metadata, by key
} chi_safetensors;

// Reads and checks the header of f. A zeroed *st may be closed whatever happened. CHOIR_CORRUPT
// says what is wrong and where; CHOIR_UNSUPPORTED: a dtype that is not known, or too many
// dimensions.
choir_status chi_safetensors_open(chi_safetensors *st, chi_file *f);
// The same of a whole file in memory, which path names in messages.
choir_status chi_safetensors_view(
		chi_safetensors *st, const char *path, const void *file, size_t bytes);
void chi_safetensors_close(chi_safetensors *st);
const chi_st_pair *chi_safetensors_pair(const chi_safetensors *st, const char *key); // NULL: none

// What a file calls a dtype.
const char *chi_safetensors_dtype(choir_dtype dtype);
// Adds to text what stands before the data of n tensors, whose names and offsets are given; pairs
// of metadata as well. A failed allocation is text's.
void chi_safetensors_print(chi_text *text, size_t n, const chi_st_tensor tensors[], size_t pairs,
		const chi_st_pair metadata[]);
