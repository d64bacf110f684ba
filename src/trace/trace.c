// A thread joins the process's one trace with its first span. Spans outlive their thread until the
// trace stops.
#include "trace/trace.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/status.h"
#include "base/lock.h"
#include "base/options.h"
#include "base/thread_local.h"
#include "base/thread.h"
#include "trace/chrome.h"
#include "trace/tensorboard.h"

#include <stdio.h>
#include <string.h>

enum { SPANS = 1 << 16, MAX_SPANS = 1 << 24, MAX_GONE = 64 };
static const double LOOK_AGAIN = 1e-4;
static const char missing_spans[] = "trace: out of memory: the spans of a thread are missing";

chi_atomic32 chi_trace_wanted;

static struct {
	chi_mutex lock;
	enum { OFF, ON, STOPPING } state;
	chi_spans *first, *last;
	int threads;
	uint64_t lost;
	size_t spans;
	double start, wall;
	int worker, workers;
	unsigned number;
	unsigned generation;
	choir_trace_span_fn *span;
	void *user;
	bool has_chrome, has_tensorboard;
	chi_chrome chrome;
	chi_tensorboard tensorboard;
	chi_error failure;
} sink = { .lock = CHI_MUTEX_STATIC(CHI_RANK_TRACE, "trace") };

static void thread_ends(void *spans);
static chi_thread_local own_spans = CHI_THREAD_LOCAL_STATIC(CHI_RANK_TRACE, "trace", thread_ends);

const char *choir_trace_category_name(choir_trace_category category)
{
	static const char *const names[CHOIR_TRACE_CATEGORIES] = { "other", "compute", "wait",
		"reduce", "update", "input", "checkpoint" };
	const size_t i = (size_t) category;
	return i < CHOIR_TRACE_CATEGORIES ? names[i] : "unknown category";
}

// With the lock.
static void take_off(const chi_spans *s)
{
	chi_spans **at = &sink.first, *before = NULL;
	while (*at != s) {
		before = *at;
		at = &before->next;
	}
	*at = s->next;
	if (sink.last == s)
		sink.last = before;
}

// With the lock.
static void forget(chi_spans *s)
{
	if (s->listed)
		take_off(s);
	chi_free(s->ring);
	chi_free(s);
}

static void thread_ends(void *spans)
{
	chi_spans *s = spans;
	chi_mutex_lock(&sink.lock);
	s->gone = true;
	if (sink.state == OFF || !s->listed)
		forget(s);
	chi_mutex_unlock(&sink.lock);
}

// The oldest's spans are lost. With the lock.
static void bound_gone(void)
{
	int gone = 0;
	chi_spans *oldest = NULL;
	for (chi_spans *s = sink.first; s != NULL; s = s->next)
		if (s->gone) {
			gone++;
			oldest = oldest == NULL ? s : oldest;
		}
	if (gone < MAX_GONE)
		return;
	sink.lost += oldest->count;
	forget(oldest);
}

static void append(chi_spans *s)
{
	bound_gone();
	if (sink.last == NULL)
		sink.first = s;
	else
		sink.last->next = s;
	sink.last = s;
	s->listed = true;
}

// s is busy, the lock held and the trace on. The stopping thread reads the list without the lock.
static void enlist(chi_spans *s)
{
	if (!s->listed)
		append(s);
	s->max = sink.spans;
	s->count = 0;
	s->depth = 0;
	s->own = CHOIR_TRACE_PROGRAM - sink.threads++;
	s->start = sink.start;
	s->refused = false;
	chi_thread_own_name(s->name);
	chi_atomic32_store(&s->state, CHI_SPANS_BUSY);
}

static chi_spans *make(void)
{
	chi_error before;
	chi_error_save(&before);
	chi_spans *s = chi_alloc(sizeof *s);
	if (s != NULL && !chi_thread_local_set(&own_spans, s)) {
		chi_free(s);
		s = NULL;
	}
	chi_error_restore(&before); // tracing causes no failure
	return s;
}

static void keep_failure(choir_status status, const char *text)
{
	if (sink.failure.status != CHOIR_OK)
		return;
	sink.failure.status = status;
	snprintf(sink.failure.text, sizeof sink.failure.text, "%s", text);
}

static chi_spans *join(chi_spans *s)
{
	bool joined = false;
	if (s == NULL)
		s = make();
	chi_mutex_lock(&sink.lock);
	if (s == NULL)
		keep_failure(CHOIR_NO_MEMORY, missing_spans);
	else if (sink.state == ON) {
		enlist(s);
		joined = true;
	}
	chi_mutex_unlock(&sink.lock);
	return joined ? s : NULL;
}

