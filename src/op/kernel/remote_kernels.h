// The kernels of remote devices.
#pragma once

#include "base/fields.h"
#include "op/op.h"

// Adds a kernel for each operation and dtype, by chi_kernel_add_builtin. It queues a command; the
// server chooses among its own kernels.
choir_status chi_remote_kernels_add(void);

// A buffer in a message: its address or pointer, dtype, rank and sizes.
choir_status chi_remote_unpack_buffer(chi_unpack *u, uint64_t *address, choir_buffer *b);
