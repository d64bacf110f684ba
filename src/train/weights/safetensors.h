// A little-endian length of eight bytes, a JSON header, and the data, to which the header's
// offsets refer. Files are not trusted: tensors must tile the data, and sizes match the file's.
#pragma once

#include "base/file.h"
#include "base/text.h"
#include "choir/tensor.h"

typedef struct {
	const char *name;
	const char *dtype_name;
	size_t element_bytes;
	bool supported;
	choir_dtype dtype;
	choir_shape shape;
	uint64_t begin, end;
} chi_st_tensor;

typedef struct {
	const char *key, *value;
} chi_st_pair;

typedef struct {
	char *text;
	uint64_t data;
	size_t n, capacity;
	chi_st_tensor **tensor;
	size_t pairs, pairs_capacity;
	chi_st_pair **pair;
} chi_safetensors;

// CHOIR_CORRUPT says where; CHOIR_UNSUPPORTED: unknown dtype, or too many dimensions. *st may be
// closed after a failure.
choir_status chi_safetensors_open(chi_safetensors *st, chi_file *f);
choir_status chi_safetensors_view(
		chi_safetensors *st, const char *path, const void *file, size_t bytes);
void chi_safetensors_close(chi_safetensors *st);
const chi_st_pair *chi_safetensors_pair(const chi_safetensors *st, const char *key);

const char *chi_safetensors_dtype(choir_dtype dtype);
// All before the data. text->failed: out of memory.
void chi_safetensors_print(chi_text *text, size_t n, const chi_st_tensor tensors[], size_t pairs,
		const chi_st_pair metadata[]);
