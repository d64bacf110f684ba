// The cost of saving checkpoints during a training.
#pragma once

#include <choir/choir.h>

typedef struct {
	double bytes; // of a checkpoint: weights and slots
	double save_seconds; // of the call of an asynchronous save
	double first_seconds; // of the first call, which allocates
	double copy_seconds; // of a memcpy of as many bytes between warm buffers
	double before_seconds; // of the step before a save
	double after_seconds; // of the step after it, while a thread writes
} save_cost;

// Measures a few saves to directory, where the last one stays; the results are medians.
// cost->bytes is given; steps runs n training steps.
choir_status save_measure(choir_strategy *s, const char *directory,
		choir_status (*steps)(void *user, int n), void *user, save_cost *cost);
