// The trace itself: what is recorded, by whom, how much of it is kept, and what goes wrong.
#include "trace/record.h"
#include "trace/trace.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"
#include "test.h"

#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static record r;

static void assert_error(choir_status status, const char *text)
{
	assert_int_equal(choir_error_status(), status);
	assert_text_holds(choir_error(), text);
	chi_error_clear();
}

static void spin(double seconds)
{
	const double end = chi_clock_now() + seconds;
	while (chi_clock_now() < end)
		;
}

TEST(test_off)
{
	const uint64_t before = chi_alloc_count();
	assert_false(choir_trace_is_on());
	choir_trace_begin(CHOIR_TRACE_COMPUTE, "nothing");
	choir_trace_name_track("nobody");
	choir_trace_scalar("loss", 1, 2);
	choir_trace_scalar(NULL, 1, 2);
	choir_trace_end();
	choir_trace_end();
	assert_int_equal(chi_alloc_count(), before);
	assert_int_equal(choir_trace_stop(), CHOIR_STATE);
	assert_error(CHOIR_STATE, "trace: stop:*trace");
}

TEST(test_nesting)
{
	record_start(&r, 0);
	assert_true(choir_trace_is_on());
	choir_trace_begin(CHOIR_TRACE_INPUT, "batch");
	spin(1e-3);
	choir_trace_begin(CHOIR_TRACE_WAIT, "disk");
	spin(2e-3);
	choir_trace_end();
	choir_trace_begin(CHOIR_TRACE_COMPUTE, "parse");
	choir_trace_end();
	choir_trace_end();
	choir_trace_begin(CHOIR_TRACE_OTHER, "left open");
	record_stop();
	assert_false(choir_trace_is_on());
	assert_int_equal(r.n, 4);
	static const char *const names[] = { "batch", "disk", "parse", "left open" };
	static const int depths[] = { 0, 1, 1, 0 };
	for (int i = 0; i < 4; i++) {
		assert_string_equal(r.span[i].name, names[i]);
		assert_int_equal(r.span[i].shown.depth, depths[i]);
		assert_int_equal(r.span[i].shown.track, CHOIR_TRACE_PROGRAM);
		assert_string_equal(r.span[i].track, "program");
		assert_true(r.span[i].shown.begin >= 0);
		assert_true(r.span[i].shown.end >= r.span[i].shown.begin);
	}
	const choir_trace_span *batch = &r.span[0].shown, *disk = &r.span[1].shown;
	assert_int_equal(batch->category, CHOIR_TRACE_INPUT);
	assert_int_equal(disk->category, CHOIR_TRACE_WAIT);
	assert_true(disk->begin >= batch->begin && disk->end <= batch->end);
	assert_true(disk->end - disk->begin >= 2e-3);
	assert_true(batch->end - batch->begin >= 3e-3);
	const double inside = disk->end - disk->begin + r.span[2].shown.end - r.span[2].shown.begin;
	assert_true(batch->own >= 1e-3);
	assert_true(fabs(batch->own + inside - (batch->end - batch->begin)) < 1e-9);
	assert_int_equal(choir_trace_dropped_spans(), 0);
}

