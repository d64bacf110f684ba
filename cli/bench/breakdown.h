// Where the time of a trace went, as tables: for each replica, and for the program's own thread,
// the seconds in each category; and for each operation, those of all replicas together.
#pragma once

#include <choir/choir.h>

enum { BREAKDOWN_NAMES = 96, BREAKDOWN_NAME = 34 };

typedef struct {
	int track;
	choir_trace_category category;
	int depth;
	int name; // among the breakdown's
	bool run; // of a strategy, by the program
	double begin, end, own;
} breakdown_span;

typedef struct {
	size_t n, capacity;
	breakdown_span *span;
	int names; // of spans; those that find no room are "others", which is the first
	char name[BREAKDOWN_NAMES][BREAKDOWN_NAME];
	bool failed; // there was no memory for all
} breakdown;

enum { BREAKDOWN_ROWS = 34 }; // the program and replicas; more of these are not shown

typedef struct {
	const char *name;
	int64_t calls;
	double seconds; // of all replicas
} breakdown_operation;

// The sums of a window of steps.
typedef struct {
	double from, to; // seconds of the trace that are looked at
	int64_t runs;
	double spans; // seconds of them in which the program's thread was in some span
	int rows; // the program and the replicas
	double seconds[BREAKDOWN_ROWS][CHOIR_TRACE_CATEGORIES];
	breakdown_operation operations[BREAKDOWN_NAMES]; // the longest first
} breakdown_table;

// For choir_trace_options: user is a breakdown.
void breakdown_add(const choir_trace_span *span, void *user);
// When the trace has been stopped; runs 0: nothing was kept.
void breakdown_add_up(const breakdown *b, breakdown_table *t);
// What is printed when the trace has been stopped: lines for people, or one JSON object with
// "event": "breakdown". Spans that some thread did not keep shorten the time that is looked at.
void breakdown_print(const breakdown *b, bool json);
void breakdown_free(breakdown *b);
