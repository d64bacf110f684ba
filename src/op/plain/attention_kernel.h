// Attention for every library's list: the spec's user is the chi_gemm_kernel that makes the
// products.
#pragma once

#include "op/plain/gemm.h"

choir_status chi_attention(const choir_kernel_call *call);
choir_status chi_attention_gradient(const choir_kernel_call *call);
size_t chi_attention_scratch(const choir_kernel_call *call);
