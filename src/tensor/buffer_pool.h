// Memory with a reference count, of a device's pool or foreign. A reference may be released only
// after its queued work is done: any stream may get the memory next. Threads: any.
#pragma once

#include "base/atomic.h"
#include "device/device.h"

typedef struct chi_buffer {
	chi_atomic32 references;
	choir_device *device;
	void *memory; // on the device; a pool's is aligned to 64 bytes
	size_t bytes; // a pool's: at least those of the size class
	bool foreign; // wrapped
	void (*release)(void *user); // of foreign memory; may be NULL
	void *user;
	struct chi_pool *pool;
	struct chi_buffer *next, *previous; // in lists
	struct chi_buffer *before, *after; // in the same memory of the device
	bool free;
} chi_buffer;

chi_buffer *chi_buffer_new(choir_device *d, size_t bytes); // one reference; not zeroed
// release is not called after a failure here.
chi_buffer *chi_buffer_wrap(
		choir_device *d, void *memory, size_t bytes, void (*release)(void *user), void *user);
void chi_buffer_retain(chi_buffer *b);
void chi_buffer_release(chi_buffer *b);
// The caller has the only reference to each.
void chi_buffer_list_add(chi_buffer **list, chi_buffer *b);
void chi_buffer_release_all(chi_buffer **list);
// True: chi_buffer_new would give a buffer of b's size.
bool chi_buffer_fits(const chi_buffer *b, size_t bytes);

// Frees the unused memory of all pools.
void chi_buffer_trim(void);
// And the peak since chi_buffer_reset_peak, with the unused rest of each buffer.
size_t chi_buffer_in_use(const choir_device *d);
size_t chi_buffer_peak(const choir_device *d);
void chi_buffer_reset_peak(const choir_device *d);
