// A merge call's or the program's cross-replica context.
#pragma once

#include "strategy/run/run.h"

typedef struct {
	choir_device *device;
	choir_frame *frame;
} chi_cross_frame;

typedef struct chi_cross {
	choir_cross base;
	choir_strategy *strategy;
	chi_run *run;
	choir_values *args, *returned;
	choir_values *call_args, *call_results;
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
void chi_cross_end_call(chi_cross *x);
choir_frame *chi_cross_frame_on(chi_cross *x, choir_device *d);
// For one call of a function, on any thread. The release returns status. After success, x keeps
// the frame, which must have been waited for.
choir_frame *chi_cross_acquire_frame(chi_cross *x, choir_device *d);
choir_status chi_cross_release_frame(chi_cross *x, choir_frame *f, choir_status status);

// x is the thread's cross-replica context or the program's own.
choir_status chi_cross_check(const choir_cross *x, const char *what);
choir_status chi_cross_check_variable(
		const choir_strategy *s, choir_frame *f, const choir_variable *v, const char *what);

choir_value *chi_cross_destination(choir_cross *x, int count, choir_device *const devices[]);
// For reductions and broadcasts: a mirrored value at a destination, without components; an earlier
// component in device i's memory, or NULL; copies of t, in x's frames; a check that variables are
// the strategy's.
choir_value *chi_cross_value_at(choir_cross *x, const choir_value *to);
choir_tensor *chi_cross_same_memory(const choir_value *result, int i);
choir_status chi_cross_fill(choir_cross *x, choir_value *result, choir_tensor *t);
choir_status chi_cross_check_own(
		choir_cross *x, const choir_value *v, const choir_value *to, const char *what);
