// Array files: packed values, with examples along axis 0.
#pragma once

#include "data/source/reader.h"
#include "data/dataset.h"

// With the axis of examples.
enum { CHI_ARRAY_FILE_RANK = CHOIR_MAX_RANK };

typedef struct {
	chi_reader *reader;
	choir_dtype dtype;
	size_t stored; // bytes in the file, if dtype is wider
	bool is_signed;
	int rank;
	int64_t dim[CHI_ARRAY_FILE_RANK];
	size_t header_bytes;
	bool big_endian;
	bool fortran;
	int64_t promised; // bytes, by chi_array_file_check
} chi_array_file;

choir_status chi_array_file_check(chi_array_file *p);
// One column per part. Owns the readers on success.
typedef enum { CHI_ARRAY_FILE_IDX, CHI_ARRAY_FILE_NPY, CHI_ARRAY_FILE_NPZ } chi_array_format;
choir_dataset *chi_array_file_new(
		chi_array_format format, size_t n, chi_array_file parts[], const char *const names[]);

choir_status chi_npy_read_header(chi_array_file *p);
// Accepts any type, and gives its name. Does not check the file's size.
enum { CHI_NPY_TYPE = 64 };
choir_status chi_npy_infer(chi_array_file *p, char type[CHI_NPY_TYPE], bool *known);

// rank: 0 to CHOIR_MAX_RANK.
choir_status chi_array_list_add(choir_array_list *l, const char *name, const char *type, int known,
		int rank, const int64_t dim[], int64_t held);
choir_status chi_array_list_add_npy(choir_array_list *l, const char *name, chi_reader *r);
choir_status chi_array_list_npz(choir_array_list *l, const char *path);
