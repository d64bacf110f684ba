// LSTM and GRU kernels that call any library's matrix product. A spec's `user` is its
// chi_gemm_kernel.
#pragma once

#include "op/plain/gemm.h"

choir_status chi_lstm(const choir_kernel_call *call);
choir_status chi_lstm_gradient(const choir_kernel_call *call);
choir_status chi_gru(const choir_kernel_call *call);
choir_status chi_gru_gradient(const choir_kernel_call *call);
choir_status chi_recurrent_gradient(const choir_kernel_call *call);
size_t chi_recurrent_scratch(const choir_kernel_call *call);
