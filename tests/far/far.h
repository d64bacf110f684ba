// The device `far`, for tests linked with this folder: an asynchronous device with memory that the
// host may not touch. Its memory is one shared mapping at two addresses. The address given to the
// host has no access rights, so a host that touches it crashes; the device's threads use the other
// one. A stream is a thread with a queue and delays from a seed. If two threads use a stream at
// once, all its calls fail with CHOIR_INTERNAL, which names both slots. Its kernels are the
// host's, queued.
#pragma once

#include "choir/extend/device_table.h"

// Registers the device and its kernels through the public tables. It is called before main, or
// later under a scheduler (tests/schedule), which has locks only then.
choir_status far_register(void);

// Returns the address at which the device's threads see this memory; any other address is returned
// unchanged.
void *far_inside(const void *memory);

// Queues fn, with a copy of arg, on a stream of a far device (chi_stream.state). The next wait
// returns the first failure with its text; tasks behind it in the queue do not run.
choir_status far_submit(
		void *stream, choir_status (*fn)(void *arg), const void *arg, size_t bytes);

// Sets the delay before each queued task: uniform in 0 .. max microseconds, plus the system's
// overhead. max 0: none. Default: seed 1, max 20.
void far_delays(uint64_t seed, unsigned max);
// Returns how often the host has waited for far streams, in this process.
uint64_t far_waits(void);

// For the files of this folder: the table, and the memory of all far devices.
extern const choir_device_table far_table;
choir_status far_register_kernels(void);
choir_status far_memory_open(void); // may be called again
choir_status far_memory_allocate(size_t bytes, void **memory);
void far_memory_release(void *memory);
// Returns the total and the available bytes.
void far_memory_describe(uint64_t *total, uint64_t *available);
