// The properties of the device table. Every test starts from nothing, opens what it needs on the
// subject's devices, and closes it.
#include "base/alloc.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"
#include "device/suite.h"
#include "test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 5000 };

typedef struct {
	choir_device *first, *second;
	chi_stream *a, *b; // of first, of second
	void *x, *y; // BYTES on first, on second
	unsigned char host[BYTES];
} fixture;

static void set_up(const device_subject *subject, fixture *f)
{
	*f = (fixture){ 0 };
	assert_non_null(f->first = choir_device_find(subject->first));
	assert_non_null(f->second = choir_device_find(subject->second));
	assert_non_null(f->a = chi_stream_new(f->first));
	assert_non_null(f->b = chi_stream_new(f->second));
	assert_int_equal(chi_device_allocate(f->first, BYTES, &f->x), CHOIR_OK);
	assert_int_equal(chi_device_allocate(f->second, BYTES, &f->y), CHOIR_OK);
}

static void tear_down(fixture *f)
{
	chi_stream_free(f->a);
	chi_stream_free(f->b);
	chi_device_release(f->first, f->x, BYTES);
	chi_device_release(f->second, f->y, BYTES);
}

static void assert_bytes(const unsigned char *bytes, int value, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(bytes[i], value);
}

// The last failure names the device and says what.
static void assert_error(const choir_device *d, const char *what)
{
	assert_int_equal(strncmp(choir_error(), d->name, strlen(d->name)), 0);
	if (!text_holds(choir_error(), what))
		fail_msg("\"%s\" does not say \"%s\"", choir_error(), what);
}

static void memory_is_aligned(void **state)
{
	static const size_t sizes[] = { 0, 1, 63, 64, 65, 4097, 1 << 20 };
	const device_subject *subject = *state;
	choir_device *d = choir_device_find(subject->first);
	assert_non_null(d);
	void *memory[7];
	for (int i = 0; i < 7; i++) {
		assert_int_equal(chi_device_allocate(d, sizes[i], &memory[i]), CHOIR_OK);
		assert_non_null(memory[i]);
		assert_int_equal((uintptr_t) memory[i] % 64, 0);
	}
	for (int i = 0; i < 7; i++)
		for (int j = 0; j < i; j++)
			assert_true((uintptr_t) memory[i] >= (uintptr_t) memory[j] + sizes[j] ||
					(uintptr_t) memory[j] >= (uintptr_t) memory[i] + sizes[i]);
	for (int i = 0; i < 7; i++)
		chi_device_release(d, memory[i], sizes[i]);
	chi_device_release(d, NULL, 0);
}

static void too_much_memory_is_refused(void **state)
{
	const device_subject *subject = *state;
	choir_device *d = choir_device_find(subject->first);
	assert_non_null(d);
	for (size_t less = 0; less < 3; less++) {
		void *memory = d;
		size_t bytes = SIZE_MAX - 100 * less;
		assert_int_equal(chi_device_allocate(d, bytes, &memory), CHOIR_NO_MEMORY);
		assert_null(memory);
		char number[32];
		snprintf(number, sizeof number, "%zu bytes", bytes);
		assert_error(d, number);
	}
}

static void host_copies_come_back(void **state)
{
	fixture f;
	set_up(*state, &f);
	unsigned char in[BYTES];
	for (size_t i = 0; i < BYTES; i++)
		in[i] = (unsigned char) (i * 7 + 1);
	static const size_t sizes[] = { 0, 1, 3, 64, 4096, BYTES };
	for (int i = 0; i < 6; i++) {
		memset(f.host, 0, BYTES);
		assert_int_equal(chi_stream_copy(f.a, f.x, in, sizes[i]), CHOIR_OK);
		assert_int_equal(chi_stream_copy(f.a, f.host, f.x, sizes[i]), CHOIR_OK);
		assert_int_equal(chi_stream_wait(f.a), CHOIR_OK);
		assert_memory_equal(f.host, in, sizes[i]);
		assert_bytes(f.host + sizes[i], 0, BYTES - sizes[i]);
	}
	tear_down(&f);
}

