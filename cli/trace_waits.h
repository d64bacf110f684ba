// The trace of a job: a file of each worker.
#pragma once

#include <choir/choir.h>

enum { TRACE_PATH = 4096 + 32 };

// Adds FILE, or FILE of a directory of --run, and FILE.1, FILE.2 ... as far as they exist.
// CHOIR_NOT_FOUND: there is no FILE.
typedef struct {
	size_t n, capacity;
	char (*path)[TRACE_PATH];
} trace_parts;
choir_status trace_parts_find(trace_parts *p, const char *path);
void trace_parts_free(trace_parts *p);

// Who waited for whom, longest first.
enum { WAITS = 256, WAIT_NAME = 64 };
typedef struct {
	char waiter[WAIT_NAME], last[WAIT_NAME]; // "worker 1, replica 3"; last "": unknown
	int64_t times;
	double seconds;
} wait;
typedef struct {
	size_t n;
	wait wait[WAITS];
	bool several; // workers
	double end; // of the last span, in seconds
} wait_table;
void waits_add(const choir_trace_span *span, void *waits); // a choir_trace_span_fn
void waits_sort(wait_table *t);
