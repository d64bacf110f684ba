// Buffers: size classes, exact counts, reuse without allocation, foreign memory, many threads.
#include "base/alloc.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/thread.h"
#include "far/far.h"
#include "tensor/buffer_pool.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static choir_device *device(const char *name)
{
	choir_device *d = choir_device_find(name);
	assert_non_null(d);
	return d;
}

TEST(classes_waste_little)
{
	choir_device *d = device("cpu:0");

	assert_int_equal(chi_buffer_in_use(d), 0);
	for (size_t bytes = 0; bytes < 3000000; bytes += bytes / 7 + 1) {
		chi_buffer *b = chi_buffer_new(d, bytes);
		assert_non_null(b);
		assert_int_equal((uintptr_t) b->memory % 64, 0);
		assert_true(b->bytes >= bytes && b->bytes >= 64);
		assert_true(b->bytes <= 512 ? b->bytes - bytes <= 64 : b->bytes - bytes <= bytes / 8);
		assert_int_equal(chi_buffer_in_use(d), b->bytes);
		assert_true(chi_buffer_fits(b, bytes));
		assert_false(chi_buffer_fits(b, b->bytes + 1));
		memset(b->memory, 1, b->bytes);
		chi_buffer_release(b);
	}
	assert_int_equal(chi_buffer_in_use(d), 0);
	chi_buffer_trim();
}

TEST(counts_and_peaks_are_exact)
{
	choir_device *d = device("cpu:1");

	chi_buffer *a = chi_buffer_new(d, 1024), *b = chi_buffer_new(d, 4096);
	assert_int_equal(chi_buffer_in_use(d), 5120);
	chi_buffer_retain(a);
	chi_buffer_release(a);
	assert_int_equal(chi_buffer_in_use(d), 5120);
	chi_buffer_release(a);
	assert_int_equal(chi_buffer_in_use(d), 4096);
	assert_int_equal(chi_buffer_peak(d), 5120);
	chi_buffer_reset_peak(d);
	assert_int_equal(chi_buffer_peak(d), 4096);
	chi_buffer_release(b);
	chi_buffer_release(NULL);
	assert_int_equal(chi_buffer_in_use(d), 0);
	assert_int_equal(chi_buffer_in_use(device("cpu:7")), 0); // which never had a pool
	chi_buffer_trim();
}

TEST(a_steady_use_allocates_nothing)
{
	choir_device *d = device("cpu:0");
	uint64_t before = 0;

	for (int round = 0; round < 4; round++) {
		if (round == 1)
			before = chi_alloc_count();
		chi_buffer *a = chi_buffer_new(d, 1000), *b = chi_buffer_new(d, 900);
		char byte;
		chi_buffer *c = chi_buffer_wrap(d, &byte, 1, NULL, NULL);
		assert_true(a && b && c);
		chi_buffer_release(a);
		chi_buffer_release(b);
		chi_buffer_release(c);
	}
	assert_int_equal(chi_alloc_count(), before);
	chi_buffer_trim();
	chi_buffer_release(chi_buffer_new(d, 1000));
	assert_true(chi_alloc_count() > before);
	chi_buffer_trim();
}

TEST(a_large_buffer_takes_a_part)
{
	enum { WHOLE = 1 << 20, PART = WHOLE / 4 };
	choir_device *d = device("cpu:0");
	chi_buffer *part[4];

	chi_buffer *whole = chi_buffer_new(d, WHOLE);
	char *memory = whole->memory;
	chi_buffer_release(whole);
	for (int round = 0; round < 3; round++) {
		const uint64_t before = chi_alloc_count();
		for (int i = 0; i < 4; i++) {
			part[i] = chi_buffer_new(d, PART);
			assert_ptr_equal(part[i]->memory, memory + i * PART);
			assert_int_equal(chi_buffer_in_use(d), (i + 1) * PART);
		}
		assert_true(round == 0 || chi_alloc_count() == before); // headers are reused
		chi_buffer *small = chi_buffer_new(d, 512); // has memory of its own
		assert_true((char *) small->memory < memory || (char *) small->memory >= memory + WHOLE);
		chi_buffer_release(small);
		chi_buffer_release(part[(round + 1) % 4]);
		chi_buffer_trim(); // keeps parts whose neighbours are in use
		memset(part[round]->memory, 1, PART); // is still its own
		for (int i = 0; i < 4; i++)
			if (i != (round + 1) % 4)
				chi_buffer_release(part[i]);
		whole = chi_buffer_new(d, WHOLE);
		assert_ptr_equal(whole->memory, memory);
		chi_buffer_release(whole);
		assert_int_equal(chi_buffer_in_use(d), 0);
	}
	for (uint64_t failing = 0; failing < 2; failing++) {
		chi_buffer_trim(); // also the headers
		chi_buffer_release(chi_buffer_new(d, WHOLE));
		chi_alloc_fail(failing, false);
		part[0] = chi_buffer_new(d, PART);
		chi_alloc_fail(0, false);
		assert_int_equal(part[0] == NULL, failing);
		chi_buffer_release(part[0]);
		assert_int_equal(chi_buffer_in_use(d), 0);
	}
	chi_buffer_trim();
}

