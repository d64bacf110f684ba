// Files of traces: what is read is what was recorded, merged traces hold both, and damaged files
// are refused.
#include "trace/scratch_directory.h"
#include "trace/trace.h"

#include "base/alloc.h"
#include "base/status.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX = 16 };
typedef struct {
	int n;
	choir_trace_span span[MAX];
	char name[MAX][40], track[MAX][40], last[MAX][40];
} list;

static void keep(const choir_trace_span *span, void *user)
{
	list *l = user;
	assert_in_range(l->n, 0, MAX - 1);
	l->span[l->n] = *span;
	snprintf(l->name[l->n], sizeof l->name[0], "%s", span->name);
	snprintf(l->track[l->n], sizeof l->track[0], "%s", span->track_name);
	snprintf(l->last[l->n], sizeof l->last[0], "%s", span->last == NULL ? "-" : span->last);
	l->n++;
}

// A step of two replicas, in which replica 1 waits for replica 0, and that for worker 3.
static void record(const char *path, int worker, list *recorded)
{
	assert_int_equal(choir_trace_start(path,
							 CHOIR_OPTIONS(choir_trace_options, .span = keep, .user = recorded,
									 .worker = worker, .workers = 2)),
			CHOIR_OK);
	chi_trace_begin(CHOIR_TRACE_OTHER, "a \"step\"");
	chi_trace_begin_replica(0, 0, CHOIR_TRACE_COMPUTE, "replica");
	const int32_t last = chi_trace_track();
	chi_trace_begin(CHOIR_TRACE_WAIT, "other workers");
	chi_trace_end_wait(chi_last_worker(3));
	chi_trace_end();
	chi_trace_begin_replica(1, 1, CHOIR_TRACE_COMPUTE, "replica");
	chi_trace_begin(CHOIR_TRACE_WAIT, "sum");
	chi_trace_end_wait(last);
	chi_trace_end_communication();
	chi_trace_end();
	assert_int_equal(choir_trace_stop(), CHOIR_OK);
}

static void assert_same(const list *a, const list *b, int from)
{
	for (int i = 0; i < a->n; i++) {
		const choir_trace_span *is = &b->span[from + i], *was = &a->span[i];
		assert_string_equal(a->name[i], b->name[from + i]);
		assert_string_equal(a->track[i], b->track[from + i]);
		assert_string_equal(a->last[i], b->last[from + i]);
		assert_int_equal(is->category, was->category);
		assert_int_equal(is->track, was->track);
		assert_int_equal(is->depth, was->depth);
		assert_int_equal(is->worker, was->worker);
		assert_true(fabs(is->begin - was->begin) < 2e-9 && fabs(is->end - was->end) < 2e-9);
		assert_true(fabs(is->own - was->own) < 2e-9);
	}
}

TEST_WITHIN(what_is_recorded_is_read_and_merged, directory_enter, directory_leave)
{
	list first = { .n = 0 }, second = { .n = 0 }, read = { .n = 0 }, both = { .n = 0 };
	record("t.json", 0, &first);
	record("t.json.1", 1, &second);
	assert_int_equal(first.n, 6);
	assert_string_equal(first.last[2], "worker 3");
	assert_string_equal(first.last[4], "replica 0");
	assert_string_equal(first.last[1], "-");
	assert_int_equal(choir_trace_read("t.json", keep, &read), CHOIR_OK);
	assert_int_equal(read.n, first.n);
	assert_same(&first, &read, 0);
	const char *parts[] = { "t.json", "t.json.1" };
	assert_int_equal(choir_trace_merge("all.json", 2, parts), CHOIR_OK);
	assert_int_equal(choir_trace_read("all.json", keep, &both), CHOIR_OK);
	assert_int_equal(both.n, 12);
	assert_same(&first, &both, 0);
	assert_same(&second, &both, 6);
	if (system("python3 -c ''") == 0)
		assert_int_equal(system("python3 -c 'import json\n"
								"e = json.load(open(\"all.json\"))[\"traceEvents\"]\n"
								"n = {x[\"pid\"]: x[\"args\"][\"name\"] for x in e if x[\"name\"] "
								"== \"process_name\"}\n"
								"assert n == {1: \"worker 0\", 2: \"worker 1\"}, n'"),
				0);
}

