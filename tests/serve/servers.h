// Servers of devices for tests, at Unix sockets in a folder of their own.
#pragma once

#include "choir/serve.h"
#include "device/device.h"

#include <sys/types.h>

enum { SERVERS = 2 };

// Starts two servers with cpu:0 and cpu:1 as threads of this process, once.
void servers_start(void);
// "remote:unix:..../cpu:1"; valid until the program ends.
const char *servers_device(int server, int device);
// Two names with a comma.
const char *servers_pair(int server, int device, int other_server, int other_device);
void servers_stop(void);
chi_stream *servers_stream(const char *device);
// Allocated in the server, not in the program's pool.
void *servers_allocate(const chi_stream *s, size_t bytes);

// A server as a process, to be killed. address: valid until the next call.
pid_t servers_fork(const char **address, uint64_t memory);
// The n-th allocation after it listens fails.
pid_t servers_fork_failing(const char **address, uint64_t n);
// It listens only after this function has returned.
pid_t servers_fork_late(const char **address);
