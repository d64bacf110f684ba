// Pipes to other processes, and a thread that waits for descriptors.
#pragma once

#include "choir/status.h"

#include <stdbool.h>
#include <stddef.h>

// Close-on-exec. Reads of this end never block.
choir_status chi_pipe_open(int *read_end, int *write_end);
void chi_pipe_close(int *fd); // becomes -1, which does nothing
// *got is 0 and *ended false if there is nothing.
choir_status chi_pipe_read(int fd, void *to, size_t bytes, size_t *got, bool *ended);

// The pipe must have room.
choir_status chi_pipe_write(int fd, const void *from, size_t bytes);

typedef struct chi_watch chi_watch;
enum { CHI_WATCHED = 1024 };
chi_watch *chi_watch_new(void (*wake)(void *user), void *user);
void chi_watch_free(chi_watch *w);
// Skips negative ones. The thread calls wake once, when one is readable or has ended.
void chi_watch_set(chi_watch *w, const int fds[], int n);
