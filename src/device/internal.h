// What the files of this room share: missing slots, messages that name the device, the memory of
// the far device.
#pragma once

#include "device/device.h"

// Puts slots that fail (or do nothing, where a slot cannot fail) in place of those that are NULL.
void chi_device_fill_slots(choir_device_table *table);

// Makes sure that a failure of a slot has a text that names the device: tables may be somebody
// else's code, which forgets to leave one. Returns status.
choir_status chi_device_failed(const choir_device *d, const char *slot, choir_status status);

// The one memory of all far devices, see far_memory.c. open may be called again and again.
choir_status chi_far_memory_open(void);
choir_status chi_far_memory_allocate(size_t bytes, void **memory);
void chi_far_memory_release(void *memory);
// Bytes that could be handed out at all, and those that still can.
void chi_far_memory_describe(uint64_t *total, uint64_t *available);
