// Closures of a coordinator: one queue, first in first out, and those that workers have. A state
// machine without threads and clock; each call takes constant time. A closure whose worker is
// lost goes to the front of the queue again.
#pragma once

#include "base/serialization.h"
#include "base/status.h"

typedef enum { CHI_CLOSURE_WAITS, CHI_CLOSURE_RUNS, CHI_CLOSURE_FINISHED } chi_closure_state;

typedef struct chi_closure {
	uint64_t id; // from 1, in the order of scheduling
	int function, attempt; // attempt: from 1, at the first worker
	int worker; // that has it
	bool pinned; // to this worker: it is not retried, and its failure cancels nothing
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
	bool used, hungry; // hungry: in the list of workers that can take more
	chi_closure_list has; // in order
	int more; // that it may have beside the window
	double finished, pace; // the owner's: when it finished one, and seconds for each
	int next_hungry;
} chi_closure_worker;

typedef struct {
	chi_closure_list waiting;
	size_t running;
	uint64_t last_id;
	int window, attempts; // closures of a worker at a time; attempts of a closure
	chi_closure_worker *worker;
	size_t workers, capacity; // numbers that were given
	int hungry; // the first in the list, or CHOIR_NONE
	bool failed; // error is the first failure, which nobody has been told
	chi_error error;
} chi_closures;

void chi_closures_init(chi_closures *q, int window, int attempts);
void chi_closures_free(chi_closures *q); // drops all
// A closure takes over args. NULL: no memory, and args is freed. Free with chi_closure_drop.
chi_closure *chi_closure_new(int function, chi_pack *args);
void chi_closure_drop(chi_closure *c);
// Takes a reference. After a failure that nobody has been told, the closure is cancelled at once.
void chi_closures_add(chi_closures *q, chi_closure *c);
// A worker's number: the lowest free one. CHOIR_NONE: no memory.
int chi_closures_join(chi_closures *q);
// The next closure for a worker that can take more, or NULL.
chi_closure *chi_closures_give(chi_closures *q);
// Gives a closure to a worker beyond its window, and pins it to the worker.
void chi_closures_pin(chi_closures *q, chi_closure *c, int worker);
// Call it after more has changed.
void chi_closures_wants(chi_closures *q, int worker);
// The worker's closure with this id, or NULL.
chi_closure *chi_closures_find(const chi_closures *q, int worker, uint64_t id);
// A worker's closure has returned; takes result. False: the worker does not have it. name: of the
// worker, for the failure's text. The first failure cancels what waits.
bool chi_closures_finish(chi_closures *q, int worker, uint64_t id, choir_status status,
		const char *text, const char *name, chi_pack *result);
// Calls ended for each closure that fails, because it has had too many workers.
void chi_closures_lost(chi_closures *q, int worker, const char *why,
		void (*ended)(void *user, const chi_closure *c), void *user);
// Nothing waits and nothing runs.
bool chi_closures_idle(const chi_closures *q);
// When nothing runs: the first failure becomes this thread's, once, and cancels what waits.
// CHOIR_OK: there was none.
choir_status chi_closures_take_error(chi_closures *q);
// Ends all closures that have not finished with this thread's last failure.
void chi_closures_end(chi_closures *q);
