// The far device: queues and threads. A stream is a line of tasks that one thread works through
// in order, each after a short random wait, so that whatever relies on luck fails soon. Tasks are
// numbered from 1; a mark is the number of the last task queued, so waiting for a mark is waiting
// for a count. After a failure the tasks behind it are not run, until a wait has told of it:
// nothing may be computed from what was never made. One mutex guards all lines of all far
// devices, because lines wait for each other; tasks run without it. The mutex would hide callers
// that use one stream from two threads at once, which a device without it could not bear. So each
// slot notes who is inside, stays there a little at times, and such a stream fails from then on.
#include "base/alloc.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/fpenv.h"
#include "base/lock.h"
#include "base/philox.h"
#include "base/size.h"
#include "base/thread.h"
#include "device/device.h"
#include "far/far.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

enum { MAX_DEVICES = 64, MIN_CAPACITY = 256, MISUSE_SIZE = 96 };

struct line;

typedef struct task {
	struct task *next;
	choir_status (*fn)(void *arg);
	struct line *other; // instead of fn: wait until this line has come to mark; one reference
	uint64_t mark;
	size_t capacity; // bytes of arg
	_Alignas(max_align_t) unsigned char arg[];
} task;

typedef struct {
	int index;
	uint32_t opened; // lines so far
} far_device;

typedef struct line {
	far_device *device;
	chi_thread thread;
	unsigned references; // its stream, and the tasks of lines that wait for it
	unsigned generation; // of the process that has the thread
	uint32_t number; // among the lines of its device, for the delays
	chi_cond work; // its thread waits here for tasks, and between them
	chi_cond progress; // others wait here for finished
	task *first, **end;
	task *spare; // finished tasks, for the next ones
	uint64_t queued, finished;
	uint64_t awaited; // the first mark that others wait for; UINT64_MAX: none
	bool idle; // its thread waits for a task
	uint64_t skipped; // tasks up to this were behind a failure
	bool closing;
	chi_atomic32 inside; // threads in slots that are for one at a time
	chi_atomic64 slot; // the name of the one that is inside
	uint32_t entered; // how often; plain: the thread sanitizer finds unordered turns
	char misuse[MISUSE_SIZE]; // how two threads used the stream at once; empty: none did
	uint64_t failed; // number of the first task that failed and was not told of; 0: none
	chi_error failure;
} line;

typedef struct {
	line *line;
} far_stream;

static chi_mutex lines_mutex = CHI_MUTEX_STATIC(CHI_RANK_STREAM, "far lines");
static chi_atomic64 delay_seed = { 1 }, max_delay = { 20 };
static chi_atomic64 waits;

void far_delays(uint64_t seed, unsigned max)
{
	chi_atomic64_store(&delay_seed, seed);
	chi_atomic64_store(&max_delay, max);
}

uint64_t far_waits(void)
{
	return chi_atomic64_load(&waits);
}

// Threads do not come along into the child of a fork.
static choir_status check_process(const line *l)
{
	if (chi_fork_generation() == l->generation)
		return CHOIR_OK;
	return choir_fail(CHOIR_STATE, "far:%d: the stream belongs to the process before the fork",
			l->device->index);
}

// With the mutex held, as all that follows but what slots call first.
static void release_line(line *l)
{
	if (--l->references > 0)
		return;
	for (task *t = l->spare, *next; t != NULL; t = next) {
		next = t->next;
		chi_free(t);
	}
	chi_cond_destroy(&l->work);
	chi_cond_destroy(&l->progress);
	chi_free(l);
}

static task *new_task(line *l, size_t bytes)
{
	task **at = &l->spare;
	while (*at != NULL && (*at)->capacity < bytes)
		at = &(*at)->next;
	task *t = *at;
	if (t != NULL) {
		*at = t->next;
		return t;
	}
	size_t capacity = bytes > MIN_CAPACITY ? bytes : MIN_CAPACITY, total;
	if (!chi_size_add(offsetof(task, arg), capacity, &total)) {
		choir_fail(CHOIR_NO_MEMORY, "a task of %zu bytes", bytes);
		return NULL;
	}
	t = chi_alloc(total > sizeof *t ? total : sizeof *t);
	if (t != NULL)
		t->capacity = capacity;
	return t;
}

