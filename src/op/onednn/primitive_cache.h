// Primitives by problem. Each thread has its own cache, so that a lookup takes no lock and a
// primitive, with its memory objects, is used by one thread; oneDNN shares the generated code
// between them.
#pragma once

#include "op/onednn/primitive.h"

// The primitive for a problem, made at the first call, valid until the thread's next call.
// Failures: CHOIR_UNSUPPORTED (remembered, no text), CHOIR_NO_MEMORY, CHOIR_INTERNAL.
choir_status chi_dnn_find(const chi_dnn_problem *problem, chi_dnn **out);

enum { CHI_DNN_CACHE = 256 }; // most primitives a thread keeps
// For tests: primitives in the calling thread's cache, and forgetting them.
size_t chi_dnn_cached(void);
void chi_dnn_forget(void);
