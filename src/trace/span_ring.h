// A thread writes its spans only while its state is busy. Stopping the trace waits for idle, sets
// closed, and owns the spans. So recording takes no lock.
#pragma once

#include "base/atomic.h"
#include "choir/trace.h"

enum { CHI_SPAN_NAME = 34, CHI_TRACK_NAME = 32, CHI_SPAN_DEPTH = 64 };

typedef struct {
	double begin, end; // seconds since the start; end < begin: open
	double inside; // of inner spans
	int32_t track;
	uint8_t category, depth;
	char name[CHI_SPAN_NAME];
	int32_t last; // of a wait: who came last
} chi_span;

// A track, a worker, or unknown.
enum { CHI_LAST_UNKNOWN = INT32_MIN };
static inline int32_t chi_last_worker(int worker)
{
	return CHI_LAST_UNKNOWN + 1 + worker;
}

typedef struct {
	uint64_t index;
	int32_t track;
	bool mute;
} chi_open_span;

typedef enum { CHI_SPANS_CLOSED, CHI_SPANS_IDLE, CHI_SPANS_BUSY } chi_spans_state;

typedef struct chi_spans {
	chi_atomic32 state;
	chi_span *ring;
	size_t capacity, max;
	uint64_t count;
	int depth;
	chi_open_span open[CHI_SPAN_DEPTH];
	int32_t own;
	double start;
	char name[CHI_TRACK_NAME];
	bool refused; // out of memory: no ring
	bool listed; // else only its thread knows it
	bool gone;
	struct chi_spans *next;
} chi_spans;

// For the thread itself, while busy. inherit_*: from the enclosing span.
typedef struct {
	bool inherit_track, inherit_mute;
	int32_t track;
	bool mute;
} chi_span_place;
void chi_spans_push(
		chi_spans *s, chi_span_place place, choir_trace_category category, const char *name);
void chi_spans_pop(chi_spans *s, bool communication, int32_t last);
int32_t chi_spans_track(const chi_spans *s);
void chi_spans_name(chi_spans *s, const char *name);
bool chi_spans_muted(const chi_spans *s);

// Only when closed.
uint64_t chi_spans_lost(const chi_spans *s);
// In order of beginning. Open spans end at now, in seconds since the start.
void chi_spans_each(
		const chi_spans *s, double now, int worker, choir_trace_span_fn *fn, void *user);