// Buffers of random sizes in random order, each full of its own number.
TEST(parts_do_not_overlap)
{
	enum { BUFFERS = 40 };
	choir_device *d = device("cpu:0");
	chi_buffer *b[BUFFERS] = { NULL };
	uint64_t x = 88172645463325252u;

	for (int round = 0; round < 4000; round++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		const size_t i = x % BUFFERS, bytes = (x >> 8) % 7 * ((x >> 16) % 40000);
		size_t all = 0;
		if (b[i])
			assert_int_equal(*(unsigned char *) b[i]->memory, i);
		if (b[i])
			assert_int_equal(((unsigned char *) b[i]->memory)[b[i]->bytes - 1], i);
		chi_buffer_release(b[i]);
		b[i] = round < 2000 || x >> 60 > 7 ? chi_buffer_new(d, bytes) : NULL;
		if (b[i])
			memset(b[i]->memory, (int) i, b[i]->bytes);
		for (size_t k = 0; k < BUFFERS; k++)
			all += b[k] ? b[k]->bytes : 0;
		assert_int_equal(chi_buffer_in_use(d), all);
	}
	for (size_t i = 0; i < BUFFERS; i++)
		chi_buffer_release(b[i]);
	assert_int_equal(chi_buffer_in_use(d), 0);
	chi_buffer_trim();
}

static void add_one(void *user)
{
	(*(int *) user)++;
}

TEST(foreign_memory_is_given_back_once)
{
	choir_device *d = device("cpu:0");
	char memory[8];
	int released = 0;

	chi_buffer *b = chi_buffer_wrap(d, memory, sizeof(memory), add_one, &released);
	assert_ptr_equal(b->memory, memory);
	assert_int_equal(chi_buffer_in_use(d), 0);
	assert_false(chi_buffer_fits(b, 8));
	chi_buffer_retain(b);
	chi_buffer_release(b);
	assert_int_equal(released, 0);
	chi_buffer_release(b);
	assert_int_equal(released, 1);
	chi_buffer_trim();
}

TEST(failures_say_so)
{
	choir_device *d = device("cpu:0");

	assert_null(chi_buffer_new(d, SIZE_MAX));
	assert_int_equal(choir_error_status(), CHOIR_NO_MEMORY);
	assert_text_holds(choir_error(), "cpu:0");
	for (uint64_t n = 1;; n++) {
		chi_alloc_fail(n, false);
		chi_buffer *b = chi_buffer_new(d, 12345);
		const bool failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(b == NULL, failed);
		chi_buffer_release(b);
		chi_buffer_trim();
		if (!failed)
			break;
		assert_int_equal(choir_error_status(), CHOIR_NO_MEMORY);
		assert_int_equal(chi_buffer_in_use(d), 0);
	}
}

static void work(void *arg)
{
	choir_device *d = arg;
	for (size_t i = 0; i < 2000; i++) {
		chi_buffer *b = chi_buffer_new(d, i % 5 * 700);
		if (!b)
			abort();
		memset(b->memory, (int) i, b->bytes);
		chi_buffer_retain(b);
		chi_buffer_release(b);
		chi_buffer_release(b);
	}
}

TEST(threads_share_a_pool)
{
	choir_device *d = device("cpu:3");
	chi_thread threads[4] = { 0 };

	for (int i = 0; i < 4; i++)
		assert_int_equal(chi_thread_start(&threads[i], "buffers", work, d), CHOIR_OK);
	for (int i = 0; i < 4; i++)
		chi_thread_join(&threads[i]);
	assert_int_equal(chi_buffer_in_use(d), 0);
	assert_true(chi_buffer_peak(d) >= 2816 && chi_buffer_peak(d) <= 4 * 2816);
	chi_buffer_trim();
}

static choir_status hold(void *arg)
{
	chi_gate *go = *(chi_gate **) arg;
	(void) chi_gate_wait(go, 0, false, chi_clock_deadline(30));
	return CHOIR_OK;
}

// While a stream for which somebody has given up waiting may still write to it.
TEST(memory_in_late_use_is_nobodys)
{
	choir_device *d = device("far:4");
	chi_stream *s = chi_stream_new(d);
	chi_gate go = { 0 }, *user = &go;

	assert_non_null(s);
	chi_buffer *a = chi_buffer_new(d, 5000);
	const void *memory = a->memory;
	assert_int_equal(far_submit(s->state, hold, &user, sizeof user), CHOIR_OK);
	assert_int_equal(chi_stream_fill(s, a->memory, 1, 5000), CHOIR_OK);
	chi_stream_set_timeout(0.01);
	assert_int_equal(chi_stream_wait(s), CHOIR_TIMEOUT);
	chi_stream_set_timeout(60);
	chi_buffer_release(a);
	assert_int_equal(chi_buffer_in_use(d), 0);
	chi_buffer_trim();
	chi_buffer *b = chi_buffer_new(d, 5000);
	assert_ptr_not_equal(b->memory, memory);
	chi_gate_open(&go, 1);
	chi_stream_free(s);
	chi_buffer *c = chi_buffer_new(d, 5000);
	assert_ptr_equal(c->memory, memory);
	chi_buffer_release(b);
	chi_buffer_release(c);
	chi_buffer_trim();
}
