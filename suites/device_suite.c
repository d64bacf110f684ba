// The checks of the device table. Every check opens streams and memory on two devices of the kind,
// queues work that depends on the order that the table promises, and looks at the bytes.
#include "suite.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BYTES = 5000 };

static const double LONG = 30; // seconds; what is queued takes far less

// A device that the suite has opened. Devices are never closed, so they stay in a list.
typedef struct opened {
	struct opened *next;
	max_align_t self[];
} opened;

static opened *all_opened;

typedef struct {
	const choir_device_table *table;
	choir_status (*submit)(
			void *stream, choir_status (*fn)(void *arg), const void *arg, size_t bytes);
	void *device[2]; // the same one twice, if there is one
	void *stream[2]; // of each; NULL: closed
	char *memory[2]; // BYTES on each
	// What queued work uses, which a broken device may still do after a wait: it lives until the
	// streams are closed.
	unsigned char in[BYTES], host[BYTES];
	atomic_bool released; // lets hold return
} subject;

static choir_status expect_bytes(
		const subject *s, size_t from, size_t count, unsigned value, const char *of)
{
	for (size_t i = from; i < from + count; i++)
		if (s->host[i] != (unsigned char) value)
			return choir_fail(
					CHOIR_INTERNAL, "%s: byte %zu is %d; %u is needed", of, i, s->host[i], value);
	return CHOIR_OK;
}

// The slots, each with the status that it must return.

static choir_status fill(subject *s, int i, char *to, int value, size_t bytes)
{
	return chi_suite_expect("fill", s->table->fill(s->stream[i], to, value, bytes), CHOIR_OK);
}

static choir_status copy(subject *s, int i, void *to, const void *from, size_t bytes)
{
	return chi_suite_expect("copy", s->table->copy(s->stream[i], to, from, bytes), CHOIR_OK);
}

static choir_status record(subject *s, int i, uint64_t *event)
{
	return chi_suite_expect("record_event", s->table->record_event(s->stream[i], event), CHOIR_OK);
}

static choir_status follow(subject *s, int i, int other, uint64_t event)
{
	return chi_suite_expect(
			"wait_event", s->table->wait_event(s->stream[i], s->stream[other], event), CHOIR_OK);
}

static choir_status wait(subject *s, int i, uint64_t event, double seconds, choir_status needed)
{
	return chi_suite_expect("wait", s->table->wait(s->stream[i], event, seconds), needed);
}

static choir_status finish(subject *s, int i, choir_status needed)
{
	uint64_t event;
	CHOIR_TRY(record(s, i, &event));
	return wait(s, i, event, LONG, needed);
}

static choir_status read_back(subject *s, int i, choir_status needed)
{
	CHOIR_TRY(copy(s, i, s->host, s->memory[i], BYTES));
	return finish(s, i, needed);
}

static void close_stream(subject *s, int i)
{
	if (s->stream[i] != NULL && s->table->stream_close != NULL)
		s->table->stream_close(s->stream[i]);
	free(s->stream[i]);
	s->stream[i] = NULL;
}

static choir_status open_stream(subject *s, int i)
{
	void *stream = calloc(1, s->table->stream_size + 1);
	if (stream == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "suite: a stream of %zu bytes", s->table->stream_size);
	const choir_status status = s->table->stream_open(s->device[i], stream);
	if (status == CHOIR_OK)
		s->stream[i] = stream;
	else
		free(stream);
	return chi_suite_expect("stream_open", status, CHOIR_OK);
}

static choir_status set_up(subject *s)
{
	memset(s->host, 0, BYTES);
	atomic_store(&s->released, false);
	for (int i = 0; i < 2; i++) {
		void *memory = NULL;
		CHOIR_TRY(open_stream(s, i));
		CHOIR_TRY(chi_suite_expect(
				"allocate", s->table->allocate(s->device[i], BYTES, &memory), CHOIR_OK));
		s->memory[i] = memory;
	}
	return CHOIR_OK;
}

static void tear_down(subject *s)
{
	for (int i = 0; i < 2; i++)
		close_stream(s, i);
	for (int i = 0; i < 2; i++) {
		if (s->memory[i] != NULL)
			s->table->release(s->device[i], s->memory[i], BYTES);
		s->memory[i] = NULL;
	}
}

