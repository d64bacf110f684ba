// A deterministic scheduler: it decides which thread runs next, and advances a virtual clock. All
// random choices come from a seed, so an error repeats with the same seed. A thread is preempted
// only at scheduler_point and similar calls. Memory is sequentially consistent here;
// ThreadSanitizer checks weaker orders.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// How a schedule chooses threads.
typedef enum {
	SCHEDULE_RANDOM, // switches to a random thread now and then
	SCHEDULE_PRIORITIES, // runs the thread of the highest priority, which drops a few times
	SCHEDULE_STYLES
} schedule_style;

typedef struct {
	schedule_style style;
	uint32_t change; // one point in this many may switch threads
	uint32_t spurious; // one point in this many wakes a thread spuriously; 0: none
	uint32_t late; // one point in this many lets a deadline pass; 0: only when no thread can run
} schedule_options;

// Makes the calling thread the first one; called once.
void scheduler_begin(void);
// Starts a schedule from seed and options. All other threads must be waiting.
void scheduler_seed(uint64_t seed, const schedule_options *o);
// Lets deadlines pass only when no thread can run, until the next seed.
void scheduler_in_time(void);
// Returns a random number below sides.
uint32_t scheduler_random(uint32_t sides);
// Sets the function for a deadlock or an endless schedule; it must not return.
void scheduler_on_failure(void (*fn)(const char *text));
// Describes all threads, for such a text.
void scheduler_describe(char *text, int size);

// Lets another thread run.
void scheduler_point(void);
// The same, and lets spinning threads check again.
void scheduler_write(void);
// Suspends a spinning thread until another has written, or no other can run.
void scheduler_spin(void);
// Waits for scheduler_wake of what. Returns false after the deadline (negative: none).
bool scheduler_wait(const void *what, const char *why, double deadline);
void scheduler_wake(const void *what, bool all);

// Starts a thread and returns its number.
int scheduler_start(void *(*fn)(void *arg), void *arg);
void scheduler_name(int thread, const char *name);
void scheduler_join(int thread);
int scheduler_current(void);

double scheduler_now(void); // advances the clock a little
// Returns the longest time, since the seed, that passed because no thread could run.
double scheduler_stood(void);
// The points and switches so far, and a hash of all choices.
typedef struct {
	uint64_t points, switches, hash;
} scheduler_trace;
scheduler_trace scheduler_traced(void);
