// Tables of a trace: seconds by category of each replica and of the program's thread, and seconds
// by operation over all replicas.
#pragma once

#include <choir/choir.h>

enum { BREAKDOWN_NAMES = 96, BREAKDOWN_NAME = 34 };

typedef struct {
	int track;
	choir_trace_category category;
	int depth;
	int name; // index
	bool run; // of a strategy, on the program's thread
	double begin, end, own;
} breakdown_span;

typedef struct {
	size_t n, capacity;
	breakdown_span *span;
	int names; // name 0, "others", is for those that do not fit
	char name[BREAKDOWN_NAMES][BREAKDOWN_NAME];
	bool failed; // spans are missing for lack of memory
} breakdown;

enum { BREAKDOWN_ROWS = 34 };

typedef struct {
	const char *name;
	int64_t calls;
	double seconds;
} breakdown_operation;

// Sums over a window of steps.
typedef struct {
	double from, to; // seconds of the trace
	int64_t runs;
	double spans; // seconds of the program's thread in spans
	int rows; // the program and the first replicas
	double seconds[BREAKDOWN_ROWS][CHOIR_TRACE_CATEGORIES];
	breakdown_operation operations[BREAKDOWN_NAMES]; // longest first
} breakdown_table;

// For choir_trace_options; user is a breakdown.
void breakdown_add(const choir_trace_span *span, void *user);
// Sums of a stopped trace. runs 0: nothing was kept.
void breakdown_add_up(const breakdown *b, breakdown_table *t);
// Prints a stopped trace: lines, or one JSON object. Lost spans shorten the window.
void breakdown_print(const breakdown *b, bool json);
void breakdown_free(breakdown *b);
