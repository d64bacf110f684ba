// HDF5 files. Whether one has what its header promises is seen before the library believes it:
// some releases end the program where sizes of a damaged file do not fit together.
#pragma once

#include "data/source/hdf5/hdf5_library.h"

#include "choir/source.h"

choir_status chi_array_list_hdf5(choir_array_list *l, const char *path);

#ifdef CHI_HAS_HDF5

// What is known of a dataset, and which of its chunks were looked at.
typedef struct {
	int rank; // at most CHOIR_MAX_RANK
	hsize_t dim[CHOIR_MAX_RANK];
	hsize_t chunk[CHOIR_MAX_RANK]; // 0: the dataset is in one piece
	bool filtered; // its chunks are, so that they have sizes of their own
	bool fixed; // no axis can grow
	bool sparse; // some values were never written
	uint32_t value; // bytes of a value by its chunks' header; 0: it does not say
	hsize_t seen; // the chunks along axis 0, from 1 on, that were looked at last; 0: none
} chi_hdf5_stored;

// What values of this type become; false: nothing that Choir has.
bool chi_hdf5_dtype(const chi_hdf5 *h, hid_t type, choir_dtype *dtype);
// Looks at the header of the object with this name or path before anything opens it; its value.
// CHOIR_CORRUPT, with the byte of the file: the library must not see it.
choir_status chi_hdf5_check_header(
		const chi_hdf5 *h, hid_t file, const char *path, const char *name, uint32_t *value);
// Finds the rest out of the dataset of this rank and these dimensions, whose values have so many
// bytes in the file. CHOIR_CORRUPT: not all of them are there, or sizes contradict each other.
choir_status chi_hdf5_inspect(const chi_hdf5 *h, hid_t id, size_t value, chi_hdf5_stored *s);
// The same of the chunks that count rows are in, at least one.
choir_status chi_hdf5_check_rows(
		const chi_hdf5 *h, hid_t id, hsize_t first, hsize_t count, chi_hdf5_stored *s);

#endif
