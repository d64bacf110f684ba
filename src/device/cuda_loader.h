// libchoir-cuda, which has the devices of the kind "gpu".
#pragma once

#include "choir/extend/cuda.h"

// At the first call; registers its device. NULL: there is no GPU, or no such library
// (chi_cuda_missing). Threads: any; a caller holds no mutex.
const choir_cuda_plugin *chi_cuda_open(void);

// NULL: chi_cuda_open has not been called, or has returned NULL.
const choir_cuda_plugin *chi_cuda_plugin(void);

// Why chi_cuda_open has returned NULL.
const char *chi_cuda_missing(void);
