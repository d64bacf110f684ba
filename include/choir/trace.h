// Where the time goes, and how the numbers move. Between start and stop Choir records spans: what
// a replica, the program's thread and each thread that reads ahead did from when to when, in one
// of a few categories. A program may add spans of its own, and scalars (a loss, a rate), which go
// to a folder of event files as TensorBoard reads them. Spans are written when the trace is
// stopped, as a file that chrome://tracing and https://ui.perfetto.dev open: one track for each
// replica, one for communication between devices, one for each other thread.
//
// What it costs. Off, every place where a span could begin tests one word of memory. On, a span
// costs two readings of the clock and 64 bytes; threads record in memory of their own, without a
// lock, the newest spans of each. Nothing is written and no lock taken in a step, but for
// scalars: a scalar is encoded under a lock, and about once a second one of them hands on what was
// collected to the file. A file that cannot be written fails choir_trace_stop and never a run.
//
// There is one trace a process. Threads: start and stop when no run is under way, one at a time;
// the rest any.
#pragma once

#include "status.h"

CHOIR_C_BEGIN

typedef enum {
	CHOIR_TRACE_OTHER = 0,
	CHOIR_TRACE_COMPUTE, // a replica's function, and the operations in it
	CHOIR_TRACE_WAIT, // for other replicas, for their devices
	CHOIR_TRACE_REDUCE, // sums between replicas
	CHOIR_TRACE_UPDATE, // of variables
	CHOIR_TRACE_INPUT, // batches: reading, waiting for who reads ahead, dealing them out
	CHOIR_TRACE_CHECKPOINT // variables to and from files
} choir_trace_category;
enum { CHOIR_TRACE_CATEGORIES = 7 };

// "other", "compute", ...; "unknown category" for what is none. Constant text.
const char *choir_trace_category_name(choir_trace_category category);

// Tracks that are no replica's; a replica's is its id. Other threads have -3, -4, ...
enum { CHOIR_TRACE_COMMUNICATION = -1, CHOIR_TRACE_PROGRAM = -2 };

// One span. Spans of one thread lie in each other or one behind the other. What a device does when
// its replicas have returned (sums, updates) is on the track of the last of them. On the track of
// communication the sums between devices are shown once more, from when the first device began
// its share until all had theirs.
typedef struct choir_trace_span {
	const char *name; // cut after 33 bytes
	choir_trace_category category;
	int track;
	const char *track_name; // "replica 3", "program", the thread's name
	double begin, end; // seconds since the start of the trace
	double own; // seconds of these that are in no span inside it
	int depth; // spans of the thread around it
} choir_trace_span;

// Takes one span, which is gone after the call.
typedef void choir_trace_span_fn(const choir_trace_span *span, void *user);

typedef struct choir_trace_options {
	size_t size;
	// A folder for scalars as TensorBoard's event files, made if it is not there. NULL: scalars
	// are dropped. Each trace adds a file, which grows as scalars come.
	const char *log;
	int64_t spans; // that each thread keeps, of 64 bytes: the newest (0: 65536)
	// Called by choir_trace_stop with every span that was kept, thread by thread and in the order
	// in which they began. It must not start or stop a trace. NULL: not called.
	choir_trace_span_fn *span;
	void *user;
} choir_trace_options;

// Begins to record. path is the file that choir_trace_stop will write (Chrome's trace event
// format, JSON), NULL: none; o may be NULL. The file and the folder are tried now, since a
// program may run for hours before they are written. The calling thread becomes the track
// "program". Errors: CHOIR_STATE: a trace is on; CHOIR_IO; CHOIR_INVALID: spans are negative or
// more than 2^24.
CHOIR_MUST_CHECK choir_status choir_trace_start(const char *path, const choir_trace_options *o);

// Ends the trace and writes what was recorded. It is off afterwards whatever happens, and the
// first failure since the start is returned: the file appears whole or not at all, event files
// keep what was written before. Spans that have not ended end now. CHOIR_STATE: no trace is on,
// or it was started before a fork, in the parent; CHOIR_NO_MEMORY: spans of some thread are
// missing.
CHOIR_MUST_CHECK choir_status choir_trace_stop(void);

// Whether a trace is on: for programs that would otherwise work out what to record.
bool choir_trace_is_on(void);

// Spans of the trace before that its threads did not keep, as newer ones came.
int64_t choir_trace_lost(void);

// A span of the calling thread, from begin to end; on the track of the replica that the thread is
// in, or else its own. Spans nest, and each must end in the function call (and in the replica)
// that it began in. name is copied. Off, both do nothing.
void choir_trace_begin(choir_trace_category category, const char *name);
void choir_trace_end(void);

// Names the calling thread's own track; at most 31 bytes of it are kept. Off, it does nothing.
void choir_trace_name_track(const char *name);

// A number under a name ("loss", "test/accuracy") at a step of the program's own count; recorded
// with the time of day. In a replica's function only replica 0's count, as each replica has the
// same to say. Off, or without a folder, it does nothing.
void choir_trace_scalar(const char *tag, int64_t step, double value);

CHOIR_C_END
