// Threads as fibers in a table, and the choice among those that can go on. Two ways to choose find
// different faults: anyone at any point, and priorities that change at few points (Burckhardt and
// others, "A randomized scheduler with probabilistic guarantees of finding bugs", 2010), which
// gives long runs of one thread while another stands still in an awkward place.
#include "scheduler.h"

#include "fiber.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 64, MAX_POINTS = 2000000, POINTS_A_DROP = 200 };

// Deadlines further off are those of devices, and pass only when nobody can go on: a copy that is
// still queued when its owner has given up may land in memory that is somebody else's by then.
static const double SOON = 10;

// A look at the clock takes so long: spinning for a while is a matter of a few looks.
static const double LOOK = 15e-6;

typedef enum { UNUSED, READY, SPINS, WAITS, ENDED } thread_state;

typedef struct {
	fiber fiber;
	thread_state state;
	const void *what; // it waits for
	const char *why;
	double deadline;
	bool in_time;
	uint64_t spun; // writes there were when it looked last
	uint32_t priority;
	void *(*fn)(void *arg);
	void *arg;
	char name[16];
} thread;

static thread threads[MAX_THREADS];
static int thread_count, current;
static schedule_options options;
static scheduler_trace trace;
static uint64_t random_state, writes, points_before; // the seed
static double now;
static double stood; // the longest time that passed because nobody could go on
static void (*on_failure)(const char *text);

