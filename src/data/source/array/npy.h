// The header of npy, for whoever holds an npy file or a member that is one.
#pragma once

#include "data/source/array/array_file.h"

// Reads the header that p->reader is before and fills in p, checked by chi_array_file_check.
choir_status chi_npy_read_header(chi_array_file *p);
// The same of a header that no dataset may be possible with: what its type is called, and whether
// it is one that datasets have. Nothing is held against the size of the file.
enum { CHI_NPY_TYPE = 64 };
choir_status chi_npy_infer(chi_array_file *p, char type[CHI_NPY_TYPE], bool *known);
