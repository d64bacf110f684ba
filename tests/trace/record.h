// What tests of traces share: all spans of a trace, to be looked at.
#pragma once

#include "choir/trace.h"

#include <stdio.h>

enum { RECORD_SPANS = 8192 };

typedef struct {
	choir_trace_span shown; // its texts are gone
	char name[48], track[48];
} kept_span;

typedef struct {
	int n;
	kept_span span[RECORD_SPANS];
} record;

// A trace without files; each thread keeps so many spans (0: the default).
void record_start(record *r, int64_t spans);
void record_stop(void); // fills the record
// The ordinal-th span of this name on a track; NULL: there is none.
const kept_span *record_find(const record *r, int track, const char *name, int ordinal);
int record_count(const record *r, int track, const char *name);
// Own seconds of all spans of a category on a track.
double record_seconds(const record *r, int track, choir_trace_category category);
