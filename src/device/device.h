// Devices inside Choir: a name, a table, and streams. Everything above goes through these calls,
// so a device whose memory the host may not touch works like one whose memory it may.
// Threads: any, but a stream is used by one at a time (waiting for it: any).
#pragma once

#include "base/atomic.h"
#include "choir/extend/device_table.h"

typedef struct chi_staging_buffer chi_staging_buffer;

struct choir_device {
	char name[32]; // "cpu:0"
	int index;
	bool host_memory;
	const choir_device_table *table; // without empty slots
	void *self;
	chi_atomic32 abandoned_waits; // waits that were given up, of streams that may still be at work
	chi_atomic32 staging_buffers; // in the list
	chi_staging_buffer *quarantine; // what streams of the device may still use (quarantine.c)
};

// Where operations are queued. On the CPU a stream does nothing: work is done when a call returns.
typedef struct chi_stream {
	choir_device *device;
	void *state; // what the table's slots take
} chi_stream;

// Reads a name in any spelling ("cpu:0", "CPU:0", "/cpu:0", "/device:CPU:0",
// "/job:worker/replica:0/task:1/device:CPU:0") into the canonical kind and index; "cpu" alone is
// index 0. False: no such spelling. kind has room for 16 bytes.
bool chi_device_parse(const char *name, char kind[16], int *index);

// A comma-separated list of names; spaces around them are left out. *count says how many devices
// were written, 0 after a failure. CHOIR_INVALID: no name, an empty name, a device that stands
// twice, more than room. CHOIR_NOT_FOUND: an unknown name, with the list of those known.
choir_status chi_device_list(const char *names, int capacity, choir_device *devices[], int *count);

// True if both devices read and write the same memory (the same device, or both host memory).
bool chi_device_shares(const choir_device *a, const choir_device *b);

// Whether a stream for which somebody has given up waiting may still use memory of d: then memory
// that is given back must not be reused.
static inline bool chi_device_is_quarantined(const choir_device *d)
{
	return chi_atomic32_load(&d->abandoned_waits) != 0;
}

// Makes sure that a failure of a slot has a text that names the device: the table may be a
// program's, and leave none. Returns status.
choir_status chi_device_failed(const choir_device *d, const char *slot, choir_status status);

choir_status chi_device_allocate(choir_device *d, size_t bytes, void **memory);
void chi_device_release(choir_device *d, void *memory, size_t bytes);

chi_stream *chi_stream_new(choir_device *d); // NULL after a failure
void chi_stream_free(chi_stream *s); // waits for what is queued
// Between any two memories of which each is the host's or of a device of the stream's kind.
choir_status chi_stream_copy(chi_stream *s, void *to, const void *from, size_t bytes);
choir_status chi_stream_fill(chi_stream *s, void *to, int byte, size_t bytes);
choir_status chi_stream_record_event(chi_stream *s, uint64_t *event);
choir_status chi_stream_wait_event(chi_stream *s, chi_stream *other, uint64_t event);
choir_status chi_stream_wait_until(chi_stream *s, uint64_t event, double seconds);
// The same with the timeout of chi_stream_wait, and as safe after it. Threads: any.
choir_status chi_stream_wait_up_to(chi_stream *s, uint64_t event);
// The caller gives up waiting for s, which may use memory of its device until event.
void chi_stream_abandon(chi_stream *s, uint64_t event);
// Until all that is queued is done (at most 60 s: CHOIR_TIMEOUT), with its first failure. Memory
// of the device may be given back to its pool afterwards, however this ends.
choir_status chi_stream_wait(chi_stream *s);
// The timeout of chi_stream_wait, for tests.
void chi_stream_set_timeout(double seconds);
// Copy between host memory and the device's, after what is queued. The host memory is not used
// after they return, whether they succeed or not.
choir_status chi_stream_fetch(chi_stream *s, void *to, const void *from, size_t bytes);
choir_status chi_stream_send(chi_stream *s, void *to, const void *from, size_t bytes);
// As chi_stream_send, but up to 1 MiB are only queued: the caller may change the host memory at
// once, and a failure is the stream's.
choir_status chi_stream_post(chi_stream *s, void *to, const void *from, size_t bytes);

// bytes from memory of one device to memory of another, whatever they are, by way of the host
// where they share none. s is a stream of either. Returns when it is done.
choir_status chi_device_copy(chi_stream *s, choir_device *to_device, void *to,
		choir_device *from_device, const void *from, size_t bytes);

// The built-in kind, registered on first use.
extern const choir_device_table chi_cpu_table;
