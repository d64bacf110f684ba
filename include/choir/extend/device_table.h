// The table of a kind of device: its memory and its streams. Choir uses a device only through
// these slots. It assumes neither that the host can access a device's memory, nor that work is
// done when a call returns. A stream is a queue: its tasks run in order. Tasks of two streams
// have no order except by wait_event and wait.
//
// Rules of all tables: extend.h. Missing slots fail with CHOIR_UNSUPPORTED, or do nothing if they
// cannot fail. Without count there are no devices, without allocate there is no memory. Choir
// allocates self for each device and stream_size bytes, zeroed, for each stream. It adds the
// device's name to the text of a failed slot.
//
// Threads: slots not marked (any) are called from one thread at a time for each device or
// stream, not always the same thread. Choir may hold a lock during a call, so a slot must call
// nothing of Choir but choir_fail.
#pragma once

#include "../device.h"

CHOIR_C_BEGIN

typedef struct choir_device_table {
	size_t size;
	uint32_t version;
	bool host_memory; // its devices use the host's memory, so they share it
	const char *kind; // "cuda"; 1 to 15 lower case letters
	size_t self_size, stream_size;
	// The number of devices, asked once, when the table is registered. CHOIR_NONE: any index is a
	// device.
	int (*count)(void);
	// Opens the device of an index, when the device's name is first looked up. An open device is
	// never closed. close is called only after a failed open, to undo its work; the next look-up
	// tries again.
	choir_status (*open)(void *self, int index);
	void (*close)(void *self);
	// (any) Fills in cores and memory; kind and index are set already, the rest is zero.
	void (*describe)(const void *self, choir_device_info *info);
	// (any) Gives memory aligned to 64 bytes, not initialised. CHOIR_NO_MEMORY needs no text.
	choir_status (*allocate)(void *self, size_t bytes, void **memory);
	// (any) Frees memory that no queued task uses.
	void (*release)(void *self, void *memory, size_t bytes);
	// If stream_open fails, stream_close is not called.
	choir_status (*stream_open)(void *self, void *stream);
	void (*stream_close)(void *stream); // waits for the queued tasks
	// Queues a copy to or from the host, within a device, or between devices of the kind. bytes
	// may be 0. Choir does not change host memory until it has waited for the stream.
	choir_status (*copy)(void *stream, void *to, const void *from, size_t bytes);
	choir_status (*fill)(void *stream, void *to, int byte, size_t bytes); // queues a memset
	// Records the present end of the queue as an event, a number for wait and wait_event. Later
	// numbers of a stream are not smaller.
	choir_status (*record_event)(void *stream, uint64_t *mark);
	// Later tasks of stream start after other_stream, of any device of the kind, has reached the
	// event mark. Does not block. If other_stream fails, stream fails too.
	choir_status (*wait_event)(void *stream, void *other_stream, uint64_t mark);
	// (any) Blocks until the event is reached. CHOIR_TIMEOUT: that takes more than seconds
	// (negative: no limit). The first failure of a task before the event is returned here once,
	// with its text; tasks queued after the failed one do not run.
	choir_status (*wait)(void *stream, uint64_t mark, double seconds);
} choir_device_table;

// Registers a kind and calls count. CHOIR_INVALID also: an invalid kind or count.
// CHOIR_UNSUPPORTED: there are 16 kinds already. Threads: any.
CHOIR_MUST_CHECK choir_status choir_register_device(const choir_device_table *table);

CHOIR_C_END
