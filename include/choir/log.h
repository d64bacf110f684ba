// The log: messages of the library that are not failures. They go to a function of the program,
// or nowhere if the program has set none.
#pragma once

#include "export.h"

CHOIR_C_BEGIN

// The importance of a message. Each level includes the levels above it.
typedef enum { CHOIR_LOG_WARNING = 1, CHOIR_LOG_INFO, CHOIR_LOG_DEBUG } choir_log_level;

// Takes one message: one line without a line end, valid only during the call. It is called from
// any thread, on several threads at once, and never while Choir holds a lock. It may call Choir;
// messages that such a call would log on the same thread are dropped.
typedef void choir_log_fn(choir_log_level level, const char *line, void *user);

// Sets the function that gets the messages of level max and above, with user, which is borrowed.
// fn NULL: messages are dropped, which is the default. Threads: any; the previous function may
// still be running on other threads when this returns.
void choir_logger_set(choir_log_level max, choir_log_fn *fn, void *user);

CHOIR_C_END