// Queues what fills in the rest: t->fn, or t->other and t->mark. NULL: no memory.
static task *append(line *l, const void *arg, size_t bytes)
{
	task *t = new_task(l, bytes);
	if (t == NULL)
		return NULL;
	t->next = NULL;
	t->fn = NULL;
	t->other = NULL;
	if (bytes > 0)
		memcpy(t->arg, arg, bytes);
	*l->end = t;
	l->end = &t->next;
	l->queued++;
	if (l->idle)
		chi_cond_signal(&l->work);
	return t;
}

static choir_status fail_misuse(const line *l)
{
	return choir_fail(
			CHOIR_INTERNAL, "far:%d: %s; one thread at a time", l->device->index, l->misuse);
}

// A slot begins that is for one thread at a time. Now and then it takes longer, as a slot that
// calls a driver would, so that others come meanwhile if they come at all.
static void enter(line *l, const char *slot)
{
	enum { EVERY = 8 };
	const bool naps = ++l->entered % EVERY == 0 && chi_atomic64_load(&max_delay) > 0;
	const bool alone = chi_atomic32_add(&l->inside, 1) == 0;
	if (alone)
		chi_atomic64_store(&l->slot, (uintptr_t) slot);
	const char *other = (const char *) (uintptr_t) chi_atomic64_load(&l->slot);
	if (naps)
		chi_thread_nap(1e-6);
	chi_mutex_lock(&lines_mutex);
	if (!alone && l->misuse[0] == '\0')
		snprintf(l->misuse, sizeof l->misuse,
				"%s while another thread is in %s of the same stream", slot,
				other == NULL ? "a slot" : other);
}

static choir_status leave(line *l, choir_status status)
{
	const bool misused = l->misuse[0] != '\0';
	chi_mutex_unlock(&lines_mutex);
	chi_atomic32_add(&l->inside, UINT32_MAX);
	return misused ? fail_misuse(l) : status;
}

static choir_status submit(
		line *l, const char *slot, choir_status (*fn)(void *arg), const void *arg, size_t bytes)
{
	CHOIR_TRY(check_process(l));
	enter(l, slot);
	task *t = append(l, arg, bytes);
	if (t != NULL)
		t->fn = fn;
	const choir_status status = leave(l, t == NULL ? CHOIR_NO_MEMORY : CHOIR_OK);
	return status == CHOIR_NO_MEMORY ? chi_error_prefix("far:%d", l->device->index) : status;
}

choir_status far_submit(void *stream, choir_status (*fn)(void *arg), const void *arg, size_t bytes)
{
	return submit(((far_stream *) stream)->line, "kernel", fn, arg, bytes);
}

static void delay(line *l, uint64_t number)
{
	uint64_t seed = chi_atomic64_load(&delay_seed), max = chi_atomic64_load(&max_delay);
	if (max == 0)
		return;
	const uint32_t counter[4] = { (uint32_t) number, (uint32_t) (number >> 32), l->number,
		(uint32_t) l->device->index };
	const uint32_t key[2] = { (uint32_t) seed, (uint32_t) (seed >> 32) };
	uint64_t word = chi_philox(counter, key).word[0];
	double microseconds = (double) ((word * (max + 1)) >> 32);
	double deadline = chi_clock_deadline(1e-6 * microseconds);
	while (chi_cond_wait(&l->work, &lines_mutex, deadline))
		;
}

// Returns after a task up to a mark that somebody waits for. False: the deadline has passed.
static bool await(line *l, uint64_t mark, double deadline)
{
	if (mark < l->awaited)
		l->awaited = mark;
	return chi_cond_wait(&l->progress, &lines_mutex, deadline);
}

// A task that waits for another line; it fails as that line did.
static choir_status follow(const task *t)
{
	while (t->other->finished < t->mark)
		await(t->other, t->mark, chi_clock_deadline(-1));
	if (t->other->failed == 0 || t->other->failed > t->mark)
		return CHOIR_OK;
	chi_error_restore(&t->other->failure);
	return t->other->failure.status;
}

