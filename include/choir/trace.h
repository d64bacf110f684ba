// While a trace is on, Choir records spans: intervals of time, and what a thread did in them. A
// program may add spans, and scalars (a loss) for TensorBoard. choir_trace_stop writes the spans
// to a file for chrome://tracing and https://ui.perfetto.dev, with a track for each replica, each
// other thread, and communication between devices. A process has one trace at a time.
//
// Cost: without a trace, a span tests one word of memory; with a trace, it takes two readings of
// the clock and 72 bytes. Choir writes scalars about once a second. If it cannot write a file,
// only choir_trace_stop fails.
//
// Threads: one at a time, while no run is under way, to start or stop a trace; any for other
// calls.
#pragma once

#include "status.h"

CHOIR_C_BEGIN

// What a span is about.
typedef enum {
	CHOIR_TRACE_OTHER = 0,
	CHOIR_TRACE_COMPUTE, // replicas' functions and their operations
	CHOIR_TRACE_WAIT, // waiting for other replicas
	CHOIR_TRACE_REDUCE, // sums over replicas
	CHOIR_TRACE_UPDATE, // updates of variables
	CHOIR_TRACE_INPUT, // reading and distributing batches
	CHOIR_TRACE_CHECKPOINT // writing and reading files of variables
} choir_trace_category;
enum { CHOIR_TRACE_CATEGORIES = 7 };

// "other", "compute", ..., or "unknown category".
const char *choir_trace_category_name(choir_trace_category category);

// Tracks that belong to no replica. A replica's track is its id; other threads have -3, -4, ...
enum { CHOIR_TRACE_COMMUNICATION = -1, CHOIR_TRACE_PROGRAM = -2 };

// A thread's spans are nested or disjoint. A device's sums and updates after its replicas are on
// its last replica's track. The communication track repeats the sums between devices, from the
// first start to the last end.
typedef struct choir_trace_span {
	const char *name; // at most 33 bytes are kept
	choir_trace_category category;
	int track;
	const char *track_name; // "replica 3", "program", or the thread's name
	double begin, end; // seconds since the start of the trace
	double own; // seconds outside of nested spans
	int depth; // the number of the thread's spans around this one
	int worker; // the worker that recorded it
	// For a wait: who arrived last, "replica 3" or "worker 1". NULL: unknown.
	const char *last;
} choir_trace_span;

// span is valid only during the call.
typedef void choir_trace_span_fn(const choir_trace_span *span, void *user);

// What a trace records.
typedef struct choir_trace_options {
	size_t size;
	// The folder for scalars (TensorBoard event files), made by choir_trace_start. NULL: drops
	// scalars.
	const char *log;
	int64_t spans; // newest spans that each thread keeps, at most 2^24; 0: 65536
	// choir_trace_stop calls this for each kept span, ordered by thread and start. Must not start
	// or stop a trace.
	choir_trace_span_fn *span;
	void *user;
	// This worker and the number of workers (0: 1), for choir_trace_merge. All workers start their
	// traces right after choir_cluster_barrier.
	int worker, workers;
} choir_trace_options;

// Starts a trace. This thread's track is "program". choir_trace_stop writes the file path (JSON in
// Chrome's trace event format; NULL: none). CHOIR_STATE: a trace is on. CHOIR_IO: the file or
// folder cannot be written.
CHOIR_MUST_CHECK choir_status choir_trace_start(const char *path, const choir_trace_options *o);

// Ends the trace and open spans, even after a failure, and returns the first failure since the
// start. CHOIR_STATE: no trace is on; the parent started it before a fork. CHOIR_NO_MEMORY: a
// thread's spans are missing.
CHOIR_MUST_CHECK choir_status choir_trace_stop(void);
bool choir_trace_is_on(void);

// The number of spans that newer ones replaced in the last trace.
int64_t choir_trace_dropped_spans(void);

// Files of traces.
//
// Calls fn for each span of a file, in order. CHOIR_CORRUPT: the file is damaged, or no such
// trace.
CHOIR_MUST_CHECK choir_status choir_trace_read(
		const char *path, choir_trace_span_fn *fn, void *user);
// Writes the spans of n files, one of each worker of a job, to the file path, whole or not at all.
// CHOIR_CORRUPT: as choir_trace_read.
CHOIR_MUST_CHECK choir_status choir_trace_merge(
		const char *path, size_t n, const char *const paths[]);

// Recording. Without a trace these calls do nothing.
//
// Begin and end a span, on the track of the thread's replica, else on the thread's. It must end in
// the function call and replica in which it began.
void choir_trace_begin(choir_trace_category category, const char *name);
void choir_trace_end(void);

// Names the calling thread's track; at most 31 bytes are kept.
void choir_trace_name_track(const char *name);

// Records value under tag ("test/accuracy") at a step of the program. Of replicas' calls, only
// replica 0's counts.
void choir_trace_scalar(const char *tag, int64_t step, double value);

CHOIR_C_END
