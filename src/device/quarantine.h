// Memory that a stream may still use after its caller stopped waiting.
#pragma once

#include "device/device.h"

enum { CHI_STAGING_BYTES = 1 << 20 }; // most that is copied through the host at once

// It belongs to a queued copy.
struct chi_staging_buffer {
	struct chi_staging_buffer *next;
	const void *state; // of the owning stream
	uint64_t event; // later work does not use it
	bool abandoned;
	choir_device *pinned; // whose memory it is and whose copies it serves; NULL: the host's
	size_t bytes; // if pinned, with this header
	_Alignas(64) char memory[];
};
// For copies of device d, pinned if the kind has any. Pinned buffers are kept, because pinning
// takes long.
chi_staging_buffer *chi_staging_buffer_new(choir_device *d, size_t bytes);
void chi_staging_buffer_free(chi_staging_buffer *staging);
// Keeps it until event.
void chi_quarantine_keep(chi_stream *s, chi_staging_buffer *staging, uint64_t event);
// After the caller stopped waiting, until event or, without a staging buffer (NULL: out of
// memory), for ever.
void chi_quarantine_abandon(chi_stream *s, chi_staging_buffer *staging, uint64_t event);
// Frees them up to event, which the stream has reached.
void chi_quarantine_release(chi_stream *s, uint64_t event);
// A value after all events: the stream is closed.
#define CHI_STREAM_CLOSED UINT64_MAX
