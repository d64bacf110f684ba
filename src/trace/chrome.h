// Chrome's trace file, written when the trace stops.
#pragma once

#include "base/file.h"
#include "base/text.h"
#include "trace/spans.h"

typedef struct {
	chi_writer *file;
	choir_status status;
	chi_text line;
	bool first;
	int replicas; // highest track plus one
	bool communication;
} chi_chrome;
choir_status chi_chrome_open(chi_chrome *c, const char *path);
void chi_chrome_abort(chi_chrome *c); // leaves no file
// Writes all spans and publishes the file. wall: time of day at the start.
choir_status chi_chrome_write(
		chi_chrome *c, const chi_spans *threads, double now, double wall, uint64_t lost);
