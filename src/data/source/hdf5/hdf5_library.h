// HDF5's functions, loaded with the first file, because its dependencies would delay every program
// (decision 0049).
#pragma once

#ifdef CHI_HAS_HDF5

#include "choir/status.h"

#include <hdf5.h>

#define CHI_HDF5_FUNCTIONS(use) \
	use(H5open) use(H5Eget_auto2) use(H5Eset_auto2) use(H5Eclear2) use(H5Ewalk2) use( \
			H5Fopen) use(H5Fclose) use(H5Gopen2) use(H5Gclose) use(H5Gget_info) \
			use(H5Lget_name_by_idx) use(H5Oopen) use(H5Oclose) use(H5Iget_type) use( \
					H5Dclose) use(H5Dopen2) use(H5Dget_space) use(H5Dget_type) use(H5Dread) \
					use(H5Dget_create_plist) use(H5Pget_layout) use(H5Pget_chunk) use( \
							H5Pget_nfilters) use(H5Dget_storage_size) use(H5Pcreate) \
							use(H5Pset_chunk_cache) use(H5Pclose) use(H5Sclose) use( \
									H5Screate_simple) use(H5Sget_simple_extent_ndims) \
									use(H5Sget_simple_extent_dims) use(H5Sselect_hyperslab) use( \
											H5Tclose) use(H5Tcopy) use(H5Tget_class) \
											use(H5Tget_size) use(H5Tget_sign) use(H5Tget_ebias) \
													use(H5Tget_nmembers) use(H5Tset_order)
#define CHI_HDF5_TYPES(use) \
	use(H5T_NATIVE_FLOAT_g) use(H5T_NATIVE_DOUBLE_g) use(H5T_NATIVE_INT32_g) \
			use(H5T_NATIVE_INT64_g) use(H5T_NATIVE_UINT8_g) use(H5P_CLS_DATASET_ACCESS_ID_g)

// NULL in older releases.
#define CHI_HDF5_LATER(use) use(H5Dget_chunk_storage_size) use(H5Dget_num_chunks)
#ifndef H5_NO_DEPRECATED_SYMBOLS
#define CHI_HDF5_DEPRECATED(use) use(H5Gget_objinfo)
#else
#define CHI_HDF5_DEPRECATED(use)
#endif

typedef struct {
#define CHI_HDF5_MEMBER(name) __typeof__(name) *name;
	CHI_HDF5_FUNCTIONS(CHI_HDF5_MEMBER)
	CHI_HDF5_LATER(CHI_HDF5_MEMBER)
	CHI_HDF5_DEPRECATED(CHI_HDF5_MEMBER)
	CHI_HDF5_TYPES(CHI_HDF5_MEMBER)
#undef CHI_HDF5_MEMBER
} chi_hdf5;

// Locks out Choir's other threads and silences the library. NULL: no library.
const chi_hdf5 *chi_hdf5_begin(void);
void chi_hdf5_end(void);
// In one line, or "".
const char *chi_hdf5_error(const chi_hdf5 *h, char text[256]);

#endif
