// The header of npy, for whoever holds an npy file or a member that is one.
#pragma once

#include "data/source/packed.h"

// Reads the header that p->reader is before and fills in p, checked by chi_packed_check.
choir_status chi_npy_read_header(chi_packed *p);
