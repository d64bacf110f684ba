// What the files of this room share: missing slots, messages that name the device, the memory of
// the far device.
#pragma once

#include "device/device.h"

// Puts slots that fail (or do nothing, where a slot cannot fail) in place of those that are NULL.
void chi_device_fill_stubs(choir_device_table *table);

// Makes sure that a failure of a slot has a text that names the device: tables may be somebody
// else's code, which forgets to leave one. Returns status.
choir_status chi_device_failed(const choir_device *d, const char *slot, choir_status status);

// Host memory of a queued copy (quarantine.c). chi_staging_buffer_new: NULL after a failure.
struct chi_staging_buffer {
	struct chi_staging_buffer *next; // of those that were left
	const void *state; // of the stream that they were left to
	uint64_t event; // of that stream: nothing queued after it uses the memory
	bool abandoned; // left by a thread that gave up waiting
	_Alignas(64) char memory[];
};
chi_staging_buffer *chi_staging_buffer_new(size_t bytes);
void chi_staging_buffer_free(chi_staging_buffer *staging); // NULL is fine
// The stage is the stream's from now on, which may use it until mark.
void chi_quarantine_keep(chi_stream *s, chi_staging_buffer *staging, uint64_t event);
// The same where the caller has given up waiting for s. Without a stage (NULL: there was no memory
// for one) the device stays late.
void chi_quarantine_abandon(chi_stream *s, chi_staging_buffer *staging, uint64_t event);
// s has come to mark: frees what was left to it up to there.
void chi_quarantine_release(chi_stream *s, uint64_t event);
// Later than any mark.
#define CHI_STREAM_CLOSED UINT64_MAX

// The one memory of all far devices, see far_memory.c. open may be called again and again.
choir_status chi_far_memory_open(void);
choir_status chi_far_memory_allocate(size_t bytes, void **memory);
void chi_far_memory_release(void *memory);
// Bytes that could be handed out at all, and those that still can.
void chi_far_memory_describe(uint64_t *total, uint64_t *available);
