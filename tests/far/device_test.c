// What only the far device has: memory that kills a host that touches it, threads that stay behind
// in a fork, delays, and a queue that is used again and again.
#include "base/alloc.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/status.h"
#include "device/device.h"
#include "far/far.h"
#include "test.h"

#include <errno.h>
#include <fenv.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 10000 };

typedef struct {
	choir_device *device;
	chi_stream *stream;
	void *memory;
} fixture;

static void set_up(fixture *f)
{
	assert_non_null(f->device = choir_device_find("far:0"));
	assert_non_null(f->stream = chi_stream_new(f->device));
	assert_int_equal(chi_device_allocate(f->device, BYTES, &f->memory), CHOIR_OK);
}

static void tear_down(fixture *f)
{
	chi_stream_free(f->stream);
	chi_device_release(f->device, f->memory, BYTES);
}

// How a child ends that reads or writes a byte there.
static int touch_in_child(volatile char *byte, bool write)
{
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		const struct rlimit no_core = { 0, 0 };
		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGSEGV, SIG_DFL); // sanitizers have a handler of their own
		signal(SIGBUS, SIG_DFL);
		if (write)
			*byte = 1;
		else
			(void) *byte;
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(the_host_cannot_touch_it)
{
	fixture f;
	set_up(&f);
	char *memory = f.memory, own = 0;
	assert_int_equal(touch_in_child(&own, false), 0);
	assert_int_equal(touch_in_child(&own, true), 0);
	assert_int_equal(touch_in_child(memory, false), SIGSEGV);
	assert_int_equal(touch_in_child(memory, true), SIGSEGV);
	assert_int_equal(touch_in_child(memory + BYTES - 1, false), SIGSEGV);
	// Nor can the kernel for it.
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], memory, 1), -1);
	assert_int_equal(errno, EFAULT);
	close(ends[0]);
	close(ends[1]);
	tear_down(&f);
}

TEST(addresses_are_translated)
{
	fixture f;
	set_up(&f);
	char host;
	char *memory = f.memory, *inside = far_inside(memory);
	assert_ptr_not_equal(inside, memory);
	assert_ptr_equal(far_inside(memory + 17), inside + 17);
	assert_ptr_equal(far_inside(&host), &host);
	assert_ptr_equal(far_inside(inside), inside);
	assert_null(far_inside(NULL));
	choir_device_info info = { .size = sizeof info };
	assert_int_equal(choir_device_describe(f.device, &info), CHOIR_OK);
	assert_int_equal(chi_stream_fill(f.stream, memory, 42, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_wait(f.stream), CHOIR_OK);
	assert_int_equal(inside[0], 42);
	assert_int_equal(inside[BYTES - 1], 42);
	tear_down(&f);
}

TEST(new_memory_is_not_a_number)
{
	fixture f;
	for (int round = 0; round < 2; round++) {
		set_up(&f);
		float number = 0;
		double wide = 0;
		assert_int_equal(chi_stream_copy(f.stream, &number, f.memory, sizeof number), CHOIR_OK);
		assert_int_equal(chi_stream_copy(f.stream, &wide, f.memory, sizeof wide), CHOIR_OK);
		assert_int_equal(chi_stream_wait(f.stream), CHOIR_OK);
		assert_true(isnan(number) && isnan(wide));
		assert_int_equal(chi_stream_fill(f.stream, f.memory, 7, BYTES), CHOIR_OK);
		const char *inside = far_inside(f.memory);
		tear_down(&f);
		assert_int_equal(inside[0], 0); // the pages went back to the system
	}
}

static uint64_t memory_left(const choir_device *d)
{
	choir_device_info info = { .size = sizeof info };
	assert_int_equal(choir_device_describe(d, &info), CHOIR_OK);
	return info.memory_free;
}

TEST(gaps_are_used_again)
{
	choir_device *d = choir_device_find("far:3");
	uint64_t before = memory_left(d);
	void *a, *b, *c, *again;
	assert_int_equal(chi_device_allocate(d, 8192, &a), CHOIR_OK);
	assert_int_equal(chi_device_allocate(d, 8192, &b), CHOIR_OK);
	assert_int_equal(chi_device_allocate(d, 8192, &c), CHOIR_OK);
	assert_int_equal(before - memory_left(d), 3 * 8192);
	chi_device_release(d, b, 8192);
	assert_int_equal(chi_device_allocate(d, 8193, &again), CHOIR_OK);
	assert_true((char *) again >= (char *) c + 8192 || (char *) again + 8193 <= (char *) a);
	chi_device_release(d, again, 8193);
	assert_int_equal(chi_device_allocate(d, 100, &again), CHOIR_OK);
	assert_ptr_equal(again, b);
	chi_device_release(d, a, 8192);
	chi_device_release(d, c, 8192);
	chi_device_release(d, again, 100);
	assert_int_equal(memory_left(d), before);
	assert_int_equal(chi_device_allocate(d, before + 1, &a), CHOIR_NO_MEMORY);
	assert_int_equal(memory_left(d), before);
}

TEST(devices_have_an_end)
{
	assert_non_null(choir_device_find("far:63"));
	assert_null(choir_device_find("far:64"));
	assert_text_holds(choir_error(), "64*63");
}

TEST(a_steady_queue_allocates_nothing)
{
	fixture f;
	set_up(&f);
	char host[64];
	uint64_t before = 0;
	for (int i = 0; i < 30; i++) {
		if (i == 10)
			before = chi_alloc_count();
		for (int j = 0; j < 5; j++)
			assert_int_equal(chi_stream_copy(f.stream, host, f.memory, sizeof host), CHOIR_OK);
		assert_int_equal(chi_stream_wait(f.stream), CHOIR_OK);
	}
	assert_int_equal(chi_alloc_count(), before);
	tear_down(&f);
}

typedef struct {
	unsigned char bytes[3000];
} large;

static choir_status check_large(void *arg)
{
	const large *l = arg;
	for (size_t i = 0; i < sizeof l->bytes; i++)
		if (l->bytes[i] != (unsigned char) i)
			return choir_fail(CHOIR_INTERNAL, "byte %zu is %d", i, l->bytes[i]);
	return CHOIR_OK;
}

TEST(arguments_are_copied)
{
	fixture f;
	set_up(&f);
	large l;
	for (size_t i = 0; i < sizeof l.bytes; i++)
		l.bytes[i] = (unsigned char) i;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(far_submit(f.stream->state, check_large, &l, sizeof l), CHOIR_OK);
		assert_int_equal(chi_stream_fill(f.stream, f.memory, 0, 1), CHOIR_OK);
	}
	memset(&l, 0, sizeof l);
	assert_int_equal(chi_stream_wait(f.stream), CHOIR_OK);
	assert_int_equal(far_submit(f.stream->state, check_large, &l, SIZE_MAX), CHOIR_NO_MEMORY);
	assert_int_equal(strncmp(choir_error(), "far:0: ", 7), 0);
	tear_down(&f);
}

