// What a thread records, and how it is looked at afterwards. A thread writes its own memory only
// while its state is busy; who stops the trace closes it when it is idle, and from then on the
// spans are the stopper's. So recording takes no lock, and nothing is freed under a writer.
#pragma once

#include "base/atomic.h"
#include "choir/trace.h"

enum { CHI_SPAN_NAME = 34, CHI_TRACK_NAME = 32, CHI_SPAN_DEPTH = 64 };

// 64 bytes: a line of the cache.
typedef struct {
	double begin, end; // seconds since the start; end below begin: it has not ended
	double inside; // seconds in spans inside it
	int32_t track;
	uint8_t category, depth;
	char name[CHI_SPAN_NAME];
} chi_span;

typedef struct {
	uint64_t index; // of the span, among all of the thread
	int32_t track;
	bool mute; // no scalars: the replica is not the one that is heard
} chi_open_span;

typedef enum { CHI_SPANS_CLOSED, CHI_SPANS_IDLE, CHI_SPANS_BUSY } chi_spans_state;

typedef struct chi_spans {
	chi_atomic32 state;
	chi_span *ring;
	size_t capacity, max; // spans that it has memory for, and may have
	uint64_t count; // spans so far
	int depth;
	chi_open_span open[CHI_SPAN_DEPTH];
	int32_t own; // track of what is in no replica
	double start; // the trace's, as chi_clock_now
	char name[CHI_TRACK_NAME]; // of its own track
	bool refused; // there was no memory at all
	bool listed; // it has recorded; nobody else knows one that has not
	bool gone; // the thread has ended
	struct chi_spans *next; // the thread that joined next
} chi_spans;

// With the state busy, by the thread itself. inherit: the track and the muteness are those of the
// span around it.
typedef struct {
	bool inherit_track, inherit_mute;
	int32_t track;
	bool mute;
} chi_span_place;
void chi_spans_push(
		chi_spans *s, chi_span_place place, choir_trace_category category, const char *name);
void chi_spans_pop(chi_spans *s, bool communication);
void chi_spans_name(chi_spans *s, const char *name);
bool chi_spans_muted(const chi_spans *s);

// "replica 3" into name.
const char *chi_spans_replica_name(int replica, char name[CHI_TRACK_NAME]);
// When it is closed. Spans that were recorded and are not kept any more.
uint64_t chi_spans_lost(const chi_spans *s);
// Calls fn with each span, in the order in which they began; those that have not ended end at now,
// in seconds since the start.
void chi_spans_each(const chi_spans *s, double now, choir_trace_span_fn *fn, void *user);
