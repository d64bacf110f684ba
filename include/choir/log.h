// The log: messages of the library that are not failures, for a function of the program.
#pragma once

#include "export.h"

CHOIR_C_BEGIN

// The messages of a level are less severe than those of the level before.
typedef enum { CHOIR_LOG_WARNING = 1, CHOIR_LOG_INFO, CHOIR_LOG_DEBUG } choir_log_level;

// Gets one line without a line end, valid only during the call. It is called on any thread, on
// several at once, but never while Choir holds a lock. It may call Choir; messages that such a
// call would log on the same thread are dropped.
typedef void choir_log_fn(choir_log_level level, const char *line, void *user);

// Sets the function that gets the messages of level max and of more severe levels. If fn is NULL,
// the default, messages are dropped. Threads: any; the previous function may still be running on
// other threads when this returns.
void choir_logger_set(choir_log_level max, choir_log_fn *fn, void *user);

CHOIR_C_END