static choir_status note_rounding(void *arg)
{
	chi_atomic32_store(*(chi_atomic32 **) arg, (uint32_t) fegetround());
	return CHOIR_OK;
}

TEST(threads_round_to_nearest)
{
	fixture f;
	fesetround(FE_UPWARD); // what a new thread has from who starts it
	set_up(&f);
	chi_atomic32 rounding = { 0 }, *at = &rounding;
	assert_int_equal(far_submit(f.stream->state, note_rounding, &at, sizeof at), CHOIR_OK);
	assert_int_equal(chi_stream_wait(f.stream), CHOIR_OK);
	fesetround(FE_TONEAREST);
	assert_int_equal(chi_atomic32_load(&rounding), FE_TONEAREST);
	tear_down(&f);
}

TEST(tasks_are_delayed)
{
	fixture f;
	set_up(&f);
	far_delays(5, 4000);
	double before = chi_clock_now();
	for (int i = 0; i < 50; i++)
		assert_int_equal(chi_stream_fill(f.stream, f.memory, i, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_wait(f.stream), CHOIR_OK);
	// 50 delays of 2 ms in the mean: half their mean sum is six standard deviations away.
	assert_true(chi_clock_now() - before > 0.05);
	far_delays(1, 20);
	tear_down(&f);
}

TEST(marks_that_were_never_made)
{
	fixture f;
	set_up(&f);
	assert_int_equal(chi_stream_wait_until(f.stream, 99, -1), CHOIR_INVALID);
	assert_text_holds(choir_error(), "0*mark 99");
	assert_int_equal(chi_stream_wait_event(f.stream, f.stream, 1), CHOIR_INVALID);
	assert_int_equal(chi_stream_wait(f.stream), CHOIR_OK);
	tear_down(&f);
}

// What a child that inherited a stream is told; 0 if all is as it should be, else the line.
static int use_in_child(fixture *f)
{
	uint64_t event;
	void *memory;
	if (chi_stream_fill(f->stream, f->memory, 1, 1) != CHOIR_STATE)
		return __LINE__;
	if (!text_holds(choir_error(), "far:0: ") || !text_holds(choir_error(), "fork"))
		return __LINE__;
	if (chi_stream_record_event(f->stream, &event) != CHOIR_STATE)
		return __LINE__;
	if (chi_stream_wait_event(f->stream, f->stream, 0) != CHOIR_STATE)
		return __LINE__;
	if (chi_stream_wait_until(f->stream, 0, -1) != CHOIR_STATE)
		return __LINE__;
	if (chi_device_allocate(f->device, 1, &memory) != CHOIR_STATE)
		return __LINE__;
	tear_down(f);
	return 0;
}

TEST(a_child_cannot_use_it)
{
	fixture f;
	set_up(&f);
	assert_int_equal(chi_stream_fill(f.stream, f.memory, 6, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_wait(f.stream), CHOIR_OK);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(use_in_child(&f) & 0xff);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	// What the child gave back is still the parent's.
	char last = 0;
	assert_int_equal(chi_stream_copy(f.stream, &last, (char *) f.memory + BYTES - 1, 1), CHOIR_OK);
	assert_int_equal(chi_stream_wait(f.stream), CHOIR_OK);
	assert_int_equal(last, 6);
	tear_down(&f);
}
