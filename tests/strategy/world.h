// What the tests of strategies share: strategies in one line, failures in one line, and a program
// that says whether a strategy still works.
#pragma once

#include "choir/cross.h"
#include "choir/update.h"

// Ways to carry replicas: devices on shared memory, on memory of their own, and mixed.
typedef struct {
	int replicas;
	const char *devices;
} world_deal;
extern const world_deal world_deals[];
extern const int world_deal_count;

// A mirrored strategy; never NULL. timeout in seconds, 0: the default.
choir_strategy *world_new(int replicas, const char *devices, double timeout);
// A variable of a strategy; never NULL.
choir_variable *world_variable(
		choir_strategy *s, const char *name, choir_shape shape, const choir_variable_options *o);
// "cpu:0,cpu:1,..." for so many devices, in text.
const char *world_cpus(int devices, char text[256]);

// Runs three-plus-id (seed C's listing) and an all-reduce, and asserts their results.
void world_works(choir_strategy *s);

// Asserts a failure: its status, and that the last failure's text has both parts (NULL: any).
#define world_failed(status, expected, first, second) \
	world_check_failed((int) (status), (int) (expected), first, second, __FILE__, __LINE__)
void world_check_failed(int status, int expected, const char *first, const char *second,
		const char *file, int line);

// In functions that Choir calls, on whatever thread: a condition that does not hold fails the run.
#define WORLD_NEED(condition) \
	do { \
		if (!(condition)) \
			return choir_fail(CHOIR_INTERNAL, "%s:%d: %s", __FILE__, __LINE__, #condition); \
	} while (0)

// Asserts that a call succeeded.
#define world_ok(status) world_check_ok((int) (status), __FILE__, __LINE__)
void world_check_ok(int status, const char *file, int line);

// For programs that do not look at what a call returns: the run or the frame keeps the failure.
static inline void world_unseen(choir_status status)
{
	(void) status;
}

// The number of a leaf of a set: of a plain or mirrored value, or of one replica's.
double world_number(choir_values *set, const char *name);
double world_number_of(choir_values *set, const char *name, int replica);

// Calls test on every deal with at least so many replicas, with *strategy and *replicas set;
// afterwards the strategy must still work.
void world_on_every_deal(choir_strategy **strategy, int *replicas, int min, void (*test)(void));

// Runs fn until no run of twenty in a row has allocated anything; fails if that does not come.
void world_steady(choir_strategy *s, choir_replica_fn *fn, void *user);

// Ends the program if its tests hang. For main.
void world_watch(void);
