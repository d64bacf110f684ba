// The table of a kind of device: its memory and its streams. The host may have no access to the
// memory, and work may be queued when a call returns. A stream is a queue: its tasks run in order.
// Only the slots wait_event and wait order tasks of two streams.
//
// Rules of all tables: extend.h. Calls of a NULL slot fail with CHOIR_UNSUPPORTED, or do nothing
// if it returns void. Without count, the kind has no devices; without allocate, they have no
// memory. Choir allocates self for each device and, for each stream, stream: stream_size bytes,
// zeroed. If a slot fails, Choir adds the device's name to the text.
//
// Threads: for each device or stream, Choir calls slots not marked (any) from one thread at a
// time, not always the same one. It may hold a lock, so a slot may call only choir_fail of Choir.
#pragma once

#include "../device.h"

CHOIR_C_BEGIN

// A kind of devices.
typedef struct choir_device_table {
	size_t size;
	uint32_t version;
	bool host_memory; // its devices all use the host's memory
	const char *kind; // "gpu"; 1 to 15 lower case letters
	size_t self_size, stream_size;
	// Returns the number of devices. Called once, by choir_register_device. CHOIR_NONE: not fixed;
	// a device of any index may be opened.
	int (*count)(void);
	// Opens the device of this index at the first look-up of its name. After a failure Choir calls
	// close, and the next look-up opens again. Choir never closes an open device.
	choir_status (*open)(void *self, int index);
	void (*close)(void *self);
	// (any) Sets *info's fields for cores and memory, which are 0 before the call. Choir sets kind
	// and index.
	void (*describe)(const void *self, choir_device_info *info);
	// (any) Sets *memory to uninitialized memory, aligned to 64 bytes. CHOIR_NO_MEMORY needs no
	// text.
	choir_status (*allocate)(void *self, size_t bytes, void **memory);
	// (any) Frees memory. No queued task uses it.
	void (*release)(void *self, void *memory, size_t bytes);
	// If stream_open fails, stream_close is not called.
	choir_status (*stream_open)(void *self, void *stream);
	void (*stream_close)(void *stream); // waits for the queued tasks
	// Queues a copy to or from the host, within a device, or between devices of the kind. bytes
	// may be 0. Choir waits for the stream before it changes a copy's host memory.
	choir_status (*copy)(void *stream, void *to, const void *from, size_t bytes);
	choir_status (*fill)(void *stream, void *to, int byte, size_t bytes); // queues a memset
	// Records the present end of the queue as an event, whose number is *mark. A stream's numbers
	// never decrease.
	choir_status (*record_event)(void *stream, uint64_t *mark);
	// Makes stream's later tasks start after other_stream, of any device of the kind, has reached
	// the event mark. Does not block. other_stream's failure is stream's too.
	choir_status (*wait_event)(void *stream, void *other_stream, uint64_t mark);
	// (any) Blocks until the stream has reached the event mark. CHOIR_TIMEOUT: not within this
	// number of seconds (negative: no limit). If a task before the event fails, wait returns the
	// first such failure once, with its text. Tasks queued after the failed task do not run.
	choir_status (*wait)(void *stream, uint64_t mark, double seconds);
	// Other names of the kind, separated by commas, at most 63 characters in all. With the alias
	// "cuda" of "gpu", "cuda:0" means "gpu:0". NULL: none.
	const char *aliases;
	bool immediate; // all work is done when a call returns, so streams are always empty
	// A strategy that names no devices uses all devices of such kinds, else CPUs.
	bool accelerator;
	// (any) Sets *memory to uninitialized "pinned" host memory, aligned to 64 bytes, for the
	// fastest copies to and from all devices of the kind.
	choir_status (*host_allocate)(void *self, size_t bytes, void **memory);
	void (*host_release)(void *self, void *memory, size_t bytes); // (any)
	// When the slot copy returns, it has already read the host's memory.
	bool copies_at_once;
} choir_device_table;

// Registers a kind of devices, and calls count. Threads: any.
CHOIR_MUST_CHECK choir_status choir_register_device(const choir_device_table *table);

// The self of d's table, for kernels and cross-device operations of the same library. Threads:
// any.
void *choir_device_self(const choir_device *d);

CHOIR_C_END