TEST(test_replicas)
{
	record_start(&r, 0);
	chi_trace_begin(CHOIR_TRACE_OTHER, "run");
	chi_trace_begin_replica(3, 3, CHOIR_TRACE_COMPUTE, "replica");
	chi_trace_begin(CHOIR_TRACE_REDUCE, "sum");
	chi_trace_end_communication();
	chi_trace_begin_cross(CHOIR_TRACE_COMPUTE, "merge");
	chi_trace_end();
	chi_trace_end();
	choir_trace_begin(CHOIR_TRACE_INPUT, "mine");
	choir_trace_end();
	chi_trace_end();
	record_stop();
	assert_int_equal(r.n, 6);
	assert_non_null(record_find(&r, CHOIR_TRACE_PROGRAM, "run", 0));
	assert_non_null(record_find(&r, CHOIR_TRACE_PROGRAM, "mine", 0));
	assert_string_equal(record_find(&r, 3, "replica", 0)->track, "replica 3");
	assert_non_null(record_find(&r, 3, "merge", 0));
	const kept_span *sum = record_find(&r, 3, "sum", 0);
	const kept_span *again = record_find(&r, CHOIR_TRACE_COMMUNICATION, "sum", 0);
	assert_string_equal(again->track, "communication");
	assert_true(again->shown.begin == sum->shown.begin && again->shown.end == sum->shown.end);
	assert_int_equal(again->shown.category, CHOIR_TRACE_REDUCE);
	// What communicates is shown twice, but counted once.
	const choir_trace_span *whole = &record_find(&r, 3, "replica", 0)->shown;
	const double parts =
			record_seconds(&r, 3, CHOIR_TRACE_COMPUTE) + record_seconds(&r, 3, CHOIR_TRACE_REDUCE);
	assert_true(fabs(parts - (whole->end - whole->begin)) < 1e-9);
}

TEST(test_names)
{
	record_start(&r, 0);
	choir_trace_begin(CHOIR_TRACE_OTHER, "0123456789012345678901234567890123456789");
	choir_trace_end();
	// 32 letters, then a letter of two bytes that would end behind the room.
	choir_trace_begin(CHOIR_TRACE_OTHER, "01234567890123456789012345678901\xc3\xa9");
	choir_trace_end();
	choir_trace_begin((choir_trace_category) 99, NULL);
	choir_trace_end();
	choir_trace_name_track(NULL);
	choir_trace_name_track("the main thread, which has a very long name");
	record_stop();
	assert_string_equal(r.span[0].name, "012345678901234567890123456789012");
	assert_string_equal(r.span[1].name, "01234567890123456789012345678901");
	assert_string_equal(r.span[2].name, "");
	assert_int_equal(r.span[2].shown.category, CHOIR_TRACE_OTHER);
	assert_string_equal(r.span[0].track, "the main thread, which has a ve");
	assert_string_equal(choir_trace_category_name(CHOIR_TRACE_COMPUTE), "compute");
	assert_string_equal(choir_trace_category_name((choir_trace_category) 7), "unknown category");
	assert_string_equal(choir_trace_category_name((choir_trace_category) -1), "unknown category");
}

// Who keeps few spans keeps the newest; one that was overwritten while it was open is lost.
TEST(test_newest)
{
	char name[16];
	const double begun = chi_clock_now();
	record_start(&r, 4);
	choir_trace_begin(CHOIR_TRACE_OTHER, "around");
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof name, "%d", i);
		choir_trace_begin(CHOIR_TRACE_OTHER, name);
		choir_trace_end();
	}
	choir_trace_end();
	record_stop();
	assert_int_equal(r.n, 4);
	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof name, "%d", 6 + i);
		assert_string_equal(r.span[i].name, name);
		assert_true(r.span[i].shown.end < chi_clock_now() - begun);
	}
	assert_int_equal(choir_trace_dropped_spans(), 7);
	record_start(&r, 1);
	choir_trace_begin(CHOIR_TRACE_REDUCE, "sum");
	chi_trace_end_communication();
	record_stop();
	assert_int_equal(r.n, 1);
	assert_int_equal(r.span[0].shown.track, CHOIR_TRACE_COMMUNICATION);
	assert_int_equal(choir_trace_dropped_spans(), 1);
}

TEST(test_deep)
{
	record_start(&r, 0);
	for (int i = 0; i < 100; i++)
		choir_trace_begin(CHOIR_TRACE_OTHER, "deep");
	for (int i = 0; i < 100; i++)
		choir_trace_end();
	choir_trace_end(); // one too many
	choir_trace_begin(CHOIR_TRACE_OTHER, "flat");
	choir_trace_end();
	record_stop();
	assert_int_equal(record_count(&r, CHOIR_TRACE_PROGRAM, "deep"), 64);
	assert_int_equal(record_find(&r, CHOIR_TRACE_PROGRAM, "flat", 0)->shown.depth, 0);
}