TEST_WITHIN(wrong_use_is_refused, directory_enter, directory_leave)
{
	list l = { .n = 0 };
	const char *parts[] = { "t.json", "u.json" };
	record("t.json", 1, &l);
	record("u.json", 1, &(list){ .n = 0 });
	assert_int_equal(choir_trace_merge("all.json", 2, parts), CHOIR_INVALID);
	assert_text_holds(choir_error(), "u.json:*worker 1, as t.json");
	parts[1] = "nowhere.json";
	assert_int_equal(choir_trace_merge("all.json", 2, parts), CHOIR_NOT_FOUND);
	assert_int_equal(choir_trace_merge("all.json", 0, parts), CHOIR_INVALID);
	assert_int_equal(choir_trace_merge(NULL, 1, parts), CHOIR_INVALID);
	assert_int_equal(choir_trace_read(NULL, keep, &l), CHOIR_INVALID);
	assert_int_equal(choir_trace_read("t.json", NULL, &l), CHOIR_INVALID);
	assert_int_equal(directory_entries(".", NULL), 2); // no half files
	assert_int_equal(
			choir_trace_start(NULL, CHOIR_OPTIONS(choir_trace_options, .worker = 2, .workers = 2)),
			CHOIR_INVALID);
	assert_text_holds(choir_error(), "worker 2 of 2");
}

static void write_text(const char *path, const char *text, size_t n)
{
	FILE *f = fopen(path, "wb");
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static void ignore(const choir_trace_span *span, void *user)
{
	*(double *) user += span->end - span->begin;
}

TEST_WITHIN(damaged_files_are_refused, directory_enter, directory_leave)
{
	static const char *const wrong[] = { "", "[]", "{}", "{\"traceEvents\": 1}",
		"{\"traceEvents\": [{}]}", "{\"traceEvents\": [{\"ph\": \"X\"}]}",
		"{\"traceEvents\": []} x",
		"{\"traceEvents\": [{\"ph\": \"X\", \"pid\": 0, \"tid\": 0, \"ts\": 1, \"dur\": 1, "
		"\"cat\": "
		"\"wait\", \"name\": \"x\"}]}",
		"{\"traceEvents\": [{\"ph\": \"X\", \"pid\": 1, \"tid\": 1e99, \"ts\": 1, \"dur\": 1, "
		"\"cat\": \"wait\", \"name\": \"x\"}]}",
		"{\"traceEvents\": [{\"ph\": \"X\", \"pid\": 1, \"tid\": 0, \"ts\": 1, \"dur\": -1, "
		"\"cat\": \"wait\", \"name\": \"x\"}]}" };
	double sum = 0;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		write_text("t.json", wrong[i], strlen(wrong[i]));
		assert_int_equal(choir_trace_read("t.json", ignore, &sum), CHOIR_CORRUPT);
		assert_text_holds(choir_error(), "t.json: byte");
	}
	char text[8192];
	record("t.json", 0, &(list){ .n = 0 });
	FILE *f = fopen("t.json", "rb");
	const size_t n = fread(text, 1, sizeof text, f);
	fclose(f);
	for (size_t end = 0; end + 2 < n; end += 7) { // its last byte is a line end
		write_text("t.json", text, end);
		assert_int_equal(choir_trace_read("t.json", ignore, &sum), CHOIR_CORRUPT);
	}
	assert_true(sum == 0);
}

TEST_WITHIN(every_allocation_may_fail, directory_enter, directory_leave)
{
	const char *parts[] = { "t.json", "t.json.1" };
	record("t.json", 0, &(list){ .n = 0 });
	record("t.json.1", 1, &(list){ .n = 0 });
	choir_status status = CHOIR_NO_MEMORY;
	for (uint64_t n = 1; status != CHOIR_OK; n++) {
		assert_in_range(n, 1, 1000);
		chi_error_clear();
		chi_alloc_fail(n, false);
		status = choir_trace_merge("all.json", 2, parts);
		chi_alloc_fail(0, false);
		assert_true(status == CHOIR_OK || status == CHOIR_NO_MEMORY);
		assert_int_equal(directory_entries(".", NULL), status == CHOIR_OK ? 3 : 2);
	}
}
