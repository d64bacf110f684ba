// A function that begins a span also ends it. Without a trace, each call tests one word.
#pragma once

#include "choir/trace.h"

#include "base/atomic.h"
#include "trace/span_ring.h"

// Not 0: a trace is on. Only trace.c writes it. Hidden: the address needs no lookup.
extern __attribute__((visibility("hidden"))) chi_atomic32 chi_trace_wanted;

void chi_trace_push(choir_trace_category category, const char *name);
void chi_trace_push_replica(int track, int id, choir_trace_category category, const char *name);
void chi_trace_push_cross(choir_trace_category category, const char *name);
void chi_trace_pop(bool communication, int32_t last);
int32_t chi_trace_current(void);

static inline bool chi_trace_on(void)
{
	return __builtin_expect(chi_atomic32_load(&chi_trace_wanted) != 0, 0);
}

static inline void chi_trace_begin(choir_trace_category category, const char *name)
{
	if (chi_trace_on())
		chi_trace_push(category, name);
}

// Inner spans inherit the track, the replica's number in the job. Scalars inside count for id 0
// only.
static inline void chi_trace_begin_replica(
		int track, int id, choir_trace_category category, const char *name)
{
	if (chi_trace_on())
		chi_trace_push_replica(track, id, category, name);
}

// On the enclosing span's track, for all replicas: scalars inside count.
static inline void chi_trace_begin_cross(choir_trace_category category, const char *name)
{
	if (chi_trace_on())
		chi_trace_push_cross(category, name);
}

static inline void chi_trace_end(void)
{
	if (chi_trace_on())
		chi_trace_pop(false, CHI_LAST_UNKNOWN);
}

// For threads that wait for this one.
static inline int32_t chi_trace_track(void)
{
	return chi_trace_on() ? chi_trace_current() : CHI_LAST_UNKNOWN;
}

// last (span_ring.h) has ended the wait.
static inline void chi_trace_end_wait(int32_t last)
{
	if (chi_trace_on())
		chi_trace_pop(false, last);
}

// Shown on the communication track, too.
static inline void chi_trace_end_communication(void)
{
	if (chi_trace_on())
		chi_trace_pop(true, CHI_LAST_UNKNOWN);
}
