// TensorBoard's event file, which grows. The first failure ends the writing and is returned from
// then on.
#pragma once

#include "base/file.h"
#include "base/text.h"

typedef struct {
	chi_writer *file;
	choir_status status;
	chi_text value, summary, event;
	double flushed; // chi_clock_now
} chi_tensorboard;
// number, a part of the file's name, tells files of one process apart.
choir_status chi_tensorboard_open(chi_tensorboard *e, const char *directory, unsigned number);
choir_status chi_tensorboard_scalar(
		chi_tensorboard *e, const char *tag, int64_t step, double value);
choir_status chi_tensorboard_close(chi_tensorboard *e);