static choir_status aligned_and_apart(void *const memory[], const size_t sizes[], int n)
{
	for (int i = 0; i < n; i++) {
		const uintptr_t at = (uintptr_t) memory[i];
		if (memory[i] == NULL || at % 64 != 0)
			return choir_fail(CHOIR_INTERNAL, "allocate: %zu bytes are at %p; 64 divides it",
					sizes[i], memory[i]);
		for (int k = 0; k < i; k++)
			if (at < (uintptr_t) memory[k] + sizes[k] && (uintptr_t) memory[k] < at + sizes[i])
				return choir_fail(CHOIR_INTERNAL,
						"allocate: %zu bytes at %p overlap %zu bytes at %p; both are in use",
						sizes[i], memory[i], sizes[k], memory[k]);
	}
	return CHOIR_OK;
}

static choir_status memory_is_aligned(subject *s)
{
	static const size_t sizes[] = { 0, 1, 63, 64, 65, 4097, 1 << 20 };
	enum { SIZES = sizeof sizes / sizeof sizes[0] };
	void *memory[SIZES] = { 0 };
	choir_status status = CHOIR_OK;
	int n = 0;
	for (; n < SIZES && status == CHOIR_OK; n++)
		status = chi_suite_expect(
				"allocate", s->table->allocate(s->device[0], sizes[n], &memory[n]), CHOIR_OK);
	if (status == CHOIR_OK)
		status = aligned_and_apart(memory, sizes, n);
	for (int i = 0; i < n; i++)
		if (memory[i] != NULL)
			s->table->release(s->device[0], memory[i], sizes[i]);
	return status;
}

static choir_status too_much_memory_is_refused(subject *s)
{
	for (size_t less = 0; less < 3; less++) {
		void *memory = NULL;
		CHOIR_TRY(chi_suite_expect("allocate of 2^64 bytes",
				s->table->allocate(s->device[0], SIZE_MAX - 100 * less, &memory),
				CHOIR_NO_MEMORY));
	}
	return CHOIR_OK;
}

static choir_status copies_come_back(subject *s)
{
	static const size_t sizes[] = { 0, 1, 3, 64, 4096, BYTES };
	for (size_t i = 0; i < BYTES; i++)
		s->in[i] = (unsigned char) (i * 7 + 1);
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		memset(s->host, 0, BYTES);
		CHOIR_TRY(copy(s, 0, s->memory[0], s->in, sizes[i]));
		CHOIR_TRY(copy(s, 0, s->host, s->memory[0], sizes[i]));
		CHOIR_TRY(finish(s, 0, CHOIR_OK));
		for (size_t k = 0; k < sizes[i]; k++)
			CHOIR_TRY(expect_bytes(s, k, 1, s->in[k], "copy there and back"));
		CHOIR_TRY(expect_bytes(
				s, sizes[i], BYTES - sizes[i], 0, "memory after the bytes of a copy"));
	}
	return CHOIR_OK;
}

static choir_status a_fill_sets_only_its_bytes(subject *s)
{
	CHOIR_TRY(fill(s, 0, s->memory[0], 5, BYTES));
	CHOIR_TRY(fill(s, 0, s->memory[0] + 10, 9, 100));
	CHOIR_TRY(fill(s, 0, s->memory[0], 1, 0));
	CHOIR_TRY(read_back(s, 0, CHOIR_OK));
	CHOIR_TRY(expect_bytes(s, 0, 10, 5, "memory before a fill"));
	CHOIR_TRY(expect_bytes(s, 10, 100, 9, "fill"));
	return expect_bytes(s, 110, BYTES - 110, 5, "memory after the bytes of a fill");
}

static choir_status devices_copy_to_each_other(subject *s)
{
	CHOIR_TRY(fill(s, 0, s->memory[0], 3, BYTES));
	CHOIR_TRY(copy(s, 0, s->memory[1], s->memory[0], BYTES));
	CHOIR_TRY(finish(s, 0, CHOIR_OK));
	CHOIR_TRY(read_back(s, 1, CHOIR_OK));
	return expect_bytes(s, 0, BYTES, 3, "copy to the other device");
}

