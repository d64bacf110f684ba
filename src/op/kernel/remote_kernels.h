// The kernels of remote devices.
#pragma once

#include "base/serialization.h"
#include "op/op.h"

// One for each operation and dtype; the server chooses among its own kernels.
choir_status chi_remote_kernels_add(void);

// Address or pointer, dtype, rank, sizes.
choir_status chi_remote_unpack_buffer(chi_unpack *u, uint64_t *address, choir_buffer *b);
