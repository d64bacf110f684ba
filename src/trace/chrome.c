// Chrome's trace event format: JSON with a list of events. "X" is a span with begin and duration
// in microseconds. "M" names a track and its position. Chrome shows a trace as a process, a track
// as a thread.
#include "trace/chrome.h"

// In display order.
enum { TID_PROGRAM = 0, TID_REPLICA = 1, TID_COMMUNICATION = 1 << 24 };

choir_status chi_chrome_open(chi_chrome *c, const char *path)
{
	*c = (chi_chrome){ .first = true };
	c->file = chi_writer_new(path);
	return c->file == NULL ? choir_error_status() : CHOIR_OK;
}

void chi_chrome_abort(chi_chrome *c)
{
	chi_writer_abort(c->file);
}

static int tid_of(int track)
{
	if (track >= 0)
		return TID_REPLICA + track;
	if (track == CHOIR_TRACE_PROGRAM)
		return TID_PROGRAM;
	return TID_COMMUNICATION + (CHOIR_TRACE_COMMUNICATION - track);
}

static void put_line(chi_chrome *c)
{
	if (c->status == CHOIR_OK && c->line.failed)
		c->status = CHOIR_NO_MEMORY;
	if (c->status == CHOIR_OK)
		c->status = chi_writer_write(c->file, c->line.data, c->line.length);
	c->line.length = 0;
}

static void begin_event(chi_chrome *c, const char *kind, int tid)
{
	chi_text_add(&c->line, "%s{\"ph\": \"%s\", \"pid\": 1, \"tid\": %d", c->first ? "" : ",\n",
			kind, tid);
	c->first = false;
}

static void put_span(const choir_trace_span *s, void *user)
{
	chi_chrome *c = user;
	if (s->track >= c->replicas)
		c->replicas = s->track + 1;
	c->communication = c->communication || s->track == CHOIR_TRACE_COMMUNICATION;
	begin_event(c, "X", tid_of(s->track));
	chi_text_add(&c->line,
			", \"ts\": %.3f, \"dur\": %.3f, \"cat\": \"%s\", \"name\": ", 1e6 * s->begin,
			1e6 * (s->end - s->begin), choir_trace_category_name(s->category));
	chi_text_add_json(&c->line, s->name);
	chi_text_add(&c->line, "}");
	put_line(c);
}

static void put_track(chi_chrome *c, int tid, const char *name)
{
	begin_event(c, "M", tid);
	chi_text_add(&c->line, ", \"name\": \"thread_name\", \"args\": {\"name\": ");
	chi_text_add_json(&c->line, name);
	chi_text_add(&c->line, "}}");
	begin_event(c, "M", tid);
	chi_text_add(
			&c->line, ", \"name\": \"thread_sort_index\", \"args\": {\"sort_index\": %d}}", tid);
	put_line(c);
}

static bool has_own_track(const chi_spans *s)
{
	for (uint64_t i = chi_spans_lost(s); i < s->count; i++)
		if (s->ring[i % s->capacity].track == s->own)
			return true;
	return s->own == CHOIR_TRACE_PROGRAM;
}

static void put_tracks(chi_chrome *c, const chi_spans *threads)
{
	char name[CHI_TRACK_NAME];
	begin_event(c, "M", TID_PROGRAM);
	chi_text_add(&c->line, ", \"name\": \"process_name\", \"args\": {\"name\": \"choir\"}}");
	for (const chi_spans *s = threads; s != NULL; s = s->next)
		if (has_own_track(s))
			put_track(c, tid_of(s->own), s->name);
	for (int i = 0; i < c->replicas; i++)
		put_track(c, tid_of(i), chi_spans_replica_name(i, name));
	if (c->communication)
		put_track(c, TID_COMMUNICATION, "communication");
}

choir_status chi_chrome_write(
		chi_chrome *c, const chi_spans *threads, double now, double wall, uint64_t lost)
{
	chi_text_add(&c->line,
			"{\"displayTimeUnit\": \"ms\",\n\"otherData\": {\"started\": %.3f, "
			"\"lost_spans\": %llu},\n\"traceEvents\": [\n",
			wall, (unsigned long long) lost);
	for (const chi_spans *s = threads; s != NULL; s = s->next)
		chi_spans_each(s, now, put_span, c);
	put_tracks(c, threads);
	chi_text_add(&c->line, "\n]}\n");
	put_line(c);
	chi_text_free(&c->line);
	if (c->status == CHOIR_OK)
		return chi_writer_commit(c->file);
	chi_chrome_abort(c);
	return c->status;
}
