// Memory with a reference count, of a device's pool, which reuses freed memory and outlives all
// strategies, or foreign. A reference may be released only after the work queued with it is done,
// because any stream may get the memory next. Frames wait before they are emptied; see
// chi_tensor_drop. Threads: any.
#pragma once

#include "base/atomic.h"
#include "device/device.h"

typedef struct chi_buffer {
	chi_atomic32 references;
	choir_device *device;
	void *memory; // on the device; a pool's is aligned to 64 bytes
	size_t bytes; // a pool's: of the size class
	bool foreign; // wrapped
	// At foreign memory's last release; may be NULL.
	void (*release)(void *user);
	void *user;
	struct chi_pool *pool;
	struct chi_buffer *next; // in free lists
} chi_buffer;

chi_buffer *chi_buffer_new(choir_device *d, size_t bytes); // one reference; not zeroed
// release may be NULL; it is not called after a failure here.
chi_buffer *chi_buffer_wrap(
		choir_device *d, void *memory, size_t bytes, void (*release)(void *user), void *user);
void chi_buffer_retain(chi_buffer *b);
void chi_buffer_release(chi_buffer *b);
// They are released together. The caller has the only reference to each.
void chi_buffer_list_add(chi_buffer **list, chi_buffer *b);
void chi_buffer_release_all(chi_buffer **list);
// The size class for bytes.
bool chi_buffer_fits(const chi_buffer *b, size_t bytes);

// Unused memory of all pools.
void chi_buffer_trim(void);
// And the peak since chi_buffer_reset_peak. Size classes count: up to an eighth more than
// requested.
size_t chi_buffer_in_use(const choir_device *d);
size_t chi_buffer_peak(const choir_device *d);
void chi_buffer_reset_peak(const choir_device *d);
