// Who writes what was recorded.
#pragma once

#include "base/file.h"
#include "base/text.h"
#include "trace/spans.h"

// Chrome's trace file: opened when the trace starts and written when it has stopped.
typedef struct {
	chi_writer *file;
	choir_status status;
	chi_text line;
	bool first; // nothing is in the list yet
	int replicas; // one more than the highest that has a track
	bool communication;
} chi_chrome;
choir_status chi_chrome_open(chi_chrome *c, const char *path);
void chi_chrome_abort(chi_chrome *c); // nothing appears
// Everything from the first thread's spans on, and the file appears. wall: the time of day at the
// start.
choir_status chi_chrome_write(
		chi_chrome *c, const chi_spans *threads, double now, double wall, uint64_t lost);

// TensorBoard's event file, which grows. A failure stays and ends the writing.
typedef struct {
	chi_writer *file;
	choir_status status;
	chi_text value, summary, event;
	double flushed; // chi_clock_now
} chi_tensorboard;
// number tells files of a process apart, in the name of the file.
choir_status chi_tensorboard_open(chi_tensorboard *e, const char *directory, unsigned number);
choir_status chi_tensorboard_scalar(
		chi_tensorboard *e, const char *tag, int64_t step, double value);
choir_status chi_tensorboard_close(chi_tensorboard *e);
