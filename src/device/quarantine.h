// Memory that a stream may still use after its caller has stopped waiting (quarantine.c).
#pragma once

#include "device/device.h"

// Host memory of a queued copy.
struct chi_staging_buffer {
	struct chi_staging_buffer *next; // in the list of its device
	const void *state; // of the stream that it was left to
	uint64_t event; // of that stream: nothing queued after it uses the memory
	bool abandoned; // left by a thread that gave up waiting
	_Alignas(64) char memory[];
};
chi_staging_buffer *chi_staging_buffer_new(size_t bytes); // NULL after a failure
void chi_staging_buffer_free(chi_staging_buffer *staging); // NULL is fine
// Leaves the buffer to s, which may use it until event.
void chi_quarantine_keep(chi_stream *s, chi_staging_buffer *staging, uint64_t event);
// The same after the caller has given up waiting for s: the device is quarantined until s has come
// to event, or, without a buffer (NULL: there was no memory for one), for ever.
void chi_quarantine_abandon(chi_stream *s, chi_staging_buffer *staging, uint64_t event);
// s has come to event: frees the buffers that were left to it up to there.
void chi_quarantine_release(chi_stream *s, uint64_t event);
// Later than any event.
#define CHI_STREAM_CLOSED UINT64_MAX
