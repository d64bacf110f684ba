// The library as a guest in a program.
#pragma once

#include "status.h"

CHOIR_C_BEGIN

#define CHOIR_VERSION 100 // 0.1.0

int choir_version(void);
bool choir_has(const char *feature); // "onednn", "mpi", "zlib", "cuda"

// Nothing is printed otherwise. Called from any thread, with no lock held, one line without newline.
typedef enum { CHOIR_LOG_WARNING = 1, CHOIR_LOG_INFO, CHOIR_LOG_DEBUG } choir_log_level;
typedef void choir_log_fn(choir_log_level level, const char *line, void *user);
void choir_log_set(choir_log_level most, choir_log_fn *fn, void *user);

CHOIR_C_END
