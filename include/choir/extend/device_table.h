// The table of a kind of device: its memory and its streams. The host may have no access to the
// memory, and work may be queued when a call returns. A stream is a queue: its tasks run in order.
// Tasks of two streams have an order only after wait_event or wait.
//
// Rules of all tables: extend.h. If a slot is NULL, its calls fail with CHOIR_UNSUPPORTED, or do
// nothing if the slot returns void. Without count, the kind has no devices. Without allocate, its
// devices have no memory. Choir allocates self_size bytes (self) for each device and stream_size
// bytes (stream) for each stream, both zeroed. If a slot fails, Choir adds the device's name to
// the text.
//
// Threads: for each device or stream, slots not marked (any) are called from one thread at a time,
// not always the same thread. Choir may hold a lock during a call, so choir_fail is the only
// function of Choir that a slot may call.
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
	// Returns the number of devices. Called once, by choir_register_device. CHOIR_NONE: the number
	// is not fixed, and a device of any index can be opened.
	int (*count)(void);
	// Opens the device with this index, when its name is first looked up. If open fails, Choir
	// calls close, and the next look-up calls open again. An open device is never closed.
	choir_status (*open)(void *self, int index);
	void (*close)(void *self);
	// (any) Sets the fields for cores and memory of *info. Choir has set kind and index, and the
	// other fields to zero.
	void (*describe)(const void *self, choir_device_info *info);
	// (any) Sets *memory to memory that is aligned to 64 bytes and not initialised.
	// CHOIR_NO_MEMORY needs no text.
	choir_status (*allocate)(void *self, size_t bytes, void **memory);
	// (any) Frees memory. No queued task uses it.
	void (*release)(void *self, void *memory, size_t bytes);
	// If stream_open fails, stream_close is not called.
	choir_status (*stream_open)(void *self, void *stream);
	void (*stream_close)(void *stream); // waits for the queued tasks
	// Queues a copy to or from the host, within a device, or between devices of the kind. bytes
	// may be 0. Choir does not change the host memory of a copy before it has waited for the
	// stream.
	choir_status (*copy)(void *stream, void *to, const void *from, size_t bytes);
	choir_status (*fill)(void *stream, void *to, int byte, size_t bytes); // queues a memset
	// Records the present end of the queue as an event, whose number is *mark. The numbers of a
	// stream never decrease.
	choir_status (*record_event)(void *stream, uint64_t *mark);
	// Makes later tasks of stream start only after other_stream, of any device of the kind, has
	// reached the event mark. Does not block. If other_stream fails, stream fails too.
	choir_status (*wait_event)(void *stream, void *other_stream, uint64_t mark);
	// (any) Blocks until the stream has reached the event mark. CHOIR_TIMEOUT: the time limit, in
	// seconds, is over; a negative limit means none. If a task before the event fails, wait
	// returns the first such failure once, with its text. Tasks queued after the failed task do
	// not run.
	choir_status (*wait)(void *stream, uint64_t mark, double seconds);
	// Other names of the kind, separated by commas, at most 63 characters in all: with the alias
	// "cuda" of "gpu", "cuda:0" means "gpu:0". NULL: none.
	const char *aliases;
	bool immediate; // all work is done when a call returns, so streams are always empty
	// If a strategy names no devices, it uses all devices of such kinds, or CPUs if there is none.
	bool accelerator;
	// (any) Sets *memory to "pinned" host memory, aligned to 64 bytes and not initialised. Copies
	// between it and all devices of the kind are fastest.
	choir_status (*host_allocate)(void *self, size_t bytes, void **memory);
	void (*host_release)(void *self, void *memory, size_t bytes); // (any)
	// True: when the slot copy returns, it has read the host's memory, which may then change.
	bool copies_at_once;
} choir_device_table;

// Registers a kind of devices, and calls count. CHOIR_INVALID also: an invalid kind, alias or
// count. Threads: any.
CHOIR_MUST_CHECK choir_status choir_register_device(const choir_device_table *table);

// The self of d's table, for kernels and cross-device operations of the same library. Threads:
// any.
void *choir_device_self(const choir_device *d);

CHOIR_C_END
