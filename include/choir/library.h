// The library itself: its version, its optional parts, its instruction set, and its log
// messages. Choir prints nothing, never exits and installs no signal handler. Messages that are
// not failures go to a function of the program, or nowhere if the program has set none.
#pragma once

#include "status.h"

CHOIR_C_BEGIN

// The version of these headers: major * 10000 + minor * 100 + patch; 100 is 0.1.0. A program
// works with every later library of the same soname. The soname changes with the major version.
#define CHOIR_VERSION 100

// CHOIR_VERSION of the library that the program runs with. Threads: any.
int choir_version(void);

// Whether this build has an optional part: "onednn" (kernels for the CPU), "zlib" (compressed
// data files), "hdf5" (HDF5 files), "mpi", "cuda". False for other names and for NULL. Threads:
// any.
bool choir_has(const char *feature);

// The instruction set of the kernels in use: "x86-64 avx512", "x86-64 avx2", "x86-64", "aarch64"
// or "other". Machines with the same instruction set give the same bits. It is the processor's,
// or a lower one if that was requested before the first operation: by the environment variable
// CHOIR_INSTRUCTION_SET ("avx512", "avx2" or "x86-64"), or by a cluster's
// lowest_instruction_set. Constant text. Threads: any.
const char *choir_instruction_set(void);

// The importance of a message. Each level includes the levels above it.
typedef enum { CHOIR_LOG_WARNING = 1, CHOIR_LOG_INFO, CHOIR_LOG_DEBUG } choir_log_level;

// Takes one message: one line without a line end, valid only during the call. It is called from
// any thread, on several threads at once, and never while Choir holds a lock. It may call Choir;
// messages that such a call would log on the same thread are dropped.
typedef void choir_log_fn(choir_log_level level, const char *line, void *user);

// Sets the function that gets the messages of level max and above, with user, which is borrowed.
// fn NULL: messages are dropped, which is the default. Threads: any; the previous function may
// still be running on other threads when this returns.
void choir_log_set(choir_log_level max, choir_log_fn *fn, void *user);

CHOIR_C_END