static choir_status run_task(const line *l, task *t, uint64_t number)
{
	if (t->other != NULL)
		return follow(t);
	if (number <= l->skipped || l->failed != 0)
		return CHOIR_OK;
	chi_mutex_unlock(&lines_mutex);
	choir_status status = t->fn(t->arg);
	chi_mutex_lock(&lines_mutex);
	return status;
}

static void keep_failure(line *l, choir_status status, uint64_t number)
{
	if (choir_error_status() != status)
		choir_fail(status, "a queued task failed (%s)", choir_status_name(status));
	chi_error_save(&l->failure);
	l->failed = number;
}

static void finish_task(line *l, task *t)
{
	if (t->other != NULL)
		release_line(t->other);
	l->first = t->next;
	if (l->first == NULL)
		l->end = &l->first;
	t->next = l->spare;
	l->spare = t;
	if (++l->finished < l->awaited)
		return;
	l->awaited = UINT64_MAX;
	chi_cond_broadcast(&l->progress);
}

// The thread of a line.
static void serve(void *arg)
{
	line *l = arg;
	chi_fpenv host; // a new thread has the floating-point settings of who started it
	chi_fpenv_enter(&host);
	prctl(PR_SET_TIMERSLACK, 1UL); // delays end in time; by default up to 50 microseconds later
	chi_mutex_lock(&lines_mutex);
	for (;;) {
		l->idle = true;
		while (l->first == NULL && !l->closing)
			chi_cond_wait(&l->work, &lines_mutex, chi_clock_deadline(-1));
		l->idle = false;
		if (l->first == NULL)
			break;
		uint64_t number = l->finished + 1;
		chi_error_clear();
		delay(l, number);
		choir_status status = run_task(l, l->first, number);
		if (status != CHOIR_OK && number > l->skipped && l->failed == 0)
			keep_failure(l, status, number);
		finish_task(l, l->first);
	}
	chi_mutex_unlock(&lines_mutex);
	chi_fpenv_leave(&host);
}

static int count_devices(void)
{
	return CHOIR_NONE;
}

static choir_status open_device(void *self, int index)
{
	far_device *d = self;
	if (index >= MAX_DEVICES)
		return choir_fail(
				CHOIR_NOT_FOUND, "no such device: the last one is far:%d", MAX_DEVICES - 1);
	d->index = index;
	return far_memory_open();
}

static void describe_device(const void *self, choir_device_info *info)
{
	(void) self;
	info->cores = 1;
	far_memory_describe(&info->memory_total, &info->memory_free);
}

static choir_status allocate(void *self, size_t bytes, void **memory)
{
	(void) self;
	return far_memory_allocate(bytes, memory);
}

static void release(void *self, void *memory, size_t bytes)
{
	(void) self;
	(void) bytes;
	far_memory_release(memory);
}

static choir_status open_stream(void *self, void *stream)
{
	far_device *d = self;
	line *l = chi_alloc(sizeof *l);
	if (l == NULL)
		return CHOIR_NO_MEMORY;
	l->device = d;
	l->references = 1;
	l->generation = chi_fork_generation();
	l->end = &l->first;
	l->awaited = UINT64_MAX;
	chi_cond_init(&l->work);
	chi_cond_init(&l->progress);
	chi_mutex_lock(&lines_mutex);
	l->number = d->opened++;
	chi_mutex_unlock(&lines_mutex);
	char name[16];
	snprintf(name, sizeof name, "far:%d", d->index);
	choir_status status = chi_thread_start(&l->thread, name, serve, l);
	if (status == CHOIR_OK) {
		((far_stream *) stream)->line = l;
		return CHOIR_OK;
	}
	chi_mutex_lock(&lines_mutex);
	release_line(l);
	chi_mutex_unlock(&lines_mutex);
	return status;
}

static void close_stream(void *stream)
{
	line *l = ((far_stream *) stream)->line;
	if (chi_fork_generation() != l->generation)
		return; // no thread to end, and the mutex may be held by one that is not here
	chi_mutex_lock(&lines_mutex);
	l->closing = true;
	chi_cond_signal(&l->work);
	chi_mutex_unlock(&lines_mutex);
	chi_thread_join(&l->thread);
	chi_mutex_lock(&lines_mutex);
	release_line(l);
	chi_mutex_unlock(&lines_mutex);
}

