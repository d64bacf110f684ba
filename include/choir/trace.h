// Tracing shows what each thread of a training spends its time on. While a trace is on, Choir
// records spans: intervals of time, and what a thread did in them. A program may add its own
// spans, and scalars (a loss, a learning rate) for TensorBoard. choir_trace_stop writes the spans
// as a file for chrome://tracing and https://ui.perfetto.dev. The file has one track for each
// replica, one for communication between devices, and one for each other thread. A process has
// one trace at a time.
//
// Cost: without a trace, each place where a span could begin tests one word of memory. With a
// trace, a span costs two readings of the clock and 72 bytes; each thread keeps its newest
// spans. Only recording a scalar takes a lock. Scalars are written to their file about once a
// second. If a file cannot be written, only choir_trace_stop fails.
//
// Threads: one thread at a time starts or stops a trace, while no run is under way. Any thread
// may make the other calls.
#pragma once

#include "status.h"

CHOIR_C_BEGIN

// What a span is about.
typedef enum {
	CHOIR_TRACE_OTHER = 0,
	CHOIR_TRACE_COMPUTE, // replicas' functions, and the operations in them
	CHOIR_TRACE_WAIT, // waiting for other replicas
	CHOIR_TRACE_REDUCE, // sums over replicas
	CHOIR_TRACE_UPDATE, // updates of variables
	CHOIR_TRACE_INPUT, // reading batches, waiting for a read-ahead thread, distributing
	CHOIR_TRACE_CHECKPOINT // writing and reading files of variables
} choir_trace_category;
// The number of categories.
enum { CHOIR_TRACE_CATEGORIES = 7 };

// "other", "compute", ..., or "unknown category".
const char *choir_trace_category_name(choir_trace_category category);

// Tracks that belong to no replica. A replica's track is its id. Other threads have -3, -4, ...
enum { CHOIR_TRACE_COMMUNICATION = -1, CHOIR_TRACE_PROGRAM = -2 };

// Two spans of a thread are nested or disjoint. Sums and updates that a device makes after its
// replicas have returned are on the track of the last of these replicas. The communication track
// shows sums between devices a second time, from the first device's start to the last device's
// end.
typedef struct choir_trace_span {
	const char *name; // at most 33 bytes are kept
	choir_trace_category category;
	int track;
	const char *track_name; // "replica 3", "program", or the thread's name
	double begin, end; // seconds since the start of the trace
	double own; // seconds outside of nested spans
	int depth; // number of the thread's spans around this span
	int worker; // whose trace it is
	// Of a wait: "replica 3" or "worker 1", which came last and so ended the wait. NULL: unknown.
	const char *last;
} choir_trace_span;

// span is valid only during the call.
typedef void choir_trace_span_fn(const choir_trace_span *span, void *user);

// What a trace records.
typedef struct choir_trace_options {
	size_t size;
	// The folder for scalars. If it does not exist, choir_trace_start makes it. NULL: scalars
	// are dropped. Each trace adds one TensorBoard event file.
	const char *log;
	int64_t spans; // number of spans that each thread keeps; 0: 65536
	// choir_trace_stop calls this function for each kept span, thread by thread, ordered by their
	// start. The function must not start or stop a trace.
	choir_trace_span_fn *span;
	void *user;
	// This process among the workers of a job; its file can be merged with those of the others
	// (choir_trace_merge). workers 0 means 1. All workers start their traces at the same moment,
	// right after choir_cluster_barrier, because merged traces begin at the same time.
	int worker, workers;
} choir_trace_options;

// Starts recording. path is the file that choir_trace_stop will write (JSON in Chrome's trace
// event format); NULL: no file. The calling thread gets the track "program". CHOIR_STATE: a
// trace is on already. CHOIR_IO: the file or the folder cannot be written. CHOIR_INVALID: spans
// is negative or more than 2^24; worker is not 0 to workers - 1.
CHOIR_MUST_CHECK choir_status choir_trace_start(const char *path, const choir_trace_options *o);

// Ends the trace and writes what was recorded. Open spans end now. The trace is off afterwards,
// also after a failure. Returns the first failure since the start. The file appears whole or not
// at all. CHOIR_STATE: no trace is on, or the parent process started it before a fork.
// CHOIR_NO_MEMORY: spans of some thread are missing.
CHOIR_MUST_CHECK choir_status choir_trace_stop(void);

// Whether spans and scalars are recorded. Threads: any.
bool choir_trace_is_on(void);

// The number of spans that newer ones replaced in the last trace.
int64_t choir_trace_dropped_spans(void);

// Files of traces. Any thread may make these calls.
//
// Calls fn for each span in a file of choir_trace_start or choir_trace_merge, in the order of the
// file. Memory holds the file and its spans. CHOIR_CORRUPT: the file is damaged, or is no such
// trace.
CHOIR_MUST_CHECK choir_status choir_trace_read(
		const char *path, choir_trace_span_fn *fn, void *user);
// Writes one file with the spans of n files, one of each worker of a job. The file appears whole
// or not at all. CHOIR_CORRUPT: as for choir_trace_read. CHOIR_INVALID: two files of one worker.
CHOIR_MUST_CHECK choir_status choir_trace_merge(
		const char *path, size_t n, const char *const paths[]);

// Recording. Without a trace these calls do nothing.
//
// Begin and end a span of the calling thread. The span is on the track of the replica that the
// thread runs, or else on the thread's own track. A span must end in the function call, and in
// the replica, in which it began.
void choir_trace_begin(choir_trace_category category, const char *name);
void choir_trace_end(void);

// Names the calling thread's own track; at most 31 bytes are kept.
void choir_trace_name_track(const char *name);

// Records value under tag ("loss", "test/accuracy") at step, which the program counts, with the
// time of day. In replicas, only the call of replica 0 is recorded.
void choir_trace_scalar(const char *tag, int64_t step, double value);

CHOIR_C_END
