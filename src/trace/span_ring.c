// A ring that grows to a limit and then keeps the newest spans. A span's entry is made when it
// begins: outer spans come first. Numbers of open spans detect overwritten ones.
#include "trace/span_ring.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

enum { FIRST_CAPACITY = 256 };

static bool is_kept(const chi_spans *s, uint64_t index)
{
	return s->count - index <= s->capacity;
}

static bool reserve(chi_spans *s)
{
	if (s->count < s->capacity || s->capacity == s->max)
		return s->capacity > 0;
	const size_t wanted = s->capacity == 0 ? FIRST_CAPACITY : 2 * s->capacity;
	const size_t capacity = wanted < s->max ? wanted : s->max;
	chi_error before;
	chi_error_save(&before);
	chi_span *ring = chi_realloc(s->ring, capacity * sizeof *ring);
	chi_error_restore(&before); // tracing causes no failure
	if (ring != NULL) {
		s->ring = ring;
		s->capacity = capacity;
	} else {
		s->max = s->capacity;
	}
	s->refused = s->capacity == 0;
	return s->capacity > 0;
}

static void copy_name(char *to, const char *name, size_t bytes)
{
	size_t n = strnlen(name, bytes);
	if (n == bytes)
		for (n--; n > 0 && ((unsigned char) name[n] & 0xc0) == 0x80; n--)
			;
	memcpy(to, name, n);
	to[n] = '\0';
}

static chi_span *add(chi_spans *s, int32_t track, choir_trace_category category)
{
	if (!reserve(s))
		return NULL;
	chi_span *span = &s->ring[s->count++ % s->capacity];
	span->track = track;
	span->category = (uint8_t) category;
	span->inside = 0;
	span->last = CHI_LAST_UNKNOWN;
	return span;
}

void chi_spans_push(
		chi_spans *s, chi_span_place place, choir_trace_category category, const char *name)
{
	const int depth = s->depth++;
	if (depth >= CHI_SPAN_DEPTH)
		return;
	const chi_open_span *around = depth > 0 ? &s->open[depth - 1] : NULL;
	chi_open_span *open = &s->open[depth];
	open->track = !place.inherit_track ? place.track : around != NULL ? around->track : s->own;
	open->mute = place.inherit_mute ? around != NULL && around->mute : place.mute;
	open->index = s->count;
	chi_span *span = add(s, open->track, category);
	if (span == NULL)
		return;
	span->depth = (uint8_t) depth;
	copy_name(span->name, name, sizeof span->name);
	span->end = -1;
	span->begin = chi_clock_now() - s->start;
}

static void show_again(chi_spans *s, uint64_t index)
{
	const chi_span first = s->ring[index % s->capacity];
	chi_span *again = add(s, CHOIR_TRACE_COMMUNICATION, (choir_trace_category) first.category);
	again->begin = first.begin;
	again->end = first.end;
	again->depth = 0;
	memcpy(again->name, first.name, sizeof first.name);
}

void chi_spans_pop(chi_spans *s, bool communication, int32_t last)
{
	if (s->depth == 0) // the trace began inside the span
		return;
	const int depth = --s->depth;
	if (depth >= CHI_SPAN_DEPTH || s->capacity == 0)
		return;
	const uint64_t index = s->open[depth].index;
	if (!is_kept(s, index))
		return;
	chi_span *span = &s->ring[index % s->capacity];
	span->end = chi_clock_now() - s->start;
	span->last = last;
	if (depth > 0 && is_kept(s, s->open[depth - 1].index))
		s->ring[s->open[depth - 1].index % s->capacity].inside += span->end - span->begin;
	if (communication)
		show_again(s, index);
}

void chi_spans_name(chi_spans *s, const char *name)
{
	copy_name(s->name, name, sizeof s->name);
}

int32_t chi_spans_track(const chi_spans *s)
{
	const int depth = s->depth < CHI_SPAN_DEPTH ? s->depth : CHI_SPAN_DEPTH;
	return depth > 0 ? s->open[depth - 1].track : s->own;
}

static const char *replica_name(int replica, char name[CHI_TRACK_NAME])
{
	snprintf(name, CHI_TRACK_NAME, "replica %d", replica);
	return name;
}

// "replica 3" or "worker 1". NULL: unknown.
static const char *last_name(int32_t last, char name[CHI_TRACK_NAME])
{
	if (last >= 0)
		return replica_name(last, name);
	if (last == CHI_LAST_UNKNOWN || last >= CHI_LAST_UNKNOWN / 2)
		return NULL;
	snprintf(name, CHI_TRACK_NAME, "worker %d", (int) (last - CHI_LAST_UNKNOWN - 1));
	return name;
}

bool chi_spans_muted(const chi_spans *s)
{
	const int depth = s->depth < CHI_SPAN_DEPTH ? s->depth : CHI_SPAN_DEPTH;
	return depth > 0 && s->open[depth - 1].mute;
}

uint64_t chi_spans_lost(const chi_spans *s)
{
	return s->count > s->capacity ? s->count - s->capacity : 0;
}

static const char *track_name(const chi_spans *s, int track, char name[CHI_TRACK_NAME])
{
	if (track == CHOIR_TRACE_COMMUNICATION)
		return "communication";
	return track < 0 ? s->name : replica_name(track, name);
}

void chi_spans_each(
		const chi_spans *s, double now, int worker, choir_trace_span_fn *fn, void *user)
{
	char name[CHI_TRACK_NAME], last[CHI_TRACK_NAME];
	for (uint64_t i = chi_spans_lost(s); i < s->count; i++) {
		const chi_span *span = &s->ring[i % s->capacity];
		const double end = span->end < span->begin ? now : span->end;
		const choir_trace_span shown = {
			.name = span->name,
			.category = (choir_trace_category) span->category,
			.track = span->track,
			.track_name = track_name(s, span->track, name),
			.begin = span->begin,
			.end = end,
			.own = end - span->begin - span->inside,
			.depth = span->depth,
			.worker = worker,
			.last = last_name(span->last, last),
		};
		fn(&shown, user);
	}
}
