// The device `far`, which no program can have but the tests that are linked with this folder: it
// is asynchronous, with memory of its own that the host may not touch. The memory is one shared
// mapping at two addresses: the one that is handed out has no access rights, so a host that
// touches it crashes; the device's own threads use the other. A stream is a thread with a queue
// and seeded delays. So no room can assume host memory or synchronous calls, or use one stream
// from two threads at once: all calls of such a stream then fail with CHOIR_INTERNAL, which names
// the two slots. Its kernels are the host's, queued.
#pragma once

#include "choir/extend/device_table.h"

// Registers the device and its kernels by the public tables. Called before main, except under a
// scheduler (tests/schedule), whose locks work later.
choir_status far_register(void);

// The address at which the device's threads see memory that was handed out; other addresses are
// returned as they are.
void *far_inside(const void *memory);

// Queues fn on a stream of a far device (the table's: chi_stream.state). arg (bytes of it) is
// copied. The first failure is kept, with its text, for the next wait; tasks behind it do not run.
choir_status far_submit(
		void *stream, choir_status (*fn)(void *arg), const void *arg, size_t bytes);

// The delays before each queued task: uniform in 0 .. max microseconds, plus what the system adds
// to so short a sleep. max 0: none. Default: seed 1, max 20.
void far_delays(uint64_t seed, unsigned max);
// How often the host has waited for streams of far devices, in this process.
uint64_t far_waits(void);

// For the files of this folder: the table, and the one memory of all far devices.
extern const choir_device_table far_table;
choir_status far_register_kernels(void);
choir_status far_memory_open(void); // may be called again
choir_status far_memory_allocate(size_t bytes, void **memory);
void far_memory_release(void *memory);
// Bytes that could be handed out in all, and those that still can.
void far_memory_describe(uint64_t *total, uint64_t *available);
