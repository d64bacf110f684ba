// The table of a kind of device: its memory and its streams. Choir uses a device only through
// these slots. The host may have no access to a device's memory, and work may be queued when a
// call returns. A stream is a queue: its tasks run in order. Only wait_event and wait order
// tasks of two streams.
//
// Rules of all tables: extend.h. A missing slot fails with CHOIR_UNSUPPORTED, or does nothing if
// it cannot fail. Without count, the kind has no devices. Without allocate, its devices have no
// memory. Choir allocates self for each device and stream_size bytes, zeroed, for each stream.
// It adds the device's name to the text of a failed slot.
//
// Threads: for each device or stream, slots not marked (any) are called from one thread at a
// time. This thread may change. Choir may hold a lock during a call, so choir_fail is the only
// function of Choir that a slot may call.
#pragma once

#include "../device.h"

CHOIR_C_BEGIN

// The functions of a kind of devices.
typedef struct choir_device_table {
	size_t size;
	uint32_t version;
	bool host_memory; // its devices use, and so share, the host's memory
	const char *kind; // "gpu"; 1 to 15 lower case letters
	size_t self_size, stream_size;
	// The number of devices, asked once, when the table is registered. CHOIR_NONE: any index is a
	// device.
	int (*count)(void);
	// Opens the device of an index, when the device's name is first looked up. If open fails,
	// Choir calls close to undo its work, and the next look-up calls open again. An open device
	// is never closed.
	choir_status (*open)(void *self, int index);
	void (*close)(void *self);
	// (any) Fills in cores and memory; kind and index are set already; other fields are zero.
	void (*describe)(const void *self, choir_device_info *info);
	// (any) Sets *memory to memory aligned to 64 bytes, not initialised. CHOIR_NO_MEMORY needs
	// no text.
	choir_status (*allocate)(void *self, size_t bytes, void **memory);
	// (any) Frees memory that no queued task uses.
	void (*release)(void *self, void *memory, size_t bytes);
	// If stream_open fails, stream_close is not called.
	choir_status (*stream_open)(void *self, void *stream);
	void (*stream_close)(void *stream); // waits for the queued tasks
	// Queues a copy to or from the host, within a device, or between devices of the kind. bytes
	// may be 0. Choir does not change that host memory until it has waited for the stream.
	choir_status (*copy)(void *stream, void *to, const void *from, size_t bytes);
	choir_status (*fill)(void *stream, void *to, int byte, size_t bytes); // queues a memset
	// Records the present end of the queue as an event: sets *mark to a number for wait and
	// wait_event. The numbers of a stream never decrease.
	choir_status (*record_event)(void *stream, uint64_t *mark);
	// Later tasks of stream start after other_stream, of any device of the kind, has reached the
	// event mark. Does not block. If other_stream fails, stream fails too.
	choir_status (*wait_event)(void *stream, void *other_stream, uint64_t mark);
	// (any) Blocks until the event is reached. CHOIR_TIMEOUT: the wait takes more than seconds
	// (negative: no limit). The first failure of a task before the event is returned here once,
	// with its text; tasks queued after the failed one do not run.
	choir_status (*wait)(void *stream, uint64_t mark, double seconds);
	// Other names of the kind, at most 63 characters, with commas: with "cuda", "cuda:0" means
	// "gpu:0". NULL: none.
	const char *aliases;
	bool immediate; // all work is done when a call returns: streams are always empty
	// A strategy that names no devices uses all devices of all kinds with accelerator, and CPUs
	// only if there is no such device.
	bool accelerator;
	// (any) Host memory that copies to and from the device are fastest with ("pinned"), aligned
	// to 64 bytes, not initialised. Choir falls back to other host memory without host_allocate,
	// and if it fails. Any device of the kind may copy from it.
	choir_status (*host_allocate)(void *self, size_t bytes, void **memory);
	void (*host_release)(void *self, void *memory, size_t bytes); // (any)
} choir_device_table;

// Registers a kind and calls count. CHOIR_INVALID also: an invalid kind, alias or count.
// CHOIR_UNSUPPORTED: 16 kinds are registered already. Threads: any.
CHOIR_MUST_CHECK choir_status choir_register_device(const choir_device_table *table);

// Returns the table's self of a device, for the kernels and the cross-device operations of the
// same library. Threads: any.
void *choir_device_self(const choir_device *d);

CHOIR_C_END