static choir_status a_stream_keeps_its_order(subject *s)
{
	for (int i = 1; i <= 50; i++) {
		CHOIR_TRY(fill(s, 0, s->memory[0], i, BYTES));
		CHOIR_TRY(copy(s, 0, s->host + i * 10, s->memory[0], 10));
	}
	CHOIR_TRY(finish(s, 0, CHOIR_OK));
	for (int i = 1; i <= 50; i++)
		CHOIR_TRY(expect_bytes(s, (size_t) i * 10, 10, (unsigned) i, "fills and copies in turn"));
	return CHOIR_OK;
}

static choir_status events_are_points_in_the_queue(subject *s)
{
	uint64_t events[20];
	for (int i = 0; i < 20; i++) {
		CHOIR_TRY(fill(s, 0, s->memory[0], i + 1, BYTES));
		CHOIR_TRY(copy(s, 0, s->host + i * 10, s->memory[0], 10));
		CHOIR_TRY(record(s, 0, &events[i]));
		if (i > 0 && events[i] < events[i - 1])
			return choir_fail(CHOIR_INTERNAL,
					"record_event: event %d is %llu; at least %llu is needed", i,
					(unsigned long long) events[i], (unsigned long long) events[i - 1]);
	}
	for (int i = 0; i < 20; i++) {
		CHOIR_TRY(wait(s, 0, events[i], -1, CHOIR_OK));
		CHOIR_TRY(expect_bytes(s, (size_t) i * 10, 10, (unsigned) i + 1, "copy before an event"));
	}
	return wait(s, 0, events[0], 0, CHOIR_OK); // what is reached stays reached
}

static choir_status streams_wait_for_each_other(subject *s)
{
	for (int i = 1; i <= 30; i++) {
		uint64_t made, used;
		CHOIR_TRY(fill(s, 1, s->memory[1], 0, BYTES));
		CHOIR_TRY(fill(s, 0, s->memory[0], i, BYTES));
		CHOIR_TRY(record(s, 0, &made));
		CHOIR_TRY(follow(s, 1, 0, made));
		CHOIR_TRY(copy(s, 1, s->memory[1], s->memory[0], BYTES));
		CHOIR_TRY(record(s, 1, &used));
		CHOIR_TRY(follow(s, 0, 1, used));
		CHOIR_TRY(copy(s, 0, s->host, s->memory[1], BYTES));
		CHOIR_TRY(finish(s, 0, CHOIR_OK));
		CHOIR_TRY(expect_bytes(s, 0, BYTES, (unsigned) i, "copy after an event"));
	}
	return CHOIR_OK;
}

static choir_status closing_a_stream_finishes_it(subject *s)
{
	uint64_t made;
	CHOIR_TRY(fill(s, 0, s->memory[0], 8, BYTES));
	CHOIR_TRY(record(s, 0, &made));
	// The second stream waits for one that is closed before it gets there.
	CHOIR_TRY(follow(s, 1, 0, made));
	CHOIR_TRY(copy(s, 1, s->host, s->memory[0], BYTES));
	close_stream(s, 0);
	close_stream(s, 1);
	return expect_bytes(s, 0, BYTES, 8, "copy before stream_close");
}

static choir_status an_idle_stream_is_done(subject *s)
{
	uint64_t event;
	CHOIR_TRY(record(s, 0, &event));
	return wait(s, 0, event, 0, CHOIR_OK);
}

static choir_status the_description_is_true(subject *s)
{
	choir_device_info info = { .size = sizeof info, .kind = s->table->kind, .index = 1 };
	if (s->table->describe != NULL)
		s->table->describe(s->device[1], &info);
	if (info.size != sizeof info || info.kind != s->table->kind || info.index != 1)
		return choir_fail(CHOIR_INTERNAL,
				"describe: size %zu, index %d; size, kind and index stay as they are", info.size,
				info.index);
	if (info.cores < 0 || info.memory_free > info.memory_total)
		return choir_fail(CHOIR_INTERNAL,
				"describe: %d cores, %llu of %llu bytes free; neither less than 0 nor more than "
				"all",
				info.cores, (unsigned long long) info.memory_free,
				(unsigned long long) info.memory_total);
	return CHOIR_OK;
}

// The rest is for devices that queue: tasks of the suite among those of the device.

