// oneDNN's primitives by problem. Each thread has a cache, which needs no lock.
#pragma once

#include "op/onednn/primitive.h"

// Finds a oneDNN primitive in this thread's cache, or makes it; valid until its next call. Fails
// with CHOIR_UNSUPPORTED (cached, no message), CHOIR_NO_MEMORY or CHOIR_INTERNAL.
choir_status chi_dnn_find(const chi_dnn_problem *problem, chi_dnn **out);

enum { CHI_DNN_CACHE = 256 };
// For tests: the size of this thread's primitive cache, and clearing it.
size_t chi_dnn_cached(void);
void chi_dnn_forget(void);
