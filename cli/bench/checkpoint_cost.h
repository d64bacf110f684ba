// The cost of saving checkpoints during a training.
#pragma once

#include <choir/choir.h>

typedef struct {
	double bytes; // of a checkpoint
	double save_seconds; // of an asynchronous call
	double first_seconds; // of the first call, which allocates
	double copy_seconds; // of a memcpy between warm buffers
	double before_seconds;
	double after_seconds; // while a thread writes
} save_cost;

// Medians of a few saves to directory, where the last one stays. cost->bytes is given; steps runs
// n training steps.
choir_status save_measure(choir_strategy *s, const char *directory,
		choir_status (*steps)(void *user, int n), void *user, save_cost *cost);
