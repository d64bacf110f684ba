// Chrome's trace file: opened when the trace starts, written when it has stopped.
#pragma once

#include "base/file.h"
#include "base/text.h"
#include "trace/spans.h"

typedef struct {
	chi_writer *file;
	choir_status status;
	chi_text line;
	bool first; // nothing is in the list yet
	int replicas; // one more than the highest that has a track
	bool communication;
} chi_chrome;
choir_status chi_chrome_open(chi_chrome *c, const char *path);
void chi_chrome_abort(chi_chrome *c); // no file appears
// Writes everything, from the first thread's spans on; then the file appears. wall: the time of
// day at the start.
choir_status chi_chrome_write(
		chi_chrome *c, const chi_spans *threads, double now, double wall, uint64_t lost);
