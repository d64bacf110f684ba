// Devices: a name, a table of functions, streams. All memory is accessed through these calls, even
// if the host can access it. Threads: any. One thread at a time uses a stream; any thread may wait
// for it.
#pragma once

#include "base/atomic.h"
#include "choir/extend/device_table.h"

typedef struct chi_staging_buffer chi_staging_buffer;

struct choir_device {
	char name[160]; // "cpu:0", "remote:node1:7000/cpu:0"
	int index;
	bool host_memory;
	const choir_device_table *table; // all slots set
	void *self;
	chi_atomic32 abandoned_waits; // waits given up while the stream may still run
	chi_atomic32 staging_buffers; // in quarantine
	chi_staging_buffer *quarantine;
	chi_staging_buffer *pinned; // unused
	int pinned_buffers; // there
};

// A device's queue of operations, always empty on the CPU.
typedef struct chi_stream {
	choir_device *device;
	void *state; // the table's
} chi_stream;

// Splits a device's name into kind (16 bytes) and index: "cpu:0", "CPU:0", "/cpu:0",
// "/device:CPU:0", "/job:worker/replica:0/task:1/device:CPU:0"; "cpu" is index 0. False:
// malformed.
bool chi_device_parse(const char *name, char kind[16], int *index);

// Opens the devices of a comma-separated list; spaces around names are ignored. *count is 0 after
// a failure. CHOIR_INVALID: no names, an empty or repeated one, or more than capacity.
// CHOIR_NOT_FOUND: an unknown name; lists the known ones.
choir_status chi_device_list(const char *names, int capacity, choir_device *devices[], int *count);

// Lists all devices of the kinds that are accelerators, at most capacity. *count may be 0.
choir_status chi_device_list_accelerators(int capacity, choir_device *devices[], int *count);

// Whether two devices use the same memory: they are equal, or both use host memory.
bool chi_device_shares(const choir_device *a, const choir_device *b);

// Whether an abandoned stream may still use memory of device d, which must then not be reused.
static inline bool chi_device_is_quarantined(const choir_device *d)
{
	return chi_atomic32_load(&d->abandoned_waits) != 0;
}

// Gives a device's failure a text with its name if the table left none. Returns status.
choir_status chi_device_failed(const choir_device *d, const char *slot, choir_status status);

choir_status chi_device_allocate(choir_device *d, size_t bytes, void **memory);
void chi_device_release(choir_device *d, void *memory, size_t bytes);

// Allocates pinned host memory for copies to and from d. NULL: the kind has none, or no more; the
// thread's last error does not change.
void *chi_device_host_allocate(choir_device *d, size_t bytes);
void chi_device_host_release(choir_device *d, void *memory, size_t bytes);

chi_stream *chi_stream_new(choir_device *d);
void chi_stream_free(chi_stream *s); // waits for queued work
// Queues a copy on a stream. Each memory is the host's, or of a device of the stream's kind.
choir_status chi_stream_copy(chi_stream *s, void *to, const void *from, size_t bytes);
choir_status chi_stream_fill(chi_stream *s, void *to, int byte, size_t bytes);
choir_status chi_stream_record_event(chi_stream *s, uint64_t *event);
choir_status chi_stream_wait_event(chi_stream *s, chi_stream *other, uint64_t event);
choir_status chi_stream_wait_until(chi_stream *s, uint64_t event, double seconds);
// Waits for a stream's event with the timeout and the guarantee of chi_stream_wait. Threads: any.
choir_status chi_stream_wait_up_to(chi_stream *s, uint64_t event);
// Stops waiting for stream s, which may use its device's memory until event.
void chi_stream_abandon(chi_stream *s, uint64_t event);
// Waits for all work of a stream, up to 60 s (CHOIR_TIMEOUT), and returns its first failure.
// Whatever it returns, memory may then go back to the device's pool.
choir_status chi_stream_wait(chi_stream *s);
// Sets the timeout of chi_stream_wait, for tests.
void chi_stream_set_timeout(double seconds);
// Copy between host and device memory after a stream's queued work. They do not use the host
// memory after they return, even on failure.
choir_status chi_stream_fetch(chi_stream *s, void *to, const void *from, size_t bytes);
choir_status chi_stream_send(chi_stream *s, void *to, const void *from, size_t bytes);
// Copies from host to device memory, but only queues up to 1 MiB on the stream. The host memory
// may change at once; the stream reports failures.
choir_status chi_stream_post(chi_stream *s, void *to, const void *from, size_t bytes);

// Queues a copy of device memory to the host. After the caller has waited for the stream, the
// second function gives the bytes to `to` and frees the copy. to NULL: the wait failed, and the
// stream keeps the copy. NULL: a failure.
chi_staging_buffer *chi_stream_fetch_later(chi_stream *s, const void *from, size_t bytes);
void chi_stream_take_fetched(chi_stream *s, chi_staging_buffer *fetched, void *to, size_t bytes);

// Copies between two devices, through the host if they share no memory; returns when done. s: a
// stream of either.
choir_status chi_device_copy(chi_stream *s, choir_device *to_device, void *to,
		choir_device *from_device, const void *from, size_t bytes);

extern const choir_device_table chi_cpu_table;
