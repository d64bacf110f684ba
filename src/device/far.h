// The `far` device: asynchronous, with memory of its own that the host may not touch. Its memory
// is one shared mapping seen at two addresses: the one handed out has no access rights, so a host
// that touches it crashes; the device's own threads use the other. A stream is a thread with a
// queue and seeded delays. It exists so that no room can assume host memory or synchronous calls,
// or use one stream from two threads at once: all calls of such a stream then fail with
// CHOIR_INTERNAL, which names the two slots.
#pragma once

#include "choir/status.h"

#include <stddef.h>
#include <stdint.h>

// The address at which the device's threads see memory that was handed out; other addresses are
// given back as they are.
void *chi_far_inside(const void *memory);

// Queues fn on a stream of a far device (the table's: chi_stream.state). arg (bytes of it) is
// copied. The first failure is kept, with its text, for the next wait; tasks behind it do not run.
choir_status chi_far_submit(
		void *stream, choir_status (*fn)(void *arg), const void *arg, size_t bytes);

// The delays before each queued task: uniform in 0 .. most microseconds, and what the system adds
// to so short a sleep. most 0: none. Default: seed 1, most 20.
void chi_far_delays(uint64_t seed, unsigned max);
// How often the host has waited for streams of far devices, in this process.
uint64_t chi_far_waits(void);

// The one memory of all far devices, see far_memory.c. open may be called again and again.
choir_status chi_far_memory_open(void);
choir_status chi_far_memory_allocate(size_t bytes, void **memory);
void chi_far_memory_release(void *memory);
// Bytes that could be handed out at all, and those that still can.
void chi_far_memory_describe(uint64_t *total, uint64_t *available);
