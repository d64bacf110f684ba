// What streams add to the tables: order between kinds, and copies between any two memories, by way
// of the host where two kinds of far memory have nothing in common.
#include "base/alloc.h"
#include "base/status.h"
#include "device/device.h"
#include "device/toy.h"
#include "far/far.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

enum { DEVICES = 6, BYTES = (2 << 20) + 777 }; // more than two stages of the way by the host

static const char *const names[DEVICES] = { "cpu:0", "cpu:1", "far:0", "far:1", "toy:0", "toy:1" };

static int two(void)
{
	return 2;
}

static int register_toy(void **state)
{
	(void) state;
	choir_device_table table = toy_table("toy", two);
	return (int) choir_register_device(&table);
}

// Puts value into all bytes of memory of d, or sees that it is there.
static void put(choir_device *d, void *memory, int value)
{
	chi_stream *s = chi_stream_new(d);
	assert_non_null(s);
	assert_int_equal(chi_stream_fill(s, memory, value, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_wait(s), CHOIR_OK);
	chi_stream_free(s);
}

static void assert_there(choir_device *d, const void *memory, int value)
{
	static unsigned char host[BYTES];
	chi_stream *s = chi_stream_new(d);
	assert_non_null(s);
	assert_int_equal(chi_stream_copy(s, host, memory, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_wait(s), CHOIR_OK);
	chi_stream_free(s);
	for (size_t i = 0; i < BYTES; i++)
		if (host[i] != value)
			fail_msg("%s: byte %zu is %d, not %d", d->name, i, host[i], value);
}

static void copy_between(choir_device *to, choir_device *from, choir_device *streams, int value)
{
	void *source, *target;
	assert_int_equal(chi_device_allocate(from, BYTES, &source), CHOIR_OK);
	assert_int_equal(chi_device_allocate(to, BYTES, &target), CHOIR_OK);
	put(from, source, value);
	put(to, target, 0);
	chi_stream *s = chi_stream_new(streams);
	assert_non_null(s);
	// What is queued before on the stream comes first.
	if (streams == from) {
		put(from, source, 0);
		assert_int_equal(chi_stream_fill(s, source, value, BYTES), CHOIR_OK);
	}
	assert_int_equal(chi_device_copy(s, to, target, from, source, BYTES), CHOIR_OK);
	assert_there(to, target, value);
	assert_int_equal(chi_device_copy(s, to, target, from, source, 0), CHOIR_OK);
	chi_stream_free(s);
	chi_device_release(from, source, BYTES);
	chi_device_release(to, target, BYTES);
}

TEST(any_two_memories)
{
	for (int i = 0; i < DEVICES; i++)
		for (int j = 0; j < DEVICES; j++) {
			choir_device *to = choir_device_find(names[i]), *from = choir_device_find(names[j]);
			assert_non_null(to);
			assert_non_null(from);
			copy_between(to, from, to, 1 + i * DEVICES + j);
			copy_between(to, from, from, 101 + i * DEVICES + j);
		}
}

TEST(a_stream_of_neither)
{
	choir_device *far = choir_device_find("far:0"), *toy = choir_device_find("toy:0");
	chi_stream *s = chi_stream_new(choir_device_find("cpu:0"));
	void *source, *target;
	assert_int_equal(chi_device_allocate(far, 10, &source), CHOIR_OK);
	assert_int_equal(chi_device_allocate(toy, 10, &target), CHOIR_OK);
	assert_int_equal(chi_device_copy(s, toy, target, far, source, 10), CHOIR_INVALID);
	assert_text_holds(choir_error(), "0*stream");
	chi_stream_free(s);
	chi_device_release(far, source, 10);
	chi_device_release(toy, target, 10);
}

TEST(kinds_wait_for_each_other)
{
	choir_device *far = choir_device_find("far:0"), *cpu = choir_device_find("cpu:0");
	chi_stream *f = chi_stream_new(far), *c = chi_stream_new(cpu);
	void *memory;
	unsigned char host[64] = { 0 };
	uint64_t event;
	assert_int_equal(chi_device_allocate(far, 64, &memory), CHOIR_OK);
	for (int i = 1; i < 20; i++) {
		assert_int_equal(chi_stream_record_event(c, &event), CHOIR_OK);
		assert_int_equal(chi_stream_wait_event(f, c, event), CHOIR_OK);
		assert_int_equal(chi_stream_fill(f, memory, i, 64), CHOIR_OK);
		assert_int_equal(chi_stream_copy(f, host, memory, 64), CHOIR_OK);
		assert_int_equal(chi_stream_record_event(f, &event), CHOIR_OK);
		assert_int_equal(chi_stream_wait_event(c, f, event), CHOIR_OK);
		unsigned char read = 0;
		assert_int_equal(chi_stream_copy(c, &read, &host[63], 1), CHOIR_OK);
		assert_int_equal(read, i);
	}
	chi_stream_free(f);
	chi_stream_free(c);
	chi_stream_free(NULL);
	chi_device_release(far, memory, 64);
}

TEST(copies_survive_failed_allocations)
{
	choir_device *far = choir_device_find("far:0"), *toy = choir_device_find("toy:0");
	void *source, *target;
	assert_int_equal(chi_device_allocate(far, BYTES, &source), CHOIR_OK);
	assert_int_equal(chi_device_allocate(toy, BYTES, &target), CHOIR_OK);
	put(far, source, 9);
	chi_stream *s = chi_stream_new(toy);
	uint64_t n = 1;
	for (bool failed = true; failed; n++) {
		chi_error_clear();
		chi_alloc_fail(n, false);
		choir_status status = chi_device_copy(s, toy, target, far, source, BYTES);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
		assert_true(!failed || choir_error()[0] != '\0');
	}
	assert_true(n > 3);
	assert_there(toy, target, 9);
	chi_stream_free(s);
	chi_device_release(far, source, BYTES);
	chi_device_release(toy, target, BYTES);
}

// ---- What devices and streams add to their tables: names in texts, and memory that is freed.

static choir_status break_down(void *arg)
{
	return choir_fail(CHOIR_CORRUPT, "task %d broke down", *(int *) arg);
}

static choir_status break_silently(void *arg)
{
	(void) arg;
	return CHOIR_IO;
}

static int pinned, refused;

static choir_status pin(void *self, size_t bytes, void **memory)
{
	(void) self;
	if (refused > 0 && refused-- > 0)
		return choir_fail(CHOIR_NO_MEMORY, "no memory to pin");
	pinned++;
	*memory = chi_alloc_aligned(bytes);
	return *memory == NULL ? CHOIR_NO_MEMORY : CHOIR_OK;
}

static int unpinned;

static void unpin(void *self, void *memory, size_t bytes)
{
	(void) self;
	assert_true(bytes > 0);
	unpinned++;
	chi_free(memory);
}

// Copies through the host use pinned memory of the device again, and do without it.
TEST(pinned_memory_is_kept)
{
	choir_device_table table = toy_table("pins", two);
	table.host_allocate = pin;
	table.host_release = unpin;
	assert_int_equal(choir_register_device(&table), CHOIR_OK);
	choir_device *d = choir_device_find("pins:0");
	chi_stream *s = chi_stream_new(d);
	void *memory;
	unsigned char from[5000], to[5000];
	assert_non_null(s);
	assert_int_equal(chi_device_allocate(d, sizeof from, &memory), CHOIR_OK);
	refused = 1;
	choir_fail(CHOIR_NOT_FOUND, "older");
	for (int i = 0; i < 4; i++) {
		memset(from, i, sizeof from);
		assert_int_equal(chi_stream_post(s, memory, from, sizeof from - (size_t) i), CHOIR_OK);
		assert_int_equal(chi_stream_wait(s), CHOIR_OK);
		chi_staging_buffer *later = chi_stream_fetch_later(s, memory, 100);
		assert_non_null(later);
		assert_int_equal(chi_stream_wait(s), CHOIR_OK);
		chi_stream_take_fetched(s, later, to, 100);
		assert_memory_equal(to, from, 100);
		assert_int_equal(pinned, i == 0 ? 1 : 2);
	}
	assert_text_holds(choir_error(), "older");
	chi_staging_buffer *many[20];
	for (int i = 0; i < 20; i++)
		many[i] = chi_stream_fetch_later(s, memory, 100);
	for (int i = 0; i < 20; i++)
		chi_stream_take_fetched(s, many[i], to, 100);
	assert_in_range(unpinned, 1, 6); // not all are kept
	chi_stream_free(s);
	chi_device_release(d, memory, sizeof from);
}

TEST(failures_name_the_device)
{
	for (int i = 0; i < DEVICES; i++)
		for (size_t less = 0; less < 3; less++) {
			choir_device *d = choir_device_find(names[i]);
			void *memory = d;
			const size_t bytes = SIZE_MAX - 100 * less;
			char facts[80];
			assert_int_equal(chi_device_allocate(d, bytes, &memory), CHOIR_NO_MEMORY);
			assert_null(memory);
			snprintf(facts, sizeof facts, "%s:*%zu bytes", names[i], bytes);
			assert_text_holds(choir_error(), facts);
			chi_device_release(d, NULL, 0);
		}
	chi_stream *s = chi_stream_new(choir_device_find("far:0"));
	const int number = 1;
	assert_int_equal(far_submit(s->state, break_down, &number, sizeof number), CHOIR_OK);
	assert_int_equal(chi_stream_wait(s), CHOIR_CORRUPT);
	assert_text_holds(choir_error(), "far:0:*task 1");
	assert_int_equal(far_submit(s->state, break_silently, NULL, 0), CHOIR_OK);
	assert_int_equal(chi_stream_wait(s), CHOIR_IO);
	assert_text_holds(choir_error(), "far:0:*CHOIR_IO");
	chi_stream_free(s);
}

// One use of everything that may allocate.
static choir_status use_all(choir_device *d, unsigned char *host)
{
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

TEST(every_allocation_may_fail)
{
	for (int i = 0; i < DEVICES; i++) {
		unsigned char host[100];
		choir_device *d = choir_device_find(names[i]);
		choir_device_info before = { .size = sizeof before }, after = before;
		assert_int_equal(choir_device_describe(d, &before), CHOIR_OK);
		uint64_t n = 0;
		for (bool failed = true; failed; n++) {
			chi_error_clear();
			chi_alloc_fail(n + 1, false);
			const choir_status status = use_all(d, host);
			failed = chi_alloc_failed();
			chi_alloc_fail(0, false);
			assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
			assert_true(!failed || choir_error()[0] != '\0');
		}
		assert_true(n > 2);
		for (int k = 0; k < 100; k++)
			assert_int_equal(host[k], 4);
		// What no leak checker sees: memory of the device itself.
		assert_int_equal(choir_device_describe(d, &after), CHOIR_OK);
		assert_true(d->host_memory || after.memory_free == before.memory_free);
	}
}

TEST_GROUP(register_toy, NULL)