// NULL: this thread does not record.
static chi_spans *enter(bool may_join)
{
	chi_spans *s = chi_thread_local_get(&own_spans);
	if (s != NULL && chi_atomic32_change(&s->state, CHI_SPANS_IDLE, CHI_SPANS_BUSY))
		return s;
	return may_join ? join(s) : NULL;
}

static void leave(chi_spans *s)
{
	chi_atomic32_store(&s->state, CHI_SPANS_IDLE);
}

static void push(chi_span_place place, choir_trace_category category, const char *name)
{
	chi_spans *s = enter(true);
	if (s == NULL)
		return;
	chi_spans_push(s, place, category, name);
	leave(s);
}

void chi_trace_push(choir_trace_category category, const char *name)
{
	push((chi_span_place){ .inherit_track = true, .inherit_mute = true }, category, name);
}

void chi_trace_push_replica(int track, int id, choir_trace_category category, const char *name)
{
	push((chi_span_place){ .track = track, .mute = id != 0 }, category, name);
}

void chi_trace_push_cross(choir_trace_category category, const char *name)
{
	push((chi_span_place){ .inherit_track = true }, category, name);
}

void chi_trace_pop(bool communication, int32_t last)
{
	chi_spans *s = enter(false);
	if (s == NULL)
		return;
	chi_spans_pop(s, communication, last);
	leave(s);
}

int32_t chi_trace_current(void)
{
	chi_spans *s = enter(false);
	if (s == NULL)
		return CHI_LAST_UNKNOWN;
	const int32_t track = chi_spans_track(s);
	leave(s);
	return track;
}

void choir_trace_begin(choir_trace_category category, const char *name)
{
	if ((size_t) category >= CHOIR_TRACE_CATEGORIES)
		category = CHOIR_TRACE_OTHER;
	chi_trace_begin(category, name == NULL ? "" : name);
}

void choir_trace_end(void)
{
	chi_trace_end();
}

bool choir_trace_is_on(void)
{
	return chi_trace_on();
}

void choir_trace_name_track(const char *name)
{
	chi_spans *s = chi_trace_on() && name != NULL ? enter(true) : NULL;
	if (s == NULL)
		return;
	chi_spans_name(s, name);
	leave(s);
}

static bool is_muted(void)
{
	chi_spans *s = enter(false);
	if (s == NULL)
		return false;
	const bool muted = chi_spans_muted(s);
	leave(s);
	return muted;
}

void choir_trace_scalar(const char *tag, int64_t step, double value)
{
	if (!chi_trace_on() || is_muted())
		return;
	chi_error before;
	chi_error_save(&before);
	chi_mutex_lock(&sink.lock);
	if (sink.state == ON && sink.has_tensorboard && sink.generation == chi_fork_generation()) {
		if (tag == NULL || tag[0] == '\0')
			keep_failure(CHOIR_INVALID, "trace: a scalar needs a name");
		else if (chi_tensorboard_scalar(&sink.tensorboard, tag, step, value) != CHOIR_OK)
			keep_failure(choir_error_status(), choir_error());
	}
	chi_mutex_unlock(&sink.lock);
	chi_error_restore(&before);
}

static choir_status open_writers(const char *path, const char *log)
{
	sink.has_chrome = sink.has_tensorboard = false;
	if (path != NULL)
		CHOIR_TRY(chi_chrome_open(&sink.chrome, path));
	sink.has_chrome = path != NULL;
	if (log == NULL)
		return CHOIR_OK;
	const choir_status status = chi_tensorboard_open(&sink.tensorboard, log, sink.number++);
	sink.has_tensorboard = status == CHOIR_OK;
	if (status != CHOIR_OK && sink.has_chrome)
		chi_chrome_abort(&sink.chrome);
	return status;
}

static choir_status begin(const char *path, const choir_trace_options *o)
{
	if (o->spans < 0 || o->spans > MAX_SPANS)
		return choir_fail(CHOIR_INVALID,
				"trace: start: %lld spans per thread given; 0 to %d needed", (long long) o->spans,
				MAX_SPANS);
	const int workers = o->workers == 0 ? 1 : o->workers;
	if (workers < 1 || o->worker < 0 || o->worker >= workers)
		return choir_fail(CHOIR_INVALID,
				"trace: start: worker %d of %d given; 0 to workers - 1 needed", o->worker,
				workers);
	CHOIR_TRY(open_writers(path, o->log));
	sink.worker = o->worker;
	sink.workers = workers;
	sink.spans = o->spans == 0 ? SPANS : (size_t) o->spans;
	sink.span = o->span;
	sink.user = o->user;
	sink.lost = 0;
	sink.threads = 0;
	sink.failure.status = CHOIR_OK;
	sink.generation = chi_fork_generation();
	sink.wall = chi_clock_wall();
	sink.start = chi_clock_now();
	sink.state = ON;
	chi_atomic32_exchange(&chi_trace_wanted, 1);
	return CHOIR_OK;
}

