// Cross-replica context from inside: what a merge function sees, or a program's own context.
#pragma once

#include "strategy/run/run.h"

// Where values of a context lie that its frame's device cannot hold: the copies on other devices.
typedef struct {
	choir_device *device;
	choir_frame *frame;
} chi_cross_frame;

typedef struct chi_cross {
	choir_cross base; // first, so that a choir_cross is one of these
	choir_strategy *strategy;
	chi_run *run; // whose merge call it serves; NULL: the program's own
	choir_values *args, *returned; // the called side
	choir_values *call_args, *call_results; // the side that calls run and update
	// What they are about to return, while what was taken may still be given.
	choir_values *next_results;
	chi_cross_frame *device_frame;
	size_t device_frames, device_frames_capacity;
	unsigned emptied; // how often the context's own frame was when places were last
	chi_mutex lock; // spare, which is for threads that update slices, too
	choir_frame *spare; // emptied, for functions of updates
} chi_cross;

static inline chi_cross *chi_cross_of(const choir_cross *x)
{
	return (chi_cross *) (uintptr_t) x;
}

choir_cross *chi_cross_new(choir_strategy *s, chi_run *run);
void chi_cross_free(choir_cross *x);
void chi_cross_clear(choir_cross *x);
// Before replicas look at what lies in the frames of x (chi_frame_publish).
choir_status chi_cross_publish(chi_cross *x);
// After a run or an update: what it returned can be taken, in place of what could before, and
// nothing is given any more.
void chi_cross_end_call(chi_cross *x);
// The context's frame for tensors on d; what is in it dies when the context's own frame is
// emptied. NULL: recorded in that.
choir_frame *chi_cross_frame_on(chi_cross *x, choir_device *d);
// An empty frame on d for one call of a function, on any thread; NULL: a failure. Whoever acquires
// it releases it with the status of the call, which is returned and whose text stays the thread's.
// x keeps the frame for the next call if this one went well and its stream was waited for.
choir_frame *chi_cross_acquire_frame(chi_cross *x, choir_device *d);
choir_status chi_cross_release_frame(chi_cross *x, choir_frame *f, choir_status status);

// x must be the cross-replica context this thread is in, or its program's own.
choir_status chi_cross_check(const choir_cross *x, const char *what);
// v must be one of s's: else CHOIR_STATE, recorded in f. NULL is fine.
choir_status chi_cross_check_variable(
		const choir_strategy *s, choir_frame *f, const choir_variable *v, const char *what);

// These devices as a place for results; NULL: recorded in x's frame (reduce_to.c).
choir_value *chi_cross_destination(choir_cross *x, int count, choir_device *const devices[]);
// Copies a replica's part into the whole of a gather, at offset along the axis, or back
// (gather.c).
choir_status chi_gather_copy_part(
		choir_tensor *whole, choir_tensor *part, int axis, int64_t offset, bool back);
