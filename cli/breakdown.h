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
	size_t n, room;
	breakdown_span *span;
	int names; // of spans; those that find no room are "others", which is the first
	char name[BREAKDOWN_NAMES][BREAKDOWN_NAME];
	bool failed; // there was no memory for all
} breakdown;

// For choir_trace_options: user is a breakdown.
void breakdown_add(const choir_trace_span *span, void *user);
// What is printed when the trace has been stopped: lines for people, or one JSON object with
// "event": "breakdown". Spans that some thread did not keep shorten the time that is looked at.
void breakdown_say(breakdown *b, bool json);
void breakdown_free(breakdown *b);
