// Kernels for f16 and bf16 around kernels for f32.
#pragma once

#include "op/kernel/kernel_list.h"

// A library's f32 kernels for f16 and bf16, except those that write inputs. Inputs and out may be
// f32. Needs the registry's lock.
choir_status chi_kernel_register_narrow(chi_kernel_lists *lists, const char *name);
bool chi_kernel_is_narrowed(const chi_kernel_spec *spec);