static choir_status start(const char *path, const choir_trace_options *o)
{
	if (sink.state != OFF)
		return choir_fail(CHOIR_STATE, "trace: start: a trace is on already");
	choir_trace_options all;
	CHOIR_TRY(chi_options_take("trace: start: the options'", &all, sizeof all, o));
	return begin(path, &all);
}

// The first track is the program's. With the lock.
static void lead(chi_spans *s)
{
	if (s == NULL) {
		sink.threads++;
		keep_failure(CHOIR_NO_MEMORY, missing_spans);
		return;
	}
	enlist(s);
	chi_spans_name(s, "program");
	leave(s);
}

choir_status choir_trace_start(const char *path, const choir_trace_options *o)
{
	chi_spans *s = chi_thread_local_get(&own_spans);
	if (s == NULL)
		s = make();
	chi_mutex_lock(&sink.lock);
	const choir_status status = start(path, o);
	if (status == CHOIR_OK)
		lead(s);
	chi_mutex_unlock(&sink.lock);
	return status;
}

// A forked child leaves the parent's threads and files alone.
static choir_status abandon(void)
{
	for (chi_spans *s = sink.first; s != NULL; s = s->next) {
		chi_atomic32_store(&s->state, CHI_SPANS_CLOSED);
		s->ring = NULL;
		s->capacity = s->count = 0;
		s->refused = false;
	}
	sink.state = OFF;
	return choir_fail(
			CHOIR_STATE, "trace: stop: the trace was started in the parent, before the fork");
}

// With the lock. Afterwards nothing is recorded.
static choir_status close_all(void)
{
	if (sink.state != ON)
		return choir_fail(CHOIR_STATE, "trace: stop: no trace is on");
	chi_atomic32_exchange(&chi_trace_wanted, 0);
	sink.state = STOPPING;
	if (sink.generation != chi_fork_generation())
		return abandon();
	for (chi_spans *s = sink.first; s != NULL; s = s->next) {
		while (!chi_atomic32_change(&s->state, CHI_SPANS_IDLE, CHI_SPANS_CLOSED)) {
			if (chi_atomic32_load(&s->state) == CHI_SPANS_CLOSED)
				break;
			// The thread is only writing one span.
			(void) chi_futex_wait(&s->state, CHI_SPANS_BUSY, chi_clock_deadline(LOOK_AGAIN));
		}
		sink.lost += chi_spans_lost(s);
		if (s->refused)
			keep_failure(CHOIR_NO_MEMORY, missing_spans);
	}
	return CHOIR_OK;
}

static choir_status write_chrome(double now)
{
	chi_chrome *c = &sink.chrome;
	chi_chrome_begin(c, sink.wall, sink.lost);
	chi_chrome_name(c, sink.worker, CHOIR_TRACE_PROGRAM, "program");
	for (const chi_spans *s = sink.first; s != NULL; s = s->next)
		chi_spans_each(s, now, sink.worker, chi_chrome_span, c);
	return chi_chrome_end(c, sink.workers);
}

// Without the lock: all are closed, and none can join.
static void write_all(double now)
{
	if (sink.has_chrome && write_chrome(now) != CHOIR_OK)
		keep_failure(choir_error_status(), choir_error());
	if (sink.has_tensorboard && chi_tensorboard_close(&sink.tensorboard) != CHOIR_OK)
		keep_failure(choir_error_status(), choir_error());
	chi_mutex_check_none_held();
	for (const chi_spans *s = sink.first; s != NULL && sink.span != NULL; s = s->next)
		chi_spans_each(s, now, sink.worker, sink.span, sink.user);
}

static void clear(void)
{
	for (chi_spans *s = sink.first, *next; s != NULL; s = next) {
		next = s->next;
		chi_free(s->ring);
		s->ring = NULL;
		s->capacity = 0;
		s->count = 0;
		s->refused = false;
		if (s->gone)
			forget(s);
	}
	sink.state = OFF;
}

choir_status choir_trace_stop(void)
{
	chi_mutex_lock(&sink.lock);
	const choir_status status = close_all();
	const double now = chi_clock_now() - sink.start;
	chi_mutex_unlock(&sink.lock);
	CHOIR_TRY(status);
	write_all(now);
	chi_mutex_lock(&sink.lock);
	clear();
	const chi_error failure = sink.failure;
	chi_mutex_unlock(&sink.lock);
	if (failure.status != CHOIR_OK)
		chi_error_restore(&failure);
	return failure.status;
}

int64_t choir_trace_dropped_spans(void)
{
	chi_mutex_lock(&sink.lock);
	const uint64_t lost = sink.lost;
	chi_mutex_unlock(&sink.lock);
	return (int64_t) lost;
}