// A trace that begins or ends inside a span, which is then not in it, or ends with it.
TEST(test_inside_a_span)
{
	choir_trace_begin(CHOIR_TRACE_OTHER, "before");
	record_start(&r, 0);
	choir_trace_end();
	choir_trace_begin(CHOIR_TRACE_OTHER, "open");
	record_stop();
	assert_int_equal(r.n, 1);
	assert_string_equal(r.span[0].name, "open");
	record_start(&r, 0);
	choir_trace_end();
	choir_trace_begin(CHOIR_TRACE_OTHER, "next");
	choir_trace_end();
	record_stop();
	assert_int_equal(r.n, 1);
	assert_int_equal(r.span[0].shown.depth, 0);
}

typedef struct {
	chi_thread thread;
	chi_atomic32 *go_on;
	int spans;
} worker;

static void record_some(void *arg)
{
	worker *w = arg;
	int i = 0;
	do {
		choir_trace_begin(CHOIR_TRACE_COMPUTE, "outer");
		choir_trace_begin(CHOIR_TRACE_WAIT, "inner");
		choir_trace_end();
		choir_trace_end();
	} while (++i < w->spans || (w->go_on != NULL && chi_atomic32_load(w->go_on) != 0));
}

static void start_worker(worker *w)
{
	assert_int_equal(chi_thread_start(&w->thread, "recorder", record_some, w), CHOIR_OK);
}

// Threads that end before the trace does leave their spans, each on a track of its own.
TEST(test_threads)
{
	enum { THREADS = 4, SPANS = 100 };
	worker w[THREADS];
	record_start(&r, 0);
	for (int i = 0; i < THREADS; i++) {
		w[i] = (worker){ .spans = SPANS };
		start_worker(&w[i]);
	}
	for (int i = 0; i < THREADS; i++)
		chi_thread_join(&w[i].thread);
	record_stop();
	assert_int_equal(r.n, 2 * THREADS * SPANS);
	for (int i = 0; i < THREADS; i++) {
		const int track = CHOIR_TRACE_PROGRAM - 1 - i;
		assert_int_equal(record_count(&r, track, "outer"), SPANS);
		assert_int_equal(record_count(&r, track, "inner"), SPANS);
		assert_string_equal(record_find(&r, track, "outer", 0)->track, "recorder");
	}
}

// Traces start and stop while threads record without a pause: nothing is torn.
TEST(test_stop_while_recording)
{
	enum { THREADS = 3, TRACES = 50 };
	worker w[THREADS];
	chi_atomic32 go_on = { 1 };
	for (int i = 0; i < THREADS; i++) {
		w[i] = (worker){ .go_on = &go_on };
		start_worker(&w[i]);
	}
	for (int t = 0; t < TRACES; t++) {
		record_start(&r, 16);
		spin(2e-4);
		record_stop();
		for (int i = 0; i < r.n; i++) {
			const kept_span *k = &r.span[i];
			assert_true(strcmp(k->name, "outer") == 0 || strcmp(k->name, "inner") == 0);
			assert_true(k->shown.begin >= 0 && k->shown.end >= k->shown.begin);
			assert_true(k->shown.track < CHOIR_TRACE_PROGRAM);
		}
	}
	chi_atomic32_store(&go_on, 0);
	for (int i = 0; i < THREADS; i++)
		chi_thread_join(&w[i].thread);
}

TEST(test_many_threads)
{
	enum { THREADS = 100, KEPT = 64 };
	record_start(&r, 0);
	for (int i = 0; i < THREADS; i++) {
		worker w = { .spans = 1 };
		start_worker(&w);
		chi_thread_join(&w.thread);
	}
	record_stop();
	assert_int_equal(r.n, 2 * KEPT);
	assert_int_equal(choir_trace_dropped_spans(), 2 * (THREADS - KEPT));
}

static void start_late(void *arg)
{
	*(choir_status *) arg = choir_trace_start(NULL, NULL);
}

