// What saving costs a training.
#pragma once

#include <choir/choir.h>

typedef struct {
	double bytes; // that a checkpoint holds: weights, and what the optimizer keeps
	double save_seconds; // that the call of an asynchronous save takes
	double first_seconds; // that the first one took, which makes the memory
	double copy_seconds; // that a memcpy of as many bytes takes, between buffers in use
	double before_seconds; // of the step in front of a save
	double behind_seconds; // of the step behind it, while a thread writes
} save_cost;

// Medians over a few saves to directory, where the last one stays. bytes is given; steps makes so
// many of them.
choir_status save_measure(choir_strategy *s, const char *directory,
		choir_status (*steps)(void *user, int n), void *user, save_cost *cost);
