// The library's version, its optional parts and its instruction set. Choir installs no signal
// handler.
// Threads: any.
#pragma once

#include "log.h"
#include "status.h"

CHOIR_C_BEGIN

// The version of these headers: major * 10000 + minor * 100 + patch; 100 is 0.1.0. A program works
// with every later library of the same major version.
#define CHOIR_VERSION 100

// The version of the library that the program runs with.
int choir_version(void);

// Whether this build has a feature: "onednn" (kernels for the CPU), "zlib" (compressed data
// files), "hdf5", "png", "jpeg", "mpi" or "cuda".
bool choir_has_feature(const char *feature);

// The instruction set of the kernels in use: "x86-64 avx512", "x86-64 avx2", "x86-64", "aarch64"
// or "other". Machines with the same set compute the same bits. Default: the processor's highest.
// Before the first operation, the environment variable CHOIR_INSTRUCTION_SET ("avx512", "avx2",
// "x86-64") or a cluster's .lowest_instruction_set can lower it.
const char *choir_instruction_set(void);

CHOIR_C_END
