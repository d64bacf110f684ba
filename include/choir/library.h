// The library as a guest in a program: which one it is, what it was built with, and where its few
// remarks go. It prints nothing, ends nothing and handles no signal; what it has to say besides
// failures goes to a function of the program's, and nowhere if there is none.
#pragma once

#include "status.h"

CHOIR_C_BEGIN

// The version of these headers: major * 10000 + minor * 100 + patch; 100 is 0.1.0. Programs work
// with every later library of the same soname, which changes with the major version.
#define CHOIR_VERSION 100

// CHOIR_VERSION of the library that the program runs with. Threads: any.
int choir_version(void);

// Whether this build of the library has an optional part: "onednn" (kernels for the CPU), "zlib"
// (compressed data files), "hdf5" (HDF5 files), "mpi", "cuda". False for other names and for NULL.
// Threads: any.
bool choir_has(const char *feature);

// The instruction set whose kernels run here: "x86-64 avx512", "x86-64 avx2", "x86-64", "aarch64"
// or "other". Same bits are promised within one of them. It is the processor's, or a lower one
// that the environment's CHOIR_INSTRUCTION_SET ("avx512", "avx2" or "x86-64") or the workers of a
// cluster (lowest_instruction_set) ask for before the first operation. Constant text. Threads:
// any.
const char *choir_instruction_set(void);

// How much a message matters; each level includes those above it.
typedef enum { CHOIR_LOG_WARNING = 1, CHOIR_LOG_INFO, CHOIR_LOG_DEBUG } choir_log_level;

// Takes one message: one line without a line end, which is gone after the call. Called on whatever
// thread has something to say, on several at once, and with no lock of Choir's held. It may call
// Choir; what is logged meanwhile on the same thread is dropped.
typedef void choir_log_fn(choir_log_level level, const char *line, void *user);

// From now on fn gets the messages up to level most, with user; fn NULL (as at the start): nobody
// does. user is borrowed. Threads: any; the function that was set before may still be running on
// other threads when this returns.
void choir_log_set(choir_log_level max, choir_log_fn *fn, void *user);

CHOIR_C_END
