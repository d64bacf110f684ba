// A coordinator's queue of closures, first in first out, and those that workers have. A state
// machine without threads and clock; each call takes constant time. A lost worker's closures
// return to the queue's front.
#pragma once

#include "base/serialization.h"
#include "base/status.h"

typedef enum { CHI_CLOSURE_WAITS, CHI_CLOSURE_RUNS, CHI_CLOSURE_FINISHED } chi_closure_state;

typedef struct chi_closure {
	uint64_t id; // from 1, in the order of scheduling
	int function, attempt; // attempt: from 1
	int worker;
	bool pinned; // to this worker: no retries, and a failure cancels nothing
	chi_closure_state state;
	chi_pack args, result;
	choir_status status; // of a finished closure
	char *error; // its text, or NULL
	int references; // the closures' and the remote value's
	struct chi_closure *next, *previous;
} chi_closure;

typedef struct {
	chi_closure *first, *last;
	size_t n;
} chi_closure_list;

typedef struct {
	bool used, hungry; // hungry: can take more, and is in that list
	chi_closure_list has; // in order
	int more; // beyond the window
	double finished, pace; // the owner's: the last finish, and seconds per closure
	int next_hungry;
} chi_closure_worker;

typedef struct {
	chi_closure_list waiting;
	size_t running;
	uint64_t last_id;
	int window, attempts; // closures per worker; attempts per closure
	chi_closure_worker *worker;
	size_t workers, capacity; // numbers in use
	int hungry; // the first in the list, or CHOIR_NONE
	bool failed; // error is the first failure, not yet reported
	chi_error error;
} chi_closures;

void chi_closures_init(chi_closures *q, int window, int attempts);
void chi_closures_free(chi_closures *q);
// A closure takes over args. NULL: no memory, and args is freed. Free with chi_closure_drop.
chi_closure *chi_closure_new(int function, chi_pack *args);
void chi_closure_drop(chi_closure *c);
// Takes a reference. After an unreported failure the closure is cancelled at once.
void chi_closures_add(chi_closures *q, chi_closure *c);
// The new worker's number, the lowest free one. CHOIR_NONE: no memory.
int chi_closures_join(chi_closures *q);
// To a worker that can take more. NULL: no such worker or closure.
chi_closure *chi_closures_give(chi_closures *q);
// Beyond the worker's window.
void chi_closures_pin(chi_closures *q, chi_closure *c, int worker);
// Call it after more has changed.
void chi_closures_wants(chi_closures *q, int worker);
chi_closure *chi_closures_find(const chi_closures *q, int worker, uint64_t id);
// Takes result. False: the worker does not have this closure. name: the worker's.
bool chi_closures_finish(chi_closures *q, int worker, uint64_t id, choir_status status,
		const char *text, const char *name, chi_pack *result);
// Calls ended for each closure that fails after its last attempt.
void chi_closures_lost(chi_closures *q, int worker, const char *why,
		void (*ended)(void *user, const chi_closure *c), void *user);
// Nothing waits and nothing runs.
bool chi_closures_idle(const chi_closures *q);
// When nothing runs: the first failure becomes this thread's, once, and cancels waiting closures.
choir_status chi_closures_take_error(chi_closures *q);
// Unfinished closures get this thread's last failure.
void chi_closures_end(chi_closures *q);
