// libchoir-cuda, which has the devices of the kind "gpu".
#pragma once

#include "choir/extend/cuda.h"

// The first call registers its device. NULL: no GPU, or no such library (chi_cuda_missing says
// why). Threads: any; a caller holds no mutex.
const choir_cuda_plugin *chi_cuda_open(void);

// NULL: chi_cuda_open has not been called, or has returned NULL.
const choir_cuda_plugin *chi_cuda_plugin(void);

const char *chi_cuda_missing(void);

// After chi_cuda_open: a library that was named or found, but has no GPU, is a warning once.
void chi_cuda_warn(void);
