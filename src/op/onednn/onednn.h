// oneDNN's instruction set and version.
#pragma once

#include "op/kernel/kernel_list.h"
#include "op/op.h"

chi_kernel_list chi_onednn_list(size_t index);
// Limits it to the instruction set in use. CHOIR_STATE: the process has used oneDNN.
choir_status chi_limit_onednn(void);
bool chi_onednn_has_bf16(void);
// oneDNN multiplies bf16 by AMX, which adds in another order.
bool chi_onednn_has_amx(void);
const char *chi_onednn_version(char text[CHI_KERNEL_LIBRARY]);
