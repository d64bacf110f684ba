// Waits that are given up: what was queued goes on, but lands in nobody's memory.
#include "base/alloc.h"
#include "base/gate.h"
#include "base/clock.h"
#include "base/thread.h"
#include "far/far.h"
#include "device/quarantine.h"
#include "test.h"

#include <string.h>

enum { BYTES = (1 << 20) + 99 }; // more than one stage

static const double USUAL = 60, SHORT = 0.01;

// A far device, memory on it full of twos, and a stream whose queue stands still until it is let
// go.
typedef struct {
	choir_device *device;
	chi_stream *stream;
	void *memory;
	chi_gate go;
} fixture;

static choir_status hold(void *arg)
{
	fixture *f = *(fixture **) arg;
	const bool in_time = chi_gate_wait(&f->go, 0, false, chi_clock_deadline(30));
	return in_time ? CHOIR_OK : choir_fail(CHOIR_TIMEOUT, "hold: nobody let go");
}

static void set_up(fixture *f, const char *name)
{
	*f = (fixture){ .device = choir_device_find(name) };
	assert_non_null(f->device);
	f->stream = chi_stream_new(f->device);
	assert_non_null(f->stream);
	assert_int_equal(chi_device_allocate(f->device, BYTES, &f->memory), CHOIR_OK);
	assert_int_equal(chi_stream_fill(f->stream, f->memory, 2, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_wait(f->stream), CHOIR_OK);
	fixture *user = f;
	assert_int_equal(far_submit(f->stream->state, hold, &user, sizeof user), CHOIR_OK);
	chi_stream_set_timeout(SHORT);
}

static void let_go(fixture *f)
{
	chi_stream_set_timeout(USUAL);
	chi_gate_open(&f->go, 1);
}

static void tear_down(fixture *f)
{
	chi_stream_free(f->stream);
	chi_device_release(f->device, f->memory, BYTES);
}

static void assert_bytes(const unsigned char *memory, int value)
{
	for (size_t i = 0; i < BYTES; i++)
		if (memory[i] != value)
			fail_msg("byte %zu is %d, not %d", i, memory[i], value);
}

static unsigned char host[BYTES];

TEST(what_is_fetched_late_lands_nowhere)
{
	fixture f;
	set_up(&f, "far:0");
	memset(host, 7, BYTES);
	assert_int_equal(chi_stream_fetch(f.stream, host, f.memory, BYTES), CHOIR_TIMEOUT);
	assert_text_holds(choir_error(), "far:0");
	assert_true(chi_device_is_quarantined(f.device));
	let_go(&f);
	assert_int_equal(chi_stream_wait(f.stream), CHOIR_OK);
	assert_bytes(host, 7);
	assert_false(chi_device_is_quarantined(f.device));
	assert_int_equal(chi_stream_fetch(f.stream, host, f.memory, BYTES), CHOIR_OK);
	assert_bytes(host, 2);
	tear_down(&f);
}

TEST(what_is_sent_late_is_what_was_given)
{
	fixture f;
	set_up(&f, "far:0");
	memset(host, 5, BYTES);
	assert_int_equal(chi_stream_send(f.stream, f.memory, host, 100), CHOIR_TIMEOUT);
	memset(host, 9, BYTES);
	let_go(&f);
	assert_int_equal(chi_stream_fetch(f.stream, host, f.memory, BYTES), CHOIR_OK);
	for (int i = 0; i < BYTES; i++)
		assert_int_equal(host[i], i < 100 ? 5 : 2);
	tear_down(&f);
}

TEST(devices_of_other_memory)
{
	choir_device *cpu = choir_device_find("cpu:0");
	fixture f;
	set_up(&f, "far:0");
	memset(host, 7, BYTES);
	assert_int_equal(
			chi_device_copy(f.stream, cpu, host, f.device, f.memory, BYTES), CHOIR_TIMEOUT);
	let_go(&f);
	chi_stream_free(f.stream); // waits for what is queued
	f.stream = chi_stream_new(f.device);
	assert_bytes(host, 7);
	assert_false(chi_device_is_quarantined(f.device));
	tear_down(&f);
}

static choir_status be_cancelled(void *arg)
{
	(void) arg;
	return choir_fail(CHOIR_CANCELLED, "task: cancelled");
}

// What was queued has ended, whatever it ended with, unless the wait itself was too long.
TEST(a_failure_is_not_late)
{
	fixture f;
	set_up(&f, "far:0");
	let_go(&f);
	assert_int_equal(far_submit(f.stream->state, be_cancelled, NULL, 0), CHOIR_OK);
	assert_int_equal(chi_stream_fetch(f.stream, host, f.memory, BYTES), CHOIR_CANCELLED);
	assert_text_holds(choir_error(), "task:*cancelled");
	assert_false(chi_device_is_quarantined(f.device));
	tear_down(&f);
}

TEST(closing_ends_it)
{
	fixture f;
	set_up(&f, "far:0");
	chi_stream *other = chi_stream_new(f.device);
	assert_int_equal(chi_stream_wait(f.stream), CHOIR_TIMEOUT);
	assert_int_equal(chi_stream_wait(f.stream), CHOIR_TIMEOUT);
	assert_int_equal(chi_stream_wait(other), CHOIR_OK);
	// Another stream's success says nothing of this one.
	assert_true(chi_device_is_quarantined(f.device));
	let_go(&f);
	tear_down(&f);
	assert_false(chi_device_is_quarantined(f.device));
	chi_stream_free(other);
}

TEST(fails_in_every_allocation)
{
	fixture f;
	set_up(&f, "far:0");
	let_go(&f);
	uint64_t n = 1;
	for (bool failed = true; failed; n++) {
		chi_alloc_fail(n, false);
		const choir_status status = chi_stream_fetch(f.stream, host, f.memory, BYTES);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
	}
	assert_true(n > 2);
	tear_down(&f);
}

// Without memory to note whose stream it is, nobody can say when it is over.
TEST(a_device_may_stay_quarantined)
{
	fixture f;
	set_up(&f, "far:9");
	chi_alloc_fail(1, true);
	assert_int_equal(chi_stream_wait(f.stream), CHOIR_TIMEOUT);
	chi_alloc_fail(0, false);
	let_go(&f);
	tear_down(&f);
	assert_true(chi_device_is_quarantined(f.device));
}

// Tells when a queue has come to it.
static choir_status tell(void *arg)
{
	chi_gate_open(*(chi_gate **) arg, 1);
	return CHOIR_OK;
}

typedef struct {
	fixture *f;
	uint64_t mark;
	choir_status status;
} early_wait;

static void wait_early(void *arg)
{
	early_wait *e = arg;
	e->status = chi_stream_wait_until(e->f->stream, e->mark, 30);
}

// One thread waits for early work, another gives up on a fetch that is queued after it. That the
// early work is done says nothing of the fetch, whose stage the queue still writes.
TEST(an_early_mark_frees_nothing_later)
{
	fixture f, second = { 0 };
	fixture *later = &second;
	chi_gate came = { 0 };
	chi_gate *end = &came;
	set_up(&f, "far:0");
	early_wait e = { .f = &f };
	assert_int_equal(chi_stream_record_event(f.stream, &e.mark), CHOIR_OK);
	chi_thread thread = { 0 };
	assert_int_equal(chi_thread_start(&thread, "early", wait_early, &e), CHOIR_OK);
	assert_int_equal(far_submit(f.stream->state, hold, &later, sizeof later), CHOIR_OK);
	memset(host, 7, BYTES);
	assert_int_equal(chi_stream_fetch(f.stream, host, f.memory, 1 << 16), CHOIR_TIMEOUT);
	let_go(&f);
	chi_thread_join(&thread);
	assert_int_equal(e.status, CHOIR_OK);
	assert_true(chi_device_is_quarantined(f.device));
	assert_int_equal(far_submit(f.stream->state, tell, &end, sizeof end), CHOIR_OK);
	chi_gate_open(&second.go, 1);
	assert_true(chi_gate_wait(&came, 0, false, chi_clock_deadline(30)));
	assert_int_equal(chi_stream_wait(f.stream), CHOIR_OK);
	assert_false(chi_device_is_quarantined(f.device));
	assert_bytes(host, 7);
	tear_down(&f);
}