static void fill_sets_only_its_bytes(void **state)
{
	fixture f;
	set_up(*state, &f);
	assert_int_equal(chi_stream_fill(f.a, f.x, 5, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_fill(f.a, (char *) f.x + 10, 9, 100), CHOIR_OK);
	assert_int_equal(chi_stream_fill(f.a, f.x, 1, 0), CHOIR_OK);
	assert_int_equal(chi_stream_copy(f.a, f.host, f.x, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_wait(f.a), CHOIR_OK);
	assert_bytes(f.host, 5, 10);
	assert_bytes(f.host + 10, 9, 100);
	assert_bytes(f.host + 110, 5, BYTES - 110);
	tear_down(&f);
}

static void devices_of_a_kind_copy_to_each_other(void **state)
{
	fixture f;
	set_up(*state, &f);
	assert_int_equal(chi_stream_fill(f.a, f.x, 3, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_copy(f.a, f.y, f.x, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_wait(f.a), CHOIR_OK);
	assert_int_equal(chi_stream_copy(f.b, f.host, f.y, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_wait(f.b), CHOIR_OK);
	assert_bytes(f.host, 3, BYTES);
	tear_down(&f);
}

static void a_stream_keeps_its_order(void **state)
{
	fixture f;
	set_up(*state, &f);
	for (int i = 1; i <= 50; i++) {
		assert_int_equal(chi_stream_fill(f.a, f.x, i, BYTES), CHOIR_OK);
		assert_int_equal(chi_stream_copy(f.a, f.host + i * 10, f.x, 10), CHOIR_OK);
	}
	assert_int_equal(chi_stream_wait(f.a), CHOIR_OK);
	for (int i = 1; i <= 50; i++)
		assert_bytes(f.host + i * 10, i, 10);
	tear_down(&f);
}

static void marks_are_points_in_the_queue(void **state)
{
	fixture f;
	set_up(*state, &f);
	uint64_t marks[20];
	for (int i = 0; i < 20; i++) {
		assert_int_equal(chi_stream_fill(f.a, f.x, i + 1, BYTES), CHOIR_OK);
		assert_int_equal(chi_stream_copy(f.a, f.host + i * 10, f.x, 10), CHOIR_OK);
		assert_int_equal(chi_stream_record_event(f.a, &marks[i]), CHOIR_OK);
		assert_true(i == 0 || marks[i] >= marks[i - 1]);
	}
	for (int i = 0; i < 20; i++) {
		assert_int_equal(chi_stream_wait_until(f.a, marks[i], -1), CHOIR_OK);
		assert_bytes(f.host + i * 10, i + 1, 10);
	}
	// What is reached stays reached.
	assert_int_equal(chi_stream_wait_until(f.a, marks[0], 0), CHOIR_OK);
	tear_down(&f);
}

static void streams_wait_for_each_other(void **state)
{
	fixture f;
	set_up(*state, &f);
	for (int i = 1; i <= 30; i++) {
		uint64_t made, used;
		assert_int_equal(chi_stream_fill(f.b, f.y, 0, BYTES), CHOIR_OK);
		assert_int_equal(chi_stream_fill(f.a, f.x, i, BYTES), CHOIR_OK);
		assert_int_equal(chi_stream_record_event(f.a, &made), CHOIR_OK);
		assert_int_equal(chi_stream_wait_event(f.b, f.a, made), CHOIR_OK);
		assert_int_equal(chi_stream_copy(f.b, f.y, f.x, BYTES), CHOIR_OK);
		assert_int_equal(chi_stream_record_event(f.b, &used), CHOIR_OK);
		assert_int_equal(chi_stream_wait_event(f.a, f.b, used), CHOIR_OK);
		assert_int_equal(chi_stream_copy(f.a, f.host, f.y, BYTES), CHOIR_OK);
		assert_int_equal(chi_stream_wait(f.a), CHOIR_OK);
		assert_bytes(f.host, i, BYTES);
	}
	tear_down(&f);
}

static void freeing_a_stream_finishes_it(void **state)
{
	fixture f;
	set_up(*state, &f);
	uint64_t made;
	assert_int_equal(chi_stream_fill(f.a, f.x, 8, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_record_event(f.a, &made), CHOIR_OK);
	// b waits for a stream that is gone before b comes to it.
	assert_int_equal(chi_stream_wait_event(f.b, f.a, made), CHOIR_OK);
	assert_int_equal(chi_stream_copy(f.b, f.host, f.x, BYTES), CHOIR_OK);
	chi_stream_free(f.a);
	f.a = NULL;
	chi_stream_free(f.b);
	f.b = NULL;
	assert_bytes(f.host, 8, BYTES);
	tear_down(&f);
}

static void nothing_to_wait_for_takes_no_time(void **state)
{
	fixture f;
	set_up(*state, &f);
	uint64_t event;
	assert_int_equal(chi_stream_record_event(f.a, &event), CHOIR_OK);
	assert_int_equal(chi_stream_wait_until(f.a, event, 0), CHOIR_OK);
	assert_int_equal(chi_stream_wait(f.a), CHOIR_OK);
	tear_down(&f);
}

static void devices_describe_themselves(void **state)
{
	const device_subject *subject = *state;
	choir_device *d = choir_device_find(subject->second);
	assert_non_null(d);
	choir_device_info info = { .size = sizeof info };
	assert_int_equal(choir_device_describe(d, &info), CHOIR_OK);
	char name[64];
	snprintf(name, sizeof name, "%s:%d", info.kind, info.index);
	assert_string_equal(name, choir_device_name(d));
	assert_true(info.cores >= 0);
	assert_true(info.memory_free <= info.memory_total);
	assert_int_equal(info.size, sizeof info);
}

// One use of everything that may allocate.
static choir_status use_all(const device_subject *subject, unsigned char *host)
{
	choir_device *d = choir_device_find(subject->first);
	if (d == NULL)
		return choir_error_status();
	void *memory;
	CHOIR_TRY(chi_device_allocate(d, 100, &memory));
	chi_stream *a = chi_stream_new(d);
	chi_stream *b = a == NULL ? NULL : chi_stream_new(d);
	choir_status status = b == NULL ? choir_error_status() : CHOIR_OK;
	uint64_t event = 0;
	if (status == CHOIR_OK)
		status = chi_stream_fill(a, memory, 4, 100);
	if (status == CHOIR_OK)
		status = chi_stream_record_event(a, &event);
	if (status == CHOIR_OK)
		status = chi_stream_wait_event(b, a, event);
	if (status == CHOIR_OK)
		status = chi_stream_copy(b, host, memory, 100);
	if (status == CHOIR_OK)
		status = chi_stream_wait(b);
	chi_stream_free(b);
	chi_stream_free(a);
	chi_device_release(d, memory, 100);
	return status;
}

static void every_allocation_may_fail(void **state)
{
	unsigned char host[100];
	choir_device *d = choir_device_find(((const device_subject *) *state)->first);
	choir_device_info before = { .size = sizeof before }, after = before;
	assert_int_equal(choir_device_describe(d, &before), CHOIR_OK);
	uint64_t n = 0;
	for (bool failed = true; failed; n++) {
		chi_error_clear();
		chi_alloc_fail(n + 1, false);
		choir_status status = use_all(*state, host);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
		assert_true(!failed || choir_error()[0] != '\0');
	}
	assert_true(n > 2);
	assert_bytes(host, 4, 100);
	// What no leak checker sees: memory of the device itself.
	assert_int_equal(choir_device_describe(d, &after), CHOIR_OK);
	assert_true(d->host_memory || after.memory_free == before.memory_free);
}

// What follows is for devices that queue: a task that waits until it is let go.

typedef struct {
	chi_gate release;
} holder;

static choir_status hold(void *arg)
{
	holder *h = *(holder **) arg;
	bool in_time = chi_gate_wait(&h->release, 0, false, chi_clock_deadline(30));
	return in_time ? CHOIR_OK : choir_fail(CHOIR_TIMEOUT, "hold: nobody let go");
}

static void queue_hold(const device_subject *subject, chi_stream *s, holder *h)
{
	*h = (holder){ 0 };
	assert_int_equal(subject->submit(s->state, hold, &h, sizeof h), CHOIR_OK);
}

static choir_status break_down(void *arg)
{
	return choir_fail(CHOIR_CORRUPT, "task %d: broke down", *(int *) arg);
}

static choir_status break_silently(void *arg)
{
	(void) arg;
	return CHOIR_IO;
}

static void waiting_has_an_end(void **state)
{
	const device_subject *subject = *state;
	fixture f;
	set_up(subject, &f);
	holder h;
	uint64_t before, after;
	assert_int_equal(chi_stream_record_event(f.a, &before), CHOIR_OK);
	queue_hold(subject, f.a, &h);
	assert_int_equal(chi_stream_fill(f.a, f.x, 2, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_copy(f.a, f.host, f.x, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_record_event(f.a, &after), CHOIR_OK);
	assert_int_equal(chi_stream_wait_until(f.a, before, 0), CHOIR_OK);
	assert_int_equal(chi_stream_wait_until(f.a, after, 0), CHOIR_TIMEOUT);
	assert_int_equal(chi_stream_wait_until(f.a, after, 0.01), CHOIR_TIMEOUT);
	assert_error(f.first, "0.01");
	assert_bytes(f.host, 0, BYTES);
	chi_gate_open(&h.release, 1);
	assert_int_equal(chi_stream_wait_until(f.a, after, 30), CHOIR_OK);
	assert_bytes(f.host, 2, BYTES);
	tear_down(&f);
}

static void failures_are_told_once_and_in_place(void **state)
{
	const device_subject *subject = *state;
	fixture f;
	set_up(subject, &f);
	uint64_t before, broken, after;
	int number = 1, next = 2;
	assert_int_equal(chi_stream_fill(f.a, f.x, 1, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_record_event(f.a, &before), CHOIR_OK);
	assert_int_equal(subject->submit(f.a->state, break_down, &number, sizeof number), CHOIR_OK);
	assert_int_equal(chi_stream_record_event(f.a, &broken), CHOIR_OK);
	assert_int_equal(subject->submit(f.a->state, break_down, &next, sizeof next), CHOIR_OK);
	for (int i = 0; i < 10; i++)
		assert_int_equal(chi_stream_fill(f.a, f.x, 2, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_record_event(f.a, &after), CHOIR_OK);
	assert_int_equal(chi_stream_wait_until(f.a, before, 30), CHOIR_OK);
	assert_int_equal(chi_stream_wait_until(f.a, broken, 30), CHOIR_CORRUPT);
	assert_error(f.first, "task 1:*broke");
	assert_int_equal(chi_stream_wait_until(f.a, after, 30), CHOIR_OK);
	// What stood behind the failure was not done; the stream goes on.
	assert_int_equal(chi_stream_copy(f.a, f.host, f.x, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_wait(f.a), CHOIR_OK);
	assert_bytes(f.host, 1, BYTES);
	assert_int_equal(subject->submit(f.a->state, break_silently, NULL, 0), CHOIR_OK);
	assert_int_equal(chi_stream_wait(f.a), CHOIR_IO);
	assert_error(f.first, "CHOIR_IO");
	tear_down(&f);
}

static void failures_pass_on_to_who_waits(void **state)
{
	const device_subject *subject = *state;
	fixture f;
	set_up(subject, &f);
	uint64_t event;
	int number = 7;
	assert_int_equal(chi_stream_fill(f.b, f.y, 1, BYTES), CHOIR_OK);
	assert_int_equal(subject->submit(f.a->state, break_down, &number, sizeof number), CHOIR_OK);
	assert_int_equal(chi_stream_record_event(f.a, &event), CHOIR_OK);
	assert_int_equal(chi_stream_wait_event(f.b, f.a, event), CHOIR_OK);
	assert_int_equal(chi_stream_copy(f.b, f.y, f.x, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_wait(f.b), CHOIR_CORRUPT);
	assert_error(f.second, "task 7:*broke");
	assert_int_equal(chi_stream_wait(f.a), CHOIR_CORRUPT);
	assert_int_equal(chi_stream_copy(f.b, f.host, f.y, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_wait(f.b), CHOIR_OK);
	assert_bytes(f.host, 1, BYTES);
	tear_down(&f);
}

typedef struct {
	const char *name;
	void (*test)(void **state);
	bool queues; // for devices that queue only
} property;

static const property properties[] = {
	{ "memory is aligned", memory_is_aligned, false },
	{ "too much memory is refused", too_much_memory_is_refused, false },
	{ "host copies come back", host_copies_come_back, false },
	{ "fill sets only its bytes", fill_sets_only_its_bytes, false },
	{ "devices of a kind copy", devices_of_a_kind_copy_to_each_other, false },
	{ "a stream keeps its order", a_stream_keeps_its_order, false },
	{ "marks are points in the queue", marks_are_points_in_the_queue, false },
	{ "streams wait for each other", streams_wait_for_each_other, false },
	{ "freeing a stream finishes it", freeing_a_stream_finishes_it, false },
	{ "nothing to wait for", nothing_to_wait_for_takes_no_time, false },
	{ "devices describe themselves", devices_describe_themselves, false },
	{ "every allocation may fail", every_allocation_may_fail, false },
	{ "waiting has an end", waiting_has_an_end, true },
	{ "failures are told once", failures_are_told_once_and_in_place, true },
	{ "failures pass on", failures_pass_on_to_who_waits, true },
};
enum { PROPERTIES = sizeof properties / sizeof properties[0] };

int device_suite_run(const char *name, const device_subject *subject)
{
	struct CMUnitTest tests[PROPERTIES];
	device_subject state = *subject;
	size_t count = 0;
	for (int i = 0; i < PROPERTIES; i++)
		if (subject->submit != NULL || !properties[i].queues)
			tests[count++] = (struct CMUnitTest){ properties[i].name, properties[i].test, NULL,
				NULL, &state };
	return _cmocka_run_group_tests(name, tests, count, NULL, NULL);
}
