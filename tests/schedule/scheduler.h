// Decides which thread goes on. Everything that is random comes from a seed, time is a number that
// the scheduler moves, and nothing else happens by itself: so what went wrong once goes wrong
// again with the same seed. A thread is overtaken only where scheduler_point and its like are
// called. Memory is sequentially consistent here; weaker orders are ThreadSanitizer's business.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// How a schedule chooses.
typedef enum {
	SCHEDULE_RANDOM, // another thread now and then, anyone
	SCHEDULE_PRIORITIES, // the thread of the highest priority, which drops a few times
	SCHEDULE_STYLES
} schedule_style;

typedef struct {
	schedule_style style;
	uint32_t change; // one in so many points is where another thread may go on
	uint32_t spurious; // one in so many points wakes somebody for nothing; 0: none
	uint32_t late; // one in so many points lets a deadline pass; 0: only when nobody can go on
} schedule_options;

// The calling thread becomes the first. Once.
void scheduler_begin(void);
// What happens from here on follows from seed and options. Other threads must be waiting.
void scheduler_seed(uint64_t seed, const schedule_options *o);
// Deadlines pass only when nobody can go on, from here to the next seed.
void scheduler_in_time(void);
// A number below sides, from the seed.
uint32_t scheduler_random(uint32_t sides);
// Called when nobody can ever go on, or a schedule does not end; must not return.
void scheduler_on_failure(void (*fn)(const char *text));
// Describes all threads, for such a text.
void scheduler_describe(char *text, int size);

// Somebody else may go on here.
void scheduler_point(void);
// The same, and those that spin look again.
void scheduler_write(void);
// The caller spins: it goes on when somebody has written, or nobody else can go on.
void scheduler_spin(void);
// Waits for scheduler_wake of the same thing. False: the deadline has passed. Negative: none.
bool scheduler_wait(const void *what, const char *why, double deadline);
void scheduler_wake(const void *what, bool all);

int scheduler_start(void *(*fn)(void *arg), void *arg);
void scheduler_name(int thread, const char *name);
void scheduler_join(int thread);
int scheduler_current(void);

double scheduler_now(void); // moves a little
// The longest time since the seed that passed because nobody could go on.
double scheduler_stood(void);
// Points and switches so far, and a number that is equal only for equal choices.
typedef struct {
	uint64_t points, switches, hash;
} scheduler_trace;
scheduler_trace scheduler_traced(void);
