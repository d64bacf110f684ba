// Where the time of a trace went, as a table: for each replica, and for the program's own thread,
// the seconds in each category.
#pragma once

#include <choir/choir.h>

typedef struct {
	int track;
	choir_trace_category category;
	int depth;
	bool run; // of a strategy, by the program
	double begin, end, own;
} breakdown_span;

typedef struct {
	size_t n, room;
	breakdown_span *span;
	bool failed; // there was no memory for all
} breakdown;

// For choir_trace_options: user is a breakdown.
void breakdown_add(const choir_trace_span *span, void *user);
// What is printed when the trace has been stopped: lines for people, or one JSON object with
// "event": "breakdown". Spans that some thread did not keep shorten the time that is looked at.
void breakdown_say(breakdown *b, bool json);
void breakdown_free(breakdown *b);
