// Writes HDF5 files with the HDF5 library, for tests.
#pragma once

#include <stdint.h>

#ifdef CHI_HAS_HDF5

#include "data/source/hdf5/hdf5_library.h"

#define HDF5_WRITING(use) \
	use(H5Fcreate) use(H5Dcreate2) use(H5Dwrite) use(H5Gcreate2) use(H5Pset_chunk) \
			use(H5Pset_deflate) use(H5Pset_fletcher32) use(H5Pset_layout) use(H5Pset_fill_value) \
					use(H5Pset_fill_time) use(H5Pset_libver_bounds) use(H5P_CLS_FILE_ACCESS_ID_g) \
							use(H5P_CLS_DATASET_CREATE_ID_g) use(H5T_STD_I16BE_g) \
									use(H5T_IEEE_F32BE_g) use(H5T_STD_U64LE_g)
#define HDF5_MEMBER(name) __typeof__(name) *name;
typedef struct {
	HDF5_WRITING(HDF5_MEMBER)
} hdf5_writer;
extern hdf5_writer hdf5_write; // valid from hdf5_begin_writing to chi_hdf5_end

// Opens the library for reading and writing; fails the test if it cannot.
const chi_hdf5 *hdf5_begin_writing(void);
// Creates a file.
hid_t hdf5_create(const char *path);
// Adds a dataset. chunk: rows of a chunk, 0: contiguous. deflate: level, 0: not compressed.
void hdf5_add(const chi_hdf5 *h, hid_t file, const char *name, hid_t in_file, hid_t in_memory,
		int rank, const hsize_t dim[], hsize_t chunk, unsigned deflate, const void *data);

#endif

// Writes a file with one dataset of n numbers.
void hdf5_write_numbers(const char *path, const char *name, int64_t n, const int64_t numbers[]);
