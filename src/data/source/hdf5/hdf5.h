// Some releases crash on inconsistent sizes, so these are verified first.
#pragma once

#include "data/source/hdf5/hdf5_library.h"

#include "choir/source.h"

choir_status chi_array_list_hdf5(choir_array_list *l, const char *path);

#ifdef CHI_HAS_HDF5

typedef struct {
	int rank;
	hsize_t dim[CHOIR_MAX_RANK];
	hsize_t chunk[CHOIR_MAX_RANK];
	bool filtered;
	bool fixed;
	bool sparse; // some values are unwritten
	uint32_t value; // bytes; 0: unknown
	hsize_t seen; // last checked along axis 0, from 1
} chi_hdf5_stored;

// False: Choir has no such dtype.
bool chi_hdf5_dtype(const chi_hdf5 *h, hid_t type, choir_dtype *dtype);
// Gives a value's bytes. CHOIR_CORRUPT names the byte: the library must not open the object.
choir_status chi_hdf5_check_header(
		const chi_hdf5 *h, hid_t file, const char *path, const char *name, uint32_t *value);
// s has rank and dimensions. CHOIR_CORRUPT: values are missing, or sizes do not fit.
choir_status chi_hdf5_inspect(const chi_hdf5 *h, hid_t id, size_t value, chi_hdf5_stored *s);
choir_status chi_hdf5_check_rows(
		const chi_hdf5 *h, hid_t id, hsize_t first, hsize_t count, chi_hdf5_stored *s);

#endif
