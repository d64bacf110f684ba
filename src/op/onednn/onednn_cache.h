// Cache of primitives, one per thread.
#pragma once

#include "op/onednn/onednn_primitive.h"

// Valid until this thread's next call. CHOIR_UNSUPPORTED: without a message.
choir_status chi_dnn_find(const chi_dnn_problem *problem, chi_dnn **out);

enum { CHI_DNN_CACHE = 256 };
// For tests, of this thread.
size_t chi_dnn_cached(void);
void chi_dnn_forget(void);
