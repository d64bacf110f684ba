// Shared by the tests of strategies: making strategies and checking failures in one line, and a
// test that a strategy still works.
#pragma once

#include "choir/cross.h"
#include "choir/update.h"

// Numbers of replicas on devices with shared memory, separate memories, and both.
typedef struct {
	int replicas;
	const char *devices;
} world_deal;
extern const world_deal world_deals[];
extern const int world_deal_count;

// Makes a mirrored strategy; never NULL. timeout in seconds; 0: the default.
choir_strategy *world_new(int replicas, const char *devices, double timeout);
// Makes a variable; never NULL.
choir_variable *world_variable(
		choir_strategy *s, const char *name, choir_shape shape, const choir_variable_options *o);
// Writes "cpu:0,cpu:1,..." into text, for this number of devices.
const char *world_cpus(int devices, char text[256]);

// Asserts the results of three-plus-id (seed C's listing) and of an all-reduce.
void world_works(choir_strategy *s);

// Asserts the status of a failure and facts of its text (test.h; NULL: none).
#define world_failed(status, expected, first, second) \
	world_check_failed((int) (status), (int) (expected), first, second, __FILE__, __LINE__)
void world_check_failed(int status, int expected, const char *first, const char *second,
		const char *file, int line);

// For functions that Choir calls, on any thread: fails the run if the condition is false.
#define WORLD_NEED(condition) \
	do { \
		if (!(condition)) \
			return choir_fail(CHOIR_INTERNAL, "%s:%d: %s", __FILE__, __LINE__, #condition); \
	} while (0)

// Asserts that a call succeeded.
#define world_ok(status) world_check_ok((int) (status), __FILE__, __LINE__)
void world_check_ok(int status, const char *file, int line);

// Ignores a status, for programs whose run or frame records the failure.
static inline void world_unseen(choir_status status)
{
	(void) status;
}

// Return a leaf of a set as a number: a plain or mirrored value, or one replica's.
double world_number(choir_values *set, const char *name);
double world_number_of(choir_values *set, const char *name, int replica);

// Calls test with *strategy and *replicas for every deal of at least min replicas; the strategy
// must still work afterwards.
void world_on_every_deal(choir_strategy **strategy, int *replicas, int min, void (*test)(void));

// Runs fn until twenty consecutive runs allocate nothing; fails if that does not happen.
void world_steady(choir_strategy *s, choir_replica_fn *fn, void *user);

// Ends the program if its tests hang; called by main.
void world_watch(void);
