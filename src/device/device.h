// Devices and streams. All memory is accessed through these calls, even the host's. Threads: any.
// One thread at a time uses a stream; any may wait for it.
#pragma once

#include "base/atomic.h"
#include "choir/extend/device_table.h"

typedef struct chi_staging_buffer chi_staging_buffer;

struct choir_device {
	char name[160];
	int index;
	bool host_memory;
	const choir_device_table *table;
	void *self;
	chi_atomic32 abandoned_waits; // whose streams may still run
	chi_atomic32 staging_buffers;
	// A bool (const choir_device *), which releases the pool's unused memory. False: none. 0: no
	// pool.
	chi_atomic64 release_unused;
	chi_staging_buffer *quarantine;
	chi_staging_buffer *pinned;
	int pinned_buffers;
};

typedef struct chi_stream {
	choir_device *device;
	void *state;
} chi_stream;

// The names of choir_device_find. False: malformed.
bool chi_device_parse(const char *name, char kind[16], int *index);

// Comma-separated. *count is 0 after a failure. CHOIR_INVALID: no, empty, repeated or too many
// names.
choir_status chi_device_list(const char *names, int capacity, choir_device *devices[], int *count);

choir_status chi_device_list_accelerators(int capacity, choir_device *devices[], int *count);

// Equal devices, or both use host memory.
bool chi_device_shares(const choir_device *a, const choir_device *b);

// An abandoned stream may still use d's memory, so it must not be reused.
static inline bool chi_device_is_quarantined(const choir_device *d)
{
	return chi_atomic32_load(&d->abandoned_waits) != 0;
}

// Adds a text, unless the table did. Returns status.
choir_status chi_device_failed(const choir_device *d, const char *slot, choir_status status);

choir_status chi_device_allocate(choir_device *d, size_t bytes, void **memory);
void chi_device_release(choir_device *d, void *memory, size_t bytes);

// Pinned memory. NULL: the kind has none, or no more; the thread's last error does not change.
void *chi_device_host_allocate(choir_device *d, size_t bytes);
void chi_device_host_release(choir_device *d, void *memory, size_t bytes);

chi_stream *chi_stream_new(choir_device *d);
void chi_stream_free(chi_stream *s); // waits for queued work
// Queued. Each memory is the host's, or of a device of the stream's kind.
choir_status chi_stream_copy(chi_stream *s, void *to, const void *from, size_t bytes);
choir_status chi_stream_fill(chi_stream *s, void *to, int byte, size_t bytes);
choir_status chi_stream_record_event(chi_stream *s, uint64_t *event);
choir_status chi_stream_wait_event(chi_stream *s, chi_stream *other, uint64_t event);
choir_status chi_stream_wait_until(chi_stream *s, uint64_t event, double seconds);
// As chi_stream_wait, up to event. Threads: any.
choir_status chi_stream_wait_up_to(chi_stream *s, uint64_t event);
// s may use its device's memory until event.
void chi_stream_abandon(chi_stream *s, uint64_t event);
// Waits for all work, up to 60 s, and returns the first failure. Even then, memory may go back to
// the pool.
choir_status chi_stream_wait(chi_stream *s);
// Waits also after a failure to queue work. Returns status, or else the wait's.
choir_status chi_stream_finish(chi_stream *s, choir_status status);
// For tests.
void chi_stream_set_timeout(double seconds);
// Copy after queued work. Host memory is not used after the return, even on failure.
choir_status chi_stream_fetch(chi_stream *s, void *to, const void *from, size_t bytes);
choir_status chi_stream_send(chi_stream *s, void *to, const void *from, size_t bytes);
// From the host; up to 1 MiB is only queued. The host memory may change at once.
choir_status chi_stream_post(chi_stream *s, void *to, const void *from, size_t bytes);
// As post, but the host memory may change only after a wait.
choir_status chi_stream_post_kept(chi_stream *s, void *to, const void *from, size_t bytes);

// After a wait, the second moves the bytes to `to` and frees the copy. to NULL: the wait failed,
// and the stream keeps it.
chi_staging_buffer *chi_stream_fetch_later(chi_stream *s, const void *from, size_t bytes);
void chi_stream_take_fetched(chi_stream *s, chi_staging_buffer *fetched, void *to, size_t bytes);

// Through the host if the devices share no memory. Waits. s: a stream of either.
choir_status chi_device_copy(chi_stream *s, choir_device *to_device, void *to,
		choir_device *from_device, const void *from, size_t bytes);

extern const choir_device_table chi_cpu_table;
