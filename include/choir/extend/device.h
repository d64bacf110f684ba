// The table of a kind of device: its memory and its streams, for hardware of one's own. Everything
// above goes through these slots, and assumes neither that the host may touch a device's memory
// nor that work is done when a call returns. A stream is a queue: what is queued on it happens in
// that order; streams of a device have no order between them but by wait_for and wait.
//
// Choir fills what is missing (NULL) with slots that fail with CHOIR_UNSUPPORTED, or do nothing
// where a slot cannot fail; without count there are no devices, without allocate no memory. The
// core allocates self (self_size bytes, zeroed) for each device, and stream_size bytes, zeroed,
// for each stream. A slot that fails leaves a text by choir_fail; Choir puts the device's name in
// front, and makes a text where there is none. Threads: slots marked (any) are called from any
// thread, several at the same time, the others from one thread at a time for a device or stream,
// but not always the same one. Choir may hold a lock meanwhile: a slot calls nothing of Choir but
// choir_fail.
#pragma once

#include "../device.h"

CHOIR_C_BEGIN

typedef struct choir_device_table {
	size_t size; // of this struct
	uint32_t version; // CHOIR_TABLE_VERSION
	bool host_memory; // may the host touch the memory of its devices? Then they all share it
	const char *kind; // "cuda"; 1 to 15 lower case letters
	size_t self_size, stream_size; // bytes
	// Devices of this kind that exist; asked once, when registered. CHOIR_NONE: as many as named.
	int (*count)(void);
	// Makes the device of an index ready, when its name is first asked for. Devices are never
	// closed; close comes only after an open that failed, to take back what it did. A later find
	// tries again.
	choir_status (*open)(void *self, int index);
	void (*close)(void *self);
	// (any) Fills in cores and memory; kind and index are there, the rest is zero.
	void (*describe)(const void *self, choir_device_info *info);
	// (any) Memory aligned to 64 bytes, not initialised, as *memory. CHOIR_NO_MEMORY needs no
	// text.
	choir_status (*allocate)(void *self, size_t bytes, void **memory);
	// (any) Gives it back; nothing that is queued uses it any more.
	void (*release)(void *self, void *memory, size_t bytes);
	// After a failure stream_close does not come.
	choir_status (*stream_open)(void *self, void *stream);
	void (*stream_close)(void *stream); // waits for what is queued
	// Queued: bytes (0 is fine) to and from the host, within a device and between devices of the
	// kind. Host memory stays as it is until the stream has been waited for.
	choir_status (*copy)(void *stream, void *to, const void *from, size_t bytes);
	choir_status (*fill)(void *stream, void *to, int byte, size_t bytes); // queued, as memset
	// The present end of the queue as a number, for wait and wait_for. A stream's later marks are
	// not smaller.
	choir_status (*mark)(void *stream, uint64_t *mark);
	// Queued, not awaited: what comes after it starts when the other stream, of any device of the
	// kind, has come to its mark. A failure of the other stream is one of this stream, too.
	choir_status (*wait_for)(void *stream, void *other_stream, uint64_t mark);
	// (any) Until the mark is reached, at most so many seconds (negative: for ever), then
	// CHOIR_TIMEOUT. The first failure of what was queued before it is returned here, once, with
	// its text; what was queued behind that failure is not done.
	choir_status (*wait)(void *stream, uint64_t mark, double seconds);
} choir_device_table;

// Makes a kind known to choir_device_find. The table and its kind are copied, and count is called.
// CHOIR_INVALID: a size, version, kind or count that cannot be, or a kind that is known already;
// CHOIR_UNSUPPORTED: there are 16 kinds already. Threads: any, before the kind's devices are used.
CHOIR_MUST_CHECK choir_status choir_register_device(const choir_device_table *table);

CHOIR_C_END
