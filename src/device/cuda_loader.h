// libchoir-cuda, with the devices "gpu".
#pragma once

#include "choir/extend/cuda.h"

// The first call registers its device. NULL: chi_cuda_missing says why. Threads: any; a caller
// holds no mutex.
const choir_cuda_plugin *chi_cuda_open(void);

// NULL until chi_cuda_open succeeds.
const choir_cuda_plugin *chi_cuda_plugin(void);

const char *chi_cuda_missing(void);

// After chi_cuda_open. Warns once about a library without a GPU.
void chi_cuda_warn(void);
