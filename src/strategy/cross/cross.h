// Cross-replica context, of a merge call or of the program.
#pragma once

#include "strategy/run/run.h"

// Values on a device that the context's own frame cannot hold.
typedef struct {
	choir_device *device;
	choir_frame *frame;
} chi_cross_frame;

typedef struct chi_cross {
	choir_cross base;
	choir_strategy *strategy;
	chi_run *run; // NULL: the program's context
	choir_values *args, *returned; // of the function that runs in it
	choir_values *call_args, *call_results; // of its runs and updates
	// During a call, whose arguments may be in call_results.
	choir_values *next_results;
	chi_cross_frame *device_frame;
	size_t device_frames, device_frames_capacity;
	unsigned emptied; // the frame's, when device frames were last cleared
	chi_mutex lock;
	choir_frame *spare;
} chi_cross;

static inline chi_cross *chi_cross_of(const choir_cross *x)
{
	return (chi_cross *) (uintptr_t) x;
}

choir_cross *chi_cross_new(choir_strategy *s, chi_run *run);
void chi_cross_free(choir_cross *x);
void chi_cross_clear(choir_cross *x);
choir_status chi_cross_publish(chi_cross *x);
// After a run or update: replaces the results and clears the arguments.
void chi_cross_end_call(chi_cross *x);
// The context's frame for d, which is cleared with its own.
choir_frame *chi_cross_frame_on(chi_cross *x, choir_device *d);
// Gives an empty frame on d for one call of a function, on any thread. The caller releases it
// with the call's status, which is returned. After success, x keeps the frame, whose stream must
// have been waited for.
choir_frame *chi_cross_acquire_frame(chi_cross *x, choir_device *d);
choir_status chi_cross_release_frame(chi_cross *x, choir_frame *f, choir_status status);

// x is the thread's cross-replica context or the program's own.
choir_status chi_cross_check(const choir_cross *x, const char *what);
// v may be NULL.
choir_status chi_cross_check_variable(
		const choir_strategy *s, choir_frame *f, const choir_variable *v, const char *what);

choir_value *chi_cross_destination(choir_cross *x, int count, choir_device *const devices[]);
