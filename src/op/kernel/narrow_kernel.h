// Kernels for f16 and bf16 that are made of kernels for f32.
#pragma once

#include "op/kernel/kernel_list.h"

// Registers a library's f32 kernels for f16 and bf16: operands are widened, the f32 kernel runs,
// and results are rounded once. Inputs and out may be f32, too. Kernels that write their inputs
// are left out. The caller holds the registry's lock. CHOIR_NO_MEMORY.
choir_status chi_kernel_register_narrow(chi_kernel_lists *lists, const char *name);
// Whether that makes kernels of this one.
bool chi_kernel_is_narrowed(const chi_kernel_spec *spec);
