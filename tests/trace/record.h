// Shared by the tests of traces: records all spans.
#pragma once

#include "choir/trace.h"

#include <stdio.h>

enum { RECORD_SPANS = 8192 };

typedef struct {
	choir_trace_span shown; // its texts are invalid
	char name[48], track[48], last[48]; // last "": unknown
} kept_span;

typedef struct {
	int n;
	kept_span span[RECORD_SPANS];
} record;

// Starts a trace without files. spans: capacity of each thread; 0: the default.
void record_start(record *r, int64_t spans);
void record_stop(void); // fills the record
// Returns the ordinal-th span of this name on a track; NULL: there is none.
const kept_span *record_find(const record *r, int track, const char *name, int ordinal);
// Returns the number of spans of this name on a track.
int record_count(const record *r, int track, const char *name);
// Returns the seconds of all spans of a category on a track, without nested spans.
double record_seconds(const record *r, int track, choir_trace_category category);
