// Memory that a stream may still use after its caller stopped waiting.
#pragma once

#include "device/device.h"

enum { CHI_STAGING_BYTES = 1 << 20 }; // of one copy through the host

struct chi_staging_buffer {
	struct chi_staging_buffer *next;
	const void *state;
	uint64_t event; // later work does not use it
	bool abandoned;
	choir_device *pinned; // owns the memory; or NULL
	size_t bytes;
	_Alignas(64) char memory[];
};
// Pinned if possible, and then kept, because pinning takes long.
chi_staging_buffer *chi_staging_buffer_new(choir_device *d, size_t bytes);
void chi_staging_buffer_free(chi_staging_buffer *staging);
void chi_quarantine_keep(chi_stream *s, chi_staging_buffer *staging, uint64_t event);
// Until event or, without a staging buffer, for ever.
void chi_quarantine_abandon(chi_stream *s, chi_staging_buffer *staging, uint64_t event);
// Up to event, which the stream has reached.
void chi_quarantine_release(chi_stream *s, uint64_t event);
// After all events: the stream is closed.
#define CHI_STREAM_CLOSED UINT64_MAX
