// Primitives by problem, in a cache for each thread: lookups need no lock, and one thread uses a
// primitive.
#pragma once

#include "op/onednn/primitive.h"

// Finds or makes the primitive, valid until this thread's next call. Fails with CHOIR_UNSUPPORTED
// (cached, no message), CHOIR_NO_MEMORY or CHOIR_INTERNAL.
choir_status chi_dnn_find(const chi_dnn_problem *problem, chi_dnn **out);

enum { CHI_DNN_CACHE = 256 }; // per thread
// For tests: the size of this thread's cache, and clearing it.
size_t chi_dnn_cached(void);
void chi_dnn_forget(void);
