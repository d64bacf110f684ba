// The kernels of libchoir-cuda's devices.
#pragma once

#include "choir/status.h"

// Those of libchoir-cuda, if it is open, and the host's for other operations.
choir_status chi_cuda_kernels_add(void);
