// Counted memory. A buffer belongs to a device's pool, which keeps freed memory for the next
// buffer of about its size and outlives every strategy; or it wraps memory of somebody else, with
// the function that gives it back. Whoever releases a reference has waited for the work that it
// queued on the memory: then the last release may hand it to any stream. (Frames wait when they
// are emptied; chi_tensor_drop keeps memory in the frame where it cannot know.) Threads: any.
#pragma once

#include "base/atomic.h"
#include "device/device.h"

typedef struct chi_buffer {
	chi_atomic32 references;
	choir_device *device;
	void *memory; // on the device, 64-byte aligned if from the pool
	size_t bytes; // from the pool: of the size class, at least what was asked for
	bool foreign; // somebody else's memory
	void (*release)(void *user); // foreign memory: called once, by the last release; may be NULL
	void *user;
	struct chi_pool *pool; // whose header, and memory unless foreign, it is
	struct chi_buffer *next; // in the pool's or the frame's list of free buffers
} chi_buffer;

chi_buffer *chi_buffer_new(choir_device *d, size_t bytes); // one reference; not zeroed
// Takes memory that is somebody else's. release may be NULL. On failure release is not called.
chi_buffer *chi_buffer_wrap(
		choir_device *d, void *memory, size_t bytes, void (*release)(void *user), void *user);
void chi_buffer_retain(chi_buffer *b);
void chi_buffer_release(chi_buffer *b); // NULL is fine
// A list of buffers of which the caller has the only reference each, to be released together.
void chi_buffer_list_add(chi_buffer **list, chi_buffer *b);
void chi_buffer_release_all(chi_buffer **list);
// True if b is of the size class that a buffer of bytes would have.
bool chi_buffer_fits(const chi_buffer *b, size_t bytes);

// Frees what the pools keep (all devices), for leak checks and memory reports.
void chi_buffer_trim(void);
// Bytes of d's pool (of whole size classes, at most an eighth more than was asked for): in use
// now, and the most there were since chi_buffer_reset_peak.
size_t chi_buffer_in_use(const choir_device *d);
size_t chi_buffer_peak(const choir_device *d);
void chi_buffer_reset_peak(const choir_device *d);
