// Memory with a reference count, foreign or of a device's pool, which outlives all strategies. A
// reference may be released only after the work queued with it is done, because any stream may get
// the memory next. Threads: any.
#pragma once

#include "base/atomic.h"
#include "device/device.h"

typedef struct chi_buffer {
	chi_atomic32 references;
	choir_device *device;
	void *memory; // a pool's is aligned to 64 bytes
	size_t bytes;
	bool foreign;
	// At the last release; may be NULL.
	void (*release)(void *user);
	void *user;
	struct chi_pool *pool;
	struct chi_buffer *next;
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

void chi_buffer_trim(void);
// In size classes: up to an eighth more than requested.
size_t chi_buffer_in_use(const choir_device *d);
size_t chi_buffer_peak(const choir_device *d);
void chi_buffer_reset_peak(const choir_device *d);
