// Spans for the rooms above. Begin and end are pairs in one function; off, each is one test of a
// word that nobody writes.
#pragma once

#include "choir/trace.h"

#include "base/atomic.h"

// Not zero: a trace is on. Only the sink (trace.c) writes it. Hidden, as all of this library's
// own, so that the test needs no look at where it lies.
extern __attribute__((visibility("hidden"))) chi_atomic32 chi_trace_wanted;

void chi_trace_push(choir_trace_category category, const char *name);
void chi_trace_push_replica(int track, int id, choir_trace_category category, const char *name);
void chi_trace_push_cross(choir_trace_category category, const char *name);
void chi_trace_pop(bool communication);

static inline bool chi_trace_on(void)
{
	return __builtin_expect(chi_atomic32_load(&chi_trace_wanted) != 0, 0);
}

// On the track of the span around it.
static inline void chi_trace_begin(choir_trace_category category, const char *name)
{
	if (chi_trace_on())
		chi_trace_push(category, name);
}

// On a replica's track, its number among the replicas of all workers, as all spans inside it.
// Scalars inside it are heard from the replica with id 0 only.
static inline void chi_trace_begin_replica(
		int track, int id, choir_trace_category category, const char *name)
{
	if (chi_trace_on())
		chi_trace_push_replica(track, id, category, name);
}

// On the track of the span around it, but what is inside is done for all replicas: scalars count.
static inline void chi_trace_begin_cross(choir_trace_category category, const char *name)
{
	if (chi_trace_on())
		chi_trace_push_cross(category, name);
}

static inline void chi_trace_end(void)
{
	if (chi_trace_on())
		chi_trace_pop(false);
}

// Ends a span that is also shown on the track of communication.
static inline void chi_trace_end_communication(void)
{
	if (chi_trace_on())
		chi_trace_pop(true);
}