// With the first span that is shown a thread comes that has not recorded before.
static void show_late(const choir_trace_span *span, void *user)
{
	(void) span;
	choir_status started = CHOIR_OK;
	chi_thread thread = { 0 };
	if ((*(int *) user)++ > 0)
		return;
	assert_int_equal(chi_thread_start(&thread, "late", start_late, &started), CHOIR_OK);
	chi_thread_join(&thread);
	assert_int_equal(started, CHOIR_STATE);
}

// While a trace is being stopped, spans of threads that have ended stay where they are.
TEST(test_late_thread)
{
	enum { THREADS = 64 };
	int shown = 0;
	const choir_trace_options o = { .size = sizeof o, .span = show_late, .user = &shown };
	assert_int_equal(choir_trace_start(NULL, &o), CHOIR_OK);
	for (int i = 0; i < THREADS; i++) {
		worker w = { .spans = 1 };
		start_worker(&w);
		chi_thread_join(&w.thread);
	}
	record_stop();
	assert_int_equal(shown, 2 * THREADS);
	assert_int_equal(choir_trace_dropped_spans(), 0);
}

TEST(test_misuse)
{
	choir_trace_options o = { .size = sizeof o, .spans = -1 };
	assert_int_equal(choir_trace_start(NULL, &o), CHOIR_INVALID);
	assert_error(CHOIR_INVALID, "trace: start:*-1*0*16777216");
	o = (choir_trace_options){ .size = 0 };
	assert_int_equal(choir_trace_start(NULL, &o), CHOIR_INVALID);
	assert_memory_equal(choir_error(), "trace: start: the options' size is 0, not ", 42);
	record_start(&r, 0);
	assert_int_equal(choir_trace_start(NULL, NULL), CHOIR_STATE);
	assert_error(CHOIR_STATE, "trace: start:*already");
	record_stop();
	assert_int_equal(choir_trace_start("no/such/folder/a.json", NULL), CHOIR_IO);
	assert_error(CHOIR_IO, "no/such/folder/a.json");
	assert_false(choir_trace_is_on());
}

// A span that there is no memory for is no failure of the call that it is in.
TEST(test_no_memory)
{
	bool failed = true;
	for (uint64_t n = 1; failed; n++) {
		r.n = 0;
		chi_error_clear();
		chi_alloc_fail(n, true);
		const choir_status started = choir_trace_start(NULL, NULL);
		chi_error_clear();
		choir_trace_begin(CHOIR_TRACE_OTHER, "a");
		choir_trace_end();
		worker w = { .spans = 300 };
		const bool threaded = chi_thread_start(&w.thread, "recorder", record_some, &w) == CHOIR_OK;
		if (threaded)
			chi_thread_join(&w.thread);
		assert_int_equal(choir_error_status(), CHOIR_OK);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(started, CHOIR_OK);
		const choir_status stopped = choir_trace_stop();
		assert_true(stopped == CHOIR_OK || stopped == CHOIR_NO_MEMORY);
		if (stopped == CHOIR_NO_MEMORY)
			assert_error(CHOIR_NO_MEMORY, "trace: out of memory:*missing");
		if (n == 1)
			assert_int_equal(stopped, CHOIR_NO_MEMORY);
		if (!failed)
			assert_int_equal(stopped, CHOIR_OK);
	}
}

// In a child there are no threads of the parent's, and its files are not the child's.
TEST(test_fork)
{
	record_start(&r, 0);
	choir_trace_begin(CHOIR_TRACE_OTHER, "parent");
	choir_trace_end();
	const pid_t child = fork();
	if (child == 0) {
		const bool refused = choir_trace_stop() == CHOIR_STATE &&
				strcmp(choir_error(),
						"trace: stop: the trace was started in the parent, before the fork") == 0;
		const bool again =
				choir_trace_start(NULL, NULL) == CHOIR_OK && choir_trace_stop() == CHOIR_OK;
		_exit(refused && again ? 0 : 1);
	}
	int status = -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	record_stop();
	assert_int_equal(r.n, 1);
}
