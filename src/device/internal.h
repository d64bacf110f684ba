// What the files of this room share: missing slots, messages that name the device, the memory of
// the far device.
#pragma once

#include "device/device.h"

// Puts slots that fail (or do nothing, where a slot cannot fail) in place of those that are NULL.
void chi_device_fill_slots(choir_device_table *table);

// Makes sure that a failure of a slot has a text that names the device: tables may be somebody
// else's code, which forgets to leave one. Returns status.
choir_status chi_device_failed(const choir_device *d, const char *slot, choir_status status);

// Host memory of a queued copy (late.c). chi_stage_new: NULL after a failure.
struct chi_stage {
	struct chi_stage *next; // of those that were left
	const void *state; // of the stream that they were left to
	_Alignas(64) char memory[];
};
chi_stage *chi_stage_new(size_t bytes);
void chi_stage_free(chi_stage *stage); // NULL is fine
// The caller has given up waiting for s, which may still use stage (NULL: there was no memory for
// one: then the device stays late). From now on the stream's.
void chi_stream_leave(chi_stream *s, chi_stage *stage);
// All that was queued on s is done: what was left to it is freed.
void chi_stream_caught_up(chi_stream *s);

// The one memory of all far devices, see far_memory.c. open may be called again and again.
choir_status chi_far_memory_open(void);
choir_status chi_far_memory_allocate(size_t bytes, void **memory);
void chi_far_memory_release(void *memory);
// Bytes that could be handed out at all, and those that still can.
void chi_far_memory_describe(uint64_t *total, uint64_t *available);
