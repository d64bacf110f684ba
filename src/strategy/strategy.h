// A strategy: its replicas, the devices that carry them, threads, streams and variables.
#pragma once

#include "base/lock.h"
#include "base/text.h"
#include "choir/cross.h"
#include "choir/extend/strategy_table.h"
#include "choir/replay.h"
#include "choir/update.h"
#include "collective/multi_worker.h"
#include "strategy/state_dict.h"
#include "value/variable.h"

struct chi_run;
struct chi_thread_pool;

// An object that a strategy owns, such as an optimizer, and how its state is saved.
typedef struct {
	void (*free)(void *self); // called when the strategy is freed, newest object first
	const char *(*name)(const void *self); // of its state; a second one gets "_2"
	choir_status (*save)(void *self, chi_state_dict *to);
	// Takes entries (chi_state_dict_take) and allocates what restore needs. After a failure self
	// is unchanged.
	choir_status (*check)(void *self, chi_state_dict *from);
	// Sets the state, after all checks.
	choir_status (*restore)(void *self, chi_state_dict *from);
	// A hash of what must always be equal on all workers; may be NULL.
	uint64_t (*alike)(const void *self);
} chi_stateful_table;
typedef struct chi_stateful {
	const chi_stateful_table *table; // NULL: no state
	void (*free)(void *self);
	void *self;
	struct chi_stateful *next;
} chi_stateful;

// Cross-device operations that calls selected by name.
typedef struct chi_more_communicators {
	chi_communicator communicator;
	struct chi_more_communicators *next;
} chi_more_communicators;

struct choir_strategy {
	const char *kind; // the table's name, such as "mirrored"
	char label[40]; // for messages: "mirrored" #2, numbered in the process
	choir_strategy_table table; // without empty slots
	void *self; // the table's object
	choir_strategy_options options; // strings are copies
	bool is_default;
	// Worker 0, which owns the variables and all that is made from them. Each worker has its own
	// replicas, devices, threads and loop.
	struct choir_strategy *owner;
	int workers, worker; // their number; this one's index
	struct choir_strategy **by_worker; // owner's
	int first_replica; // index among all replicas of owner
	chi_layout all_replicas; // owner's: of all workers
	choir_device **devices_in_use; // owner's: those that carry replicas
	chi_concurrency concurrency; // of workers that use one variable
	chi_recursive_lock non_slot_lock;
	chi_atomic32 working; // owner's: 1 while worker functions run
	chi_atomic32 stopped; // owner's: a worker function has failed
	// The processes in step; NULL: none.
	chi_process_group *process_group;
	int in_sync; // number of replicas in step, of all processes
	int replica_offset; // number of them in earlier workers
	int replicas; // of this worker
	int devices; // that carry a replica
	choir_device **device;
	int *first; // device i carries replicas first[i] .. first[i + 1] - 1
	choir_device *const *replica_device; // part of all_replicas
	chi_layout layout;
	double timeout; // seconds; negative: none
	struct chi_thread_pool *thread_pool; // of each device
	chi_communicator communicator;
	chi_more_communicators *more_communicators;
	choir_communication_options communication; // defaults of calls
	// The exchange thread; NULL.
	struct chi_overlap_workers *overlap_workers;
	// One for each device, for sums and updates. Not used while replicas use their streams.
	chi_stream **exchange;
	int parameters; // number that hold variables
	choir_device **parameter;
	// Streams for updates on parameter devices with memory of their own; NULL for others.
	chi_stream **parameter_stream;
	int non_slots; // number that hold non-slot variables
	choir_device **non_slot;
	bool all_host; // all workers' replicas use host memory
	bool all_here; // parameter devices share memory with devices
	chi_mutex lock; // protects variables and stateful objects
	// Owner's: held from the search for a name until the variable is listed.
	chi_recursive_lock creation_lock;
	choir_variable *variables, **variables_end;
	// 1: runs update memory of the program.
	chi_atomic32 has_wrapped_memory;
	chi_stateful *stateful;
	uint64_t step; // runs with applied gradients
	uint64_t compared; // the same, ignoring restores
	chi_text notes; // owner's: lines to compare between workers
	choir_gradient_fn *watch; // owner's: called for gradients; may be NULL
	void *watch_user;
	chi_atomic32 running; // 1: the program's run is active
	unsigned fork_generation;
	struct chi_run *run; // kept between runs, with nested ones
	struct chi_run *default_run; // the default replica's
	struct choir_cross *cross; // the program's
};

// A worker's devices, streams, threads and run. owner, worker and first_replica are set.
choir_status chi_strategy_open_block(choir_strategy *s);
void chi_strategy_close_block(choir_strategy *s);

// Makes a strategy from a table. NULL: a failure.
choir_strategy *chi_strategy_new(
		const choir_strategy_table *table, const choir_strategy_options *o);

// The stream that writes device's memory: its parameter stream, or else the exchange stream of d.
chi_stream *chi_strategy_stream(const choir_strategy *s, int d, const choir_device *device);
// Whether replicas of s may use v.
static inline bool chi_strategy_has(const choir_strategy *s, const choir_variable *v)
{
	return v->strategy == s->owner;
}
// Values in place of a copy's index. CHI_NO_COPY: a failure, recorded in the context's frame.
enum { CHI_ALL_COPIES = -1, CHI_NO_COPY = -2 };
// The copy of v that this worker's replica reads.
static inline int chi_strategy_copy(const choir_strategy *s, const choir_variable *v, int replica)
{
	return v->copy_of_replica[s->first_replica + replica];
}

// The replica's id among all in step.
static inline int chi_strategy_id(const choir_strategy *s, int replica)
{
	return s->replica_offset + replica;
}
// Fails with CHOIR_STATE in a child of a fork.
choir_status chi_strategy_check(const choir_strategy *s);

// Waits for sums and updates on devices from .. to - 1, even after a failure, as their memory is
// reused. Returns status or the first failure of a wait.
choir_status chi_strategy_wait(choir_strategy *s, int from, int to, choir_status status);
// The same for parameter devices with memory of their own, by the first device's thread.
choir_status chi_strategy_wait_away(choir_strategy *s, choir_status status);
// Resets the communicators after a failed collective in cross-replica context. No other thread
// may communicate.
void chi_strategy_reset_collectives(choir_strategy *s);

// Makes s own self. fn is called before the strategy's variables are freed, or at once after a
// failure.
choir_status chi_strategy_own(choir_strategy *s, void (*fn)(void *self), void *self);
// The same for an object with state; table->free is called.
choir_status chi_strategy_own_stateful(
		choir_strategy *s, const chi_stateful_table *table, void *self);
