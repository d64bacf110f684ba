// The table of a kind of device: its memory and its streams. Choir fills what is missing (NULL)
// with slots that fail with CHOIR_UNSUPPORTED. The core allocates self (self_size bytes, zeroed)
// for each device and stream_size bytes for each stream; close comes once, also after a failed
// open. Slots are called with no lock held and in order for one stream; (any): from any thread,
// at the same time.
#pragma once

#include "../device.h"

CHOIR_C_BEGIN

#define CHOIR_TABLE_VERSION 1

typedef struct choir_device_table {
	size_t size;
	uint32_t version;
	bool host_memory; // may the host touch the memory of its devices?
	const char *kind; // "cuda"; lower case letters
	size_t self_size, stream_size;
	// Devices of this kind that exist; asked once, when registered. CHOIR_NONE: as many as named.
	int (*count)(void);
	choir_status (*open)(void *self, int index);
	void (*close)(void *self);
	void (*describe)(const void *self, choir_device_info *info);
	choir_status (*allocate)(void *self, size_t bytes, void **memory); // (any) 64-byte aligned
	void (*release)(void *self, void *memory, size_t bytes); // (any)
	choir_status (*stream_open)(void *self, void *stream); // failed: stream_close does not come
	void (*stream_close)(void *stream); // waits for what is queued
	// Queued in order. copy is also to and from the host and between devices of the kind; host
	// memory must stay as it is until the stream has been waited for.
	choir_status (*copy)(void *stream, void *to, const void *from, size_t bytes);
	choir_status (*fill)(void *stream, void *to, int byte, size_t bytes);
	choir_status (*mark)(void *stream, uint64_t *mark); // a point in the queue
	// Queued, not awaited: what comes after it starts when the other stream has come to its mark.
	// A failure of the other stream is one of this stream too.
	choir_status (*wait_for)(void *stream, void *other_stream, uint64_t mark);
	// (any) Until the point is reached, at most so many seconds (negative: for ever):
	// CHOIR_TIMEOUT. The first failure of what was queued before it is returned here, once; what
	// was queued behind that failure is not done.
	choir_status (*wait)(void *stream, uint64_t mark, double seconds);
	// (any) Drops what is queued on all streams of self; waits return CHOIR_CANCELLED until the
	// stream's next mark, and not before what was running is over (or their time is).
	void (*abort)(void *self);
} choir_device_table;

// Copies the table; before the first use of a device, from one thread. CHOIR_INVALID: a bad size,
// version or kind, or a kind that is known already.
choir_status choir_register_device(const choir_device_table *table);

CHOIR_C_END
