// The log: messages that are not failures go to a function of the program.
#pragma once

#include "export.h"

CHOIR_C_BEGIN

// Levels in the order of decreasing severity.
typedef enum { CHOIR_LOG_WARNING = 1, CHOIR_LOG_INFO, CHOIR_LOG_DEBUG } choir_log_level;

// Gets one line, without a line end, valid only during the call. Several threads may call the
// function at once. It may call Choir, which then drops messages on this thread.
typedef void choir_log_fn(choir_log_level level, const char *line, void *user);

// Sets the function for messages of level max and more severe ones. NULL (the default) drops all.
// Threads: any. When this call returns, other threads may still be in the previous function.
void choir_logger_set(choir_log_level max, choir_log_fn *fn, void *user);

CHOIR_C_END