typedef struct {
	void *to;
	const void *from;
	int byte;
	size_t bytes;
} transfer;

static choir_status run_copy(void *arg)
{
	const transfer *t = arg;
	memcpy(far_inside(t->to), far_inside(t->from), t->bytes);
	return CHOIR_OK;
}

static choir_status run_fill(void *arg)
{
	const transfer *t = arg;
	memset(far_inside(t->to), t->byte, t->bytes);
	return CHOIR_OK;
}

static choir_status copy(void *stream, void *to, const void *from, size_t bytes)
{
	const transfer t = { .to = to, .from = from, .bytes = bytes };
	line *l = ((far_stream *) stream)->line;
	return bytes == 0 ? CHOIR_OK : submit(l, "copy", run_copy, &t, sizeof t);
}

static choir_status fill(void *stream, void *to, int byte, size_t bytes)
{
	const transfer t = { .to = to, .byte = byte, .bytes = bytes };
	line *l = ((far_stream *) stream)->line;
	return bytes == 0 ? CHOIR_OK : submit(l, "fill", run_fill, &t, sizeof t);
}

static choir_status mark_stream(void *stream, uint64_t *event)
{
	line *l = ((far_stream *) stream)->line;
	CHOIR_TRY(check_process(l));
	enter(l, "record_event");
	*event = l->queued;
	return leave(l, CHOIR_OK);
}

static choir_status fail_mark(const line *l, uint64_t event)
{
	return choir_fail(CHOIR_INVALID,
			"far:%d: mark %" PRIu64 " does not exist: the last one is %" PRIu64, l->device->index,
			event, l->queued);
}

static choir_status wait_for(void *stream, void *other_stream, uint64_t event)
{
	line *l = ((far_stream *) stream)->line, *other = ((far_stream *) other_stream)->line;
	CHOIR_TRY(check_process(l));
	choir_status status = CHOIR_OK;
	enter(l, "wait_event");
	task *t = NULL;
	if (event > other->queued)
		status = fail_mark(other, event);
	else if ((t = append(l, NULL, 0)) == NULL)
		status = CHOIR_NO_MEMORY;
	if (t != NULL) {
		t->other = other;
		t->mark = event;
		other->references++;
	}
	return leave(l, status);
}

static choir_status wait_locked(line *l, uint64_t event, double seconds)
{
	if (event > l->queued)
		return fail_mark(l, event);
	double deadline = chi_clock_deadline(seconds);
	bool in_time = true;
	while (in_time && l->finished < event)
		in_time = await(l, event, deadline);
	if (l->finished < event)
		return choir_fail(CHOIR_TIMEOUT,
				"far:%d: wait: %" PRIu64 " of %" PRIu64 " queued tasks are done after %g s",
				l->device->index, l->finished, event, seconds);
	if (l->failed == 0 || l->failed > event)
		return CHOIR_OK;
	l->failed = 0;
	l->skipped = l->queued;
	chi_error_restore(&l->failure);
	return l->failure.status;
}

static choir_status wait_stream(void *stream, uint64_t event, double seconds)
{
	line *l = ((far_stream *) stream)->line;
	CHOIR_TRY(check_process(l));
	chi_atomic64_add(&waits, 1);
	chi_mutex_lock(&lines_mutex);
	choir_status status = wait_locked(l, event, seconds);
	const bool misused = l->misuse[0] != '\0';
	chi_mutex_unlock(&lines_mutex);
	return misused ? fail_misuse(l) : status;
}

const choir_device_table far_table = {
	.size = sizeof(choir_device_table),
	.version = CHOIR_TABLE_VERSION,
	.host_memory = false,
	.kind = "far",
	.self_size = sizeof(far_device),
	.stream_size = sizeof(far_stream),
	.count = count_devices,
	.open = open_device,
	.describe = describe_device,
	.allocate = allocate,
	.release = release,
	.stream_open = open_stream,
	.stream_close = close_stream,
	.copy = copy,
	.fill = fill,
	.record_event = mark_stream,
	.wait_event = wait_for,
	.wait = wait_stream,
};
