// A JSON list of events: "X" is a span with begin and duration in microseconds, "M" a track's name
// and position. A worker is a process, a track a thread.
#include "trace/chrome.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

// In display order.
enum { TID_PROGRAM = 0, TID_REPLICA = 1, TID_COMMUNICATION = 1 << 24 };

choir_status chi_chrome_open(chi_chrome *c, const char *path)
{
	*c = (chi_chrome){ .first = true };
	c->file = chi_writer_new(path);
	return c->file == NULL ? choir_error_status() : CHOIR_OK;
}

static void free_parts(chi_chrome *c)
{
	chi_text_free(&c->line);
	chi_free(c->track);
	c->track = NULL;
	c->tracks = c->capacity = 0;
}

void chi_chrome_abort(chi_chrome *c)
{
	chi_writer_abort(c->file);
	free_parts(c);
}

static int tid_of(int track)
{
	if (track >= 0)
		return TID_REPLICA + track;
	if (track == CHOIR_TRACE_PROGRAM)
		return TID_PROGRAM;
	return TID_COMMUNICATION + (CHOIR_TRACE_COMMUNICATION - track);
}

bool chi_chrome_track_of(int64_t tid, int *track)
{
	if (tid < 0 || tid > INT32_MAX)
		return false;
	*track = tid == TID_PROGRAM ? CHOIR_TRACE_PROGRAM
			: tid < TID_COMMUNICATION
			? (int) tid - TID_REPLICA
			: CHOIR_TRACE_COMMUNICATION - ((int) tid - TID_COMMUNICATION);
	return true;
}

int chi_chrome_category(const char *name)
{
	for (int i = 0; i < CHOIR_TRACE_CATEGORIES; i++)
		if (strcmp(name, choir_trace_category_name((choir_trace_category) i)) == 0)
			return i;
	return CHOIR_NONE;
}

static void put_line(chi_chrome *c)
{
	if (c->status == CHOIR_OK && c->line.failed)
		c->status = CHOIR_NO_MEMORY;
	if (c->status == CHOIR_OK)
		c->status = chi_writer_write(c->file, c->line.data, c->line.length);
	c->line.length = 0;
}

static void begin_event(chi_chrome *c, const char *kind, int worker, int tid)
{
	chi_text_add(&c->line, "%s{\"ph\": \"%s\", \"pid\": %d, \"tid\": %d", c->first ? "" : ",\n",
			kind, worker + 1, tid);
	c->first = false;
}

// The latest tracks are the likeliest.
static bool is_named(const chi_chrome *c, int worker, int track)
{
	for (size_t i = c->tracks; i-- > 0;)
		if (c->track[i].track == track && c->track[i].worker == worker)
			return true;
	return false;
}

void chi_chrome_name(chi_chrome *c, int worker, int track, const char *name)
{
	if (c->status != CHOIR_OK || is_named(c, worker, track))
		return;
	if (!chi_grow(&c->track, &c->capacity, c->tracks + 1, sizeof *c->track)) {
		c->status = CHOIR_NO_MEMORY;
		return;
	}
	chi_chrome_track *t = &c->track[c->tracks++];
	*t = (chi_chrome_track){ .worker = worker, .track = track };
	snprintf(t->name, sizeof t->name, "%s", name);
}

void chi_chrome_begin(chi_chrome *c, double wall, uint64_t lost)
{
	chi_text_add(&c->line,
			"{\"displayTimeUnit\": \"ms\",\n\"otherData\": {\"started\": %.3f, "
			"\"lost_spans\": %llu},\n\"traceEvents\": [\n",
			wall, (unsigned long long) lost);
	put_line(c);
}

void chi_chrome_span(const choir_trace_span *s, void *chrome)
{
	chi_chrome *c = chrome;
	chi_chrome_name(c, s->worker, s->track, s->track_name);
	begin_event(c, "X", s->worker, tid_of(s->track));
	chi_text_add(&c->line,
			", \"ts\": %.3f, \"dur\": %.3f, \"cat\": \"%s\", \"name\": ", 1e6 * s->begin,
			1e6 * (s->end - s->begin), choir_trace_category_name(s->category));
	chi_text_add_json(&c->line, s->name);
	chi_text_add(&c->line, ", \"args\": {\"own\": %.3f, \"depth\": %d", 1e6 * s->own, s->depth);
	if (s->last != NULL)
		chi_text_add(&c->line, ", \"last\": \"%s\"", s->last);
	chi_text_add(&c->line, "}}");
	put_line(c);
}

static void put_process(chi_chrome *c, int worker, int workers)
{
	begin_event(c, "M", worker, TID_PROGRAM);
	chi_text_add(&c->line, ", \"name\": \"process_name\", \"args\": {\"name\": \"");
	if (workers > 1)
		chi_text_add(&c->line, "worker %d\"}}", worker);
	else
		chi_text_add(&c->line, "choir\"}}");
}

static void put_track(chi_chrome *c, const chi_chrome_track *t, int workers)
{
	const int tid = tid_of(t->track);
	if (t->track == CHOIR_TRACE_PROGRAM)
		put_process(c, t->worker, workers);
	begin_event(c, "M", t->worker, tid);
	chi_text_add(&c->line, ", \"name\": \"thread_name\", \"args\": {\"name\": ");
	chi_text_add_json(&c->line, t->name);
	chi_text_add(&c->line, "}}");
	begin_event(c, "M", t->worker, tid);
	chi_text_add(
			&c->line, ", \"name\": \"thread_sort_index\", \"args\": {\"sort_index\": %d}}", tid);
	put_line(c);
}

choir_status chi_chrome_end(chi_chrome *c, int workers)
{
	for (size_t i = 0; i < c->tracks; i++)
		put_track(c, &c->track[i], workers);
	chi_text_add(&c->line, "\n]}\n");
	put_line(c);
	free_parts(c);
	if (c->status == CHOIR_OK)
		return chi_writer_commit(c->file);
	chi_writer_abort(c->file);
	return c->status;
}
