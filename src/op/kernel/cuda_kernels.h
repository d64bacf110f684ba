// The kernels of libchoir-cuda's devices.
#pragma once

#include "choir/status.h"

// Adds the kernels of libchoir-cuda, if it is open, and kernels that run on the host for all other
// operations, by chi_kernel_add_builtin.
choir_status chi_cuda_kernels_add(void);
