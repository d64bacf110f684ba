// Attention by any matrix product: a spec's `user` is its chi_gemm_kernel.
#pragma once

#include "op/plain/gemm.h"

choir_status chi_attention(const choir_kernel_call *call);
choir_status chi_attention_gradient(const choir_kernel_call *call);
size_t chi_attention_scratch(const choir_kernel_call *call);