static choir_status hold(void *arg)
{
	subject *s = *(subject **) arg;
	const struct timespec pause = { .tv_nsec = 200000 };
	for (int i = 0; i < 150000; i++) { // at least 30 s
		if (atomic_load(&s->released))
			return CHOIR_OK;
		nanosleep(&pause, NULL);
	}
	return choir_fail(CHOIR_TIMEOUT, "hold: it was not released");
}

static choir_status break_down(void *arg)
{
	return choir_fail(CHOIR_CORRUPT, "task %d broke down", *(int *) arg);
}

static choir_status submit(
		subject *s, int i, choir_status (*fn)(void *arg), const void *arg, size_t bytes)
{
	return chi_suite_expect("submit", s->submit(s->stream[i], fn, arg, bytes), CHOIR_OK);
}

static choir_status wait_for_held(subject *s, uint64_t before, uint64_t after)
{
	CHOIR_TRY(wait(s, 0, before, 0, CHOIR_OK));
	CHOIR_TRY(wait(s, 0, after, 0, CHOIR_TIMEOUT));
	CHOIR_TRY(wait(s, 0, after, 0.01, CHOIR_TIMEOUT));
	return expect_bytes(s, 0, BYTES, 0, "copy after a task that is not done");
}

static choir_status a_wait_has_an_end(subject *s)
{
	uint64_t before, after;
	CHOIR_TRY(record(s, 0, &before));
	CHOIR_TRY(submit(s, 0, hold, &s, sizeof(subject *)));
	choir_status status = fill(s, 0, s->memory[0], 2, BYTES);
	if (status == CHOIR_OK)
		status = copy(s, 0, s->host, s->memory[0], BYTES);
	if (status == CHOIR_OK)
		status = record(s, 0, &after);
	if (status == CHOIR_OK)
		status = wait_for_held(s, before, after);
	atomic_store(&s->released, true);
	const choir_status ended = finish(s, 0, CHOIR_OK);
	CHOIR_TRY(status);
	CHOIR_TRY(ended);
	CHOIR_TRY(wait(s, 0, after, LONG, CHOIR_OK));
	return expect_bytes(s, 0, BYTES, 2, "copy after a task that was held");
}

static choir_status expect_text(const char *part)
{
	return strstr(choir_error(), part) != NULL
			? CHOIR_OK
			: choir_fail(CHOIR_INTERNAL, "wait: its text is \"%.200s\"; \"%s\" is needed in it",
					  choir_error(), part);
}

// The status that wait returns, with the text of the task that broke down.
static choir_status wait_for_failure(subject *s, int i, uint64_t event, const char *part)
{
	const choir_status found = s->table->wait(s->stream[i], event, LONG);
	CHOIR_TRY(chi_suite_expect("wait for a task that broke down", found, CHOIR_CORRUPT));
	return expect_text(part);
}

static choir_status a_failure_is_told_once(subject *s)
{
	uint64_t before, broken, after;
	const int number = 1, next = 2;
	CHOIR_TRY(fill(s, 0, s->memory[0], 1, BYTES));
	CHOIR_TRY(record(s, 0, &before));
	CHOIR_TRY(submit(s, 0, break_down, &number, sizeof number));
	CHOIR_TRY(record(s, 0, &broken));
	CHOIR_TRY(submit(s, 0, break_down, &next, sizeof next));
	for (int i = 0; i < 10; i++)
		CHOIR_TRY(fill(s, 0, s->memory[0], 2, BYTES));
	CHOIR_TRY(record(s, 0, &after));
	CHOIR_TRY(wait(s, 0, before, LONG, CHOIR_OK));
	CHOIR_TRY(wait_for_failure(s, 0, broken, "task 1 broke down"));
	CHOIR_TRY(wait(s, 0, after, LONG, CHOIR_OK));
	// The fills after the failure did not run, and the stream goes on.
	CHOIR_TRY(read_back(s, 0, CHOIR_OK));
	return expect_bytes(s, 0, BYTES, 1, "fill after a failure");
}

