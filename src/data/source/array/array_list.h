// Lists of the arrays in a file: what fills them.
#pragma once

#include "data/source/array/npy.h"

// dim: rank of them, from 0 to CHOIR_MAX_RANK. The texts are copied.
choir_status chi_array_list_add(choir_array_list *l, const char *name, const char *type, int known,
		int rank, const int64_t dim[], int64_t held);
// The array that an npy file or member is.
choir_status chi_array_list_add_npy(choir_array_list *l, const char *name, chi_reader *r);
choir_status chi_array_list_npz(choir_array_list *l, const char *path);
choir_status chi_array_list_hdf5(choir_array_list *l, const char *path);
