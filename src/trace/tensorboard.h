// A growing event file. The first failure ends it and is returned from then on.
#pragma once

#include "base/file.h"
#include "base/text.h"

typedef struct {
	chi_writer *file;
	choir_status status;
	chi_text value, summary, event;
	double flushed;
} chi_tensorboard;
// number makes the name unique in this process.
choir_status chi_tensorboard_open(chi_tensorboard *e, const char *directory, unsigned number);
choir_status chi_tensorboard_scalar(
		chi_tensorboard *e, const char *tag, int64_t step, double value);
choir_status chi_tensorboard_close(chi_tensorboard *e);