// SplitMix64 (Steele, Lea and Flood 2014).
static uint64_t next_random(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint32_t scheduler_random(uint32_t sides)
{
	return (uint32_t) (((next_random() >> 32) * sides) >> 32);
}

static bool one_in(uint32_t n)
{
	return n != 0 && scheduler_random(n) == 0;
}

void scheduler_begin(void)
{
	fiber_begin(&threads[0].fiber);
	threads[0].state = READY;
	snprintf(threads[0].name, sizeof threads[0].name, "caller");
	thread_count = 1;
	options.change = 1;
}

void scheduler_seed(uint64_t seed, const schedule_options *o)
{
	random_state = seed;
	options = *o;
	points_before = trace.points;
	stood = 0;
	for (int i = 0; i < MAX_THREADS; i++)
		threads[i].priority = 1000 + scheduler_random(1 << 20);
}

void scheduler_in_time(void)
{
	options.late = 0;
}

void scheduler_on_failure(void (*fn)(const char *text))
{
	on_failure = fn;
}

void scheduler_describe(char *text, int size)
{
	static const char *const states[] = { "", "can go on", "spins", "waits", "ended" };
	int at = 0;
	text[0] = '\0';
	for (int i = 0; i < thread_count && at < size; i++) {
		const thread *t = &threads[i];
		if (t->state != UNUSED && t->state != ENDED)
			at += snprintf(text + at, (size_t) (size - at), "  %d (%s) %s%s%s%s\n", i, t->name,
					states[t->state], t->state == WAITS ? ": " : "",
					t->state == WAITS ? t->why : "",
					t->state == WAITS && isfinite(t->deadline) ? ", with a deadline" : "");
	}
}

static void give_up(const char *what)
{
	char all[4096], text[4500];
	scheduler_describe(all, sizeof all);
	snprintf(text, sizeof text, "%s\n%s", what, all);
	on_failure(text);
	abort();
}

static bool can_go_on(const thread *t)
{
	return t->state == READY || (t->state == SPINS && t->spun != writes) ||
			(t->state == WAITS && t->deadline <= now);
}

// Time passes: to the next deadline. False: there is none within so many seconds.
static bool let_time_pass(double max)
{
	double next = now + max;
	for (int i = 0; i < thread_count; i++)
		if (threads[i].state == WAITS && threads[i].deadline < next)
			next = threads[i].deadline;
	if (next == now + max)
		return false;
	now = next > now ? next : now;
	return true;
}

static void wake_for_nothing(void)
{
	thread *t = &threads[scheduler_random((uint32_t) thread_count)];
	if (t->state == WAITS) {
		t->state = READY;
		t->in_time = true;
	}
}

static int highest(const int *list, int n)
{
	int best = list[0];
	for (int i = 1; i < n; i++)
		if (threads[list[i]].priority > threads[best].priority)
			best = list[i];
	return best;
}

static int choose(void)
{
	int list[MAX_THREADS], n = 0;
	for (int i = 0; i < thread_count; i++)
		if (can_go_on(&threads[i]))
			list[n++] = i;
	for (int i = 0; n == 0 && i < thread_count; i++) // nobody writes: spinning comes to its end
		if (threads[i].state == SPINS)
			threads[i].state = READY, list[n++] = i;
	if (n == 0) {
		const double before = now;
		if (!let_time_pass(HUGE_VAL))
			give_up("nobody can ever go on");
		stood = now - before > stood ? now - before : stood;
		return choose();
	}
	if (options.style == SCHEDULE_PRIORITIES)
		return highest(list, n);
	return n == 1 ? list[0] : list[scheduler_random((uint32_t) n)];
}

static void switch_to(int to)
{
	thread *t = &threads[to];
	if (t->state == WAITS)
		t->in_time = false; // it was chosen because its time has come
	t->state = READY;
	trace.hash = (trace.hash ^ (uint64_t) to ^ trace.points << 8) * 0x100000001b3u;
	if (to == current)
		return;
	trace.switches++;
	const int from = current;
	current = to;
	fiber_switch(&threads[from].fiber, &t->fiber);
}

static void count_point(void)
{
	if (++trace.points - points_before == MAX_POINTS)
		give_up("this does not end");
	if (one_in(options.spurious))
		wake_for_nothing();
	if (one_in(options.late))
		let_time_pass(SOON);
}

void scheduler_point(void)
{
	count_point();
	if (options.style == SCHEDULE_PRIORITIES) {
		if (one_in(POINTS_A_DROP))
			threads[current].priority = scheduler_random(1000);
		switch_to(choose());
	} else if (one_in(options.change)) {
		switch_to(choose());
	}
}

void scheduler_write(void)
{
	scheduler_point();
	writes++;
}

void scheduler_spin(void)
{
	count_point();
	threads[current].state = SPINS;
	threads[current].spun = writes;
	switch_to(choose());
}

bool scheduler_wait(const void *what, const char *why, double deadline)
{
	thread *t = &threads[current];
	count_point();
	t->state = WAITS;
	t->what = what;
	t->why = why;
	t->deadline = deadline < 0 ? HUGE_VAL : deadline;
	t->in_time = true;
	switch_to(choose());
	return t->in_time;
}

void scheduler_wake(const void *what, bool all)
{
	int list[MAX_THREADS], n = 0;
	writes++;
	for (int i = 0; i < thread_count; i++)
		if (threads[i].state == WAITS && threads[i].what == what)
			list[n++] = i;
	if (!all && n > 1) {
		list[0] = list[scheduler_random((uint32_t) n)];
		n = 1;
	}
	for (int i = 0; i < n; i++)
		threads[list[i]].state = READY;
}

static void run_thread(void)
{
	thread *t = &threads[current];
	t->fn(t->arg);
	t->state = ENDED;
	scheduler_wake(t, true);
	switch_to(choose());
	abort(); // nobody chooses who has ended
}

int scheduler_start(void *(*fn)(void *arg), void *arg)
{
	int i = 1;
	while (i < MAX_THREADS && threads[i].state != UNUSED)
		i++;
	if (i == MAX_THREADS)
		give_up("more threads than the table has");
	thread *t = &threads[i];
	const uint32_t priority = t->priority;
	*t = (thread){ .state = READY, .fn = fn, .arg = arg, .priority = priority };
	fiber_make(&t->fiber, run_thread);
	if (i == thread_count)
		thread_count++;
	return i;
}

void scheduler_name(int i, const char *name)
{
	snprintf(threads[i].name, sizeof threads[i].name, "%s", name);
}

void scheduler_join(int i)
{
	thread *t = &threads[i];
	while (t->state != ENDED)
		scheduler_wait(t, "for a thread to end", -1);
	fiber_free(&t->fiber);
	t->state = UNUSED;
	while (threads[thread_count - 1].state == UNUSED)
		thread_count--;
}

int scheduler_current(void)
{
	return current;
}

double scheduler_stood(void)
{
	return stood;
}

double scheduler_now(void)
{
	now += LOOK;
	return now;
}

scheduler_trace scheduler_traced(void)
{
	return trace;
}