static choir_status a_failure_passes_on(subject *s)
{
	uint64_t event, end;
	const int number = 7;
	CHOIR_TRY(fill(s, 1, s->memory[1], 1, BYTES));
	CHOIR_TRY(submit(s, 0, break_down, &number, sizeof number));
	CHOIR_TRY(record(s, 0, &event));
	CHOIR_TRY(follow(s, 1, 0, event));
	CHOIR_TRY(copy(s, 1, s->memory[1], s->memory[0], BYTES));
	CHOIR_TRY(record(s, 1, &end));
	CHOIR_TRY(wait_for_failure(s, 1, end, "task 7 broke down"));
	CHOIR_TRY(finish(s, 0, CHOIR_CORRUPT));
	CHOIR_TRY(read_back(s, 1, CHOIR_OK));
	return expect_bytes(s, 0, BYTES, 1, "copy after a failure of the other stream");
}

static const struct {
	const char *name;
	choir_status (*fn)(subject *s);
	bool queues; // needs submit
} checks[] = {
	{ "memory is aligned and does not overlap", memory_is_aligned, false },
	{ "too much memory is refused", too_much_memory_is_refused, false },
	{ "copies come back as they were", copies_come_back, false },
	{ "a fill sets only its bytes", a_fill_sets_only_its_bytes, false },
	{ "devices of the kind copy to each other", devices_copy_to_each_other, false },
	{ "a stream keeps its order", a_stream_keeps_its_order, false },
	{ "events are points in the queue", events_are_points_in_the_queue, false },
	{ "streams wait for each other", streams_wait_for_each_other, false },
	{ "closing a stream finishes it", closing_a_stream_finishes_it, false },
	{ "an idle stream is done", an_idle_stream_is_done, false },
	{ "the description is true", the_description_is_true, false },
	{ "a wait has an end", a_wait_has_an_end, true },
	{ "a failure is told once and in its place", a_failure_is_told_once, true },
	{ "a failure passes on to streams that wait", a_failure_passes_on, true },
};
enum { CHECKS = sizeof checks / sizeof checks[0] };

static const char *missing_slot(const choir_device_table *t)
{
	return t->open == NULL			  ? "open"
			: t->allocate == NULL	  ? "allocate"
			: t->release == NULL	  ? "release"
			: t->stream_open == NULL  ? "stream_open"
			: t->copy == NULL		  ? "copy"
			: t->fill == NULL		  ? "fill"
			: t->record_event == NULL ? "record_event"
			: t->wait_event == NULL	  ? "wait_event"
			: t->wait == NULL		  ? "wait"
									  : NULL;
}

static choir_status open_device(const choir_device_table *t, int index, void **device)
{
	opened *o = calloc(1, sizeof *o + t->self_size);
	if (o == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "suite: a device of %zu bytes", t->self_size);
	const choir_status status = t->open(o->self, index);
	if (status != CHOIR_OK) {
		if (t->close != NULL)
			t->close(o->self);
		free(o);
		return chi_suite_expect("open", status, CHOIR_OK);
	}
	o->next = all_opened;
	all_opened = o;
	*device = o->self;
	return CHOIR_OK;
}

static choir_status open_subject(subject *s, const choir_suite_options *o)
{
	const choir_device_table *t = o->device;
	CHOIR_TRY(chi_suite_check_table("device", t, sizeof *t, t->kind));
	if (missing_slot(t) != NULL)
		return choir_fail(CHOIR_INVALID, "suite: device kind \"%s\" has no slot %s; it is needed",
				t->kind, missing_slot(t));
	const int count = t->count == NULL ? 0 : t->count();
	if (count == 0)
		return choir_fail(
				CHOIR_NOT_FOUND, "suite: device kind \"%s\" counts 0; 1 is needed", t->kind);
	*s = (subject){ .table = t, .submit = o->submit };
	CHOIR_TRY(open_device(t, 0, &s->device[0]));
	s->device[1] = s->device[0];
	return count == 1 ? CHOIR_OK : open_device(t, 1, &s->device[1]);
}

choir_status chi_suite_device(const choir_suite_options *o, chi_suite_tally *t)
{
	subject s;
	CHOIR_TRY(open_subject(&s, o));
	for (int i = 0; i < CHECKS; i++) {
		if (checks[i].queues && o->submit == NULL)
			continue;
		choir_status status = set_up(&s);
		if (status == CHOIR_OK)
			status = checks[i].fn(&s);
		chi_suite_note(t, checks[i].name, status);
		tear_down(&s);
	}
	return chi_suite_end(t, "device kind", o->device->kind);
}
