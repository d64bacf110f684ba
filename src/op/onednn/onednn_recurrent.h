// LSTM and GRU in 16 bits. A kernel's user is its chi_dnn_recurrence.
#pragma once

#include "op/kernel/kernel_list.h"

typedef struct {
	int parts; // gates: 4 for an LSTM, 3 for a GRU
	bool backward;
} chi_dnn_recurrence;

// 0: oneDNN has no product for this call.
int chi_dnn_recurrence_score(const choir_kernel_call *call);
size_t chi_dnn_recurrence_scratch(const choir_kernel_call *call);
choir_status chi_dnn_lstm(const choir_kernel_call *call);
choir_status chi_dnn_lstm_gradient(const choir_kernel_call *call);
choir_status chi_dnn_gru(const choir_kernel_call *call);
choir_status chi_dnn_gru_gradient(const choir_kernel_call *call);

// w's gradient; in bf16, one product over all examples and time steps. Without a user.
int chi_dnn_recurrent_gradient_score(const choir_kernel_call *call);
size_t chi_dnn_recurrent_gradient_scratch(const choir_kernel_call *call);
choir_status chi_dnn_recurrent_gradient(const choir_kernel_call *call);
