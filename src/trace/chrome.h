// Chrome's trace file, written when a trace stops or is merged.
#pragma once

#include "base/file.h"
#include "base/text.h"
#include "trace/span_ring.h"

typedef struct {
	int worker, track;
	char name[CHI_TRACK_NAME];
} chi_chrome_track;

typedef struct {
	chi_writer *file;
	choir_status status;
	chi_text line;
	bool first;
	chi_chrome_track *track;
	size_t tracks, capacity;
} chi_chrome;
choir_status chi_chrome_open(chi_chrome *c, const char *path);
void chi_chrome_abort(chi_chrome *c);
// Spans follow. wall: time of day at the start.
void chi_chrome_begin(chi_chrome *c, double wall, uint64_t lost);
void chi_chrome_span(const choir_trace_span *span, void *chrome);
// It may have no spans.
void chi_chrome_name(chi_chrome *c, int worker, int track, const char *name);
// Publishes the file and clears c. workers: of the job.
choir_status chi_chrome_end(chi_chrome *c, int workers);
// CHOIR_NONE: unknown.
int chi_chrome_category(const char *name);
bool chi_chrome_track_of(int64_t tid, int *track);
