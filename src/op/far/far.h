// Wraps a list of host kernels for devices of the kind "far".
#pragma once

#include "op/kernel_list.h"

void chi_far_register(chi_kernel_lists *lists, const char *name);
