// Lines on their way to a slow reader. Another thread writes them, so that the supervisor goes on
// while a reader of its output pauses: agents take a silent supervisor for dead.
#pragma once

#include <choir/supervisor.h>

#include <stdbool.h>

// write: writes one line, on the thread of the queue. False: there is no thread, and
// line_queue_add writes.
bool line_queue_begin(choir_supervisor_fn *write);
void line_queue_add(choir_supervisor_kind kind, int worker, const char *line, void *user);
// Waits until all lines are written.
void line_queue_end(void);
