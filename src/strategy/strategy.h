// What a strategy is made of: which replicas there are, which device carries which of them, the
// threads and streams that do it, and the variables that were made in it.
#pragma once

#include "base/lock.h"
#include "base/text.h"
#include "choir/cross.h"
#include "choir/extend/strategy_table.h"
#include "choir/replay.h"
#include "choir/update.h"
#include "collective/cross_device_ops.h"
#include "strategy/state_dict.h"
#include "value/variable.h"

struct chi_run;
struct chi_thread_pool;

// What a strategy owns beside its variables, and what a checkpoint keeps of it: an optimizer's
// counter, a position in data.
typedef struct {
	void (*free)(void *self); // when the strategy is freed; newest first
	const char *(*name)(const void *self); // of its state; another object of this name gets "_2"
	choir_status (*save)(void *self, chi_state_dict *to);
	// Takes what it needs from the state (chi_state_dict_take) and makes what restore will need;
	// after a failure self is as it was, as far as anyone can see.
	choir_status (*check)(void *self, chi_state_dict *from);
	// After all checks went well: becomes what the state says.
	choir_status (*restore)(void *self, chi_state_dict *from);
	// A hash of what must be equal on all workers at any time; may be NULL.
	uint64_t (*alike)(const void *self);
} chi_stateful_table;
typedef struct chi_stateful {
	const chi_stateful_table *table; // NULL: there is nothing to keep
	void (*free)(void *self);
	void *self;
	struct chi_stateful *next;
} chi_stateful;

// Cross-device operations that a call has asked for by name, beside the strategy's own.
typedef struct chi_more_communicators {
	chi_communicator communicator;
	struct chi_more_communicators *next;
} chi_more_communicators;

struct choir_strategy {
	const char *kind; // "mirrored": its table's name
	char label[40]; // in messages: "mirrored" #2, of all that the process has made
	choir_strategy_table table; // without empty slots
	void *self; // the table's
	choir_strategy_options options; // strings are copies
	bool is_default;
	// Its workers, each of which has replicas, devices, threads and a loop of its own: [0] is this
	// one. Variables and what is made of them belong to owner, which is worker 0.
	struct choir_strategy *owner;
	int workers, worker; // how many; which of them this is
	struct choir_strategy **by_worker; // owner's
	int first_replica; // of this worker, among all of owner
	chi_layout all_replicas; // owner's: the replicas of all workers
	choir_device **devices_in_use; // owner's: the devices that carry replicas
	chi_concurrency concurrency; // of variables by workers
	chi_recursive_lock non_slot_lock;
	chi_atomic32 working; // owner's: 1 while worker functions are under way
	chi_atomic32 stopped; // owner's: a worker function has failed
	// The workers that this process is in step with; NULL: none.
	chi_process_group *process_group;
	int in_sync; // replicas that are in step, of all processes
	int replica_offset; // those of them that workers before this one have
	int replicas; // of this worker
	int devices; // that carry at least one
	choir_device **device; // of each device
	int *first; // device i carries replicas first[i] .. first[i + 1] - 1
	choir_device *const *replica_device; // in all_replicas
	chi_layout layout;
	double timeout; // seconds; negative: for ever
	struct chi_thread_pool *thread_pool; // of each device: threads that are kept
	chi_communicator communicator;
	chi_more_communicators *more_communicators;
	choir_communication_options communication; // of calls that say nothing else
	// Exchanges during the backward pass; NULL: there are none.
	struct chi_overlap_workers *overlap_workers;
	// of each device: for sums and updates, never used while replicas use theirs
	chi_stream **exchange;
	int parameters; // devices that hold variables
	choir_device **parameter;
	// of each of those that shares memory with no device: for updates there; NULL for the others
	chi_stream **parameter_stream;
	int non_slots; // where its non-slot variables have a copy
	choir_device **non_slot;
	bool all_host; // every device's memory that carries replicas, of all workers, is the host's
	bool all_here; // every parameter device shares a device's memory
	chi_mutex lock; // variables, stateful objects
	// Owner's: of variables, from asking for a name to entering it in the list.
	chi_recursive_lock creation_lock;
	choir_variable *variables, **variables_end;
	// 1: there is memory of the program's that runs bring up to date.
	chi_atomic32 has_wrapped_memory;
	chi_stateful *stateful;
	uint64_t step; // runs so far in which gradients were applied
	uint64_t compared; // the same since it was made, whatever was restored
	chi_text notes; // owner's: lines that all workers must have, until they are compared
	choir_gradient_fn *watch; // owner's: sees what is given to optimizers; NULL
	void *watch_user;
	chi_atomic32 running; // 1 while a run of the program is under way
	unsigned fork_generation;
	struct chi_run *run; // kept from run to run; nested ones hang on it
	struct chi_run *default_run; // of the default replica, outside any run
	struct choir_cross *cross; // the program's own
};

// What one worker has: devices for its block of all_replicas, streams, threads, a run. owner,
// worker and first_replica are set.
choir_status chi_strategy_open_block(choir_strategy *s);
void chi_strategy_close_block(choir_strategy *s);

// A strategy of a table. NULL after a failure.
choir_strategy *chi_strategy_new(
		const choir_strategy_table *table, const choir_strategy_options *o);

// The exchange stream of device d, or that of the parameter device: where its memory can be
// written.
chi_stream *chi_strategy_stream(const choir_strategy *s, int d, const choir_device *device);
// Whether v is one that replicas of s may use.
static inline bool chi_strategy_has(const choir_strategy *s, const choir_variable *v)
{
	return v->strategy == s->owner;
}
// In place of a copy of a variable: all copies; none, with the failure in the context's frame.
enum { CHI_ALL_COPIES = -1, CHI_NO_COPY = -2 };
// Which copy of v replica (of this worker) reads.
static inline int chi_strategy_copy(const choir_strategy *s, const choir_variable *v, int replica)
{
	return v->copy_of_replica[s->first_replica + replica];
}

// The id of replica among all that are in step.
static inline int chi_strategy_id(const choir_strategy *s, int replica)
{
	return s->replica_offset + replica;
}
// CHOIR_STATE in a child of a fork.
choir_status chi_strategy_check(const choir_strategy *s);

// Waits for what is queued for sums and updates on devices from .. to - 1, also after a failure,
// since memory that is given back or written next must not be in use. Returns status, or else the
// first failure of a wait.
choir_status chi_strategy_wait(choir_strategy *s, int from, int to, choir_status status);
// The same on parameter devices that share memory with no device. The first device's thread does
// it.
choir_status chi_strategy_wait_away(choir_strategy *s, choir_status status);
// After a failed exchange in cross-replica context, so that the next one starts clean. No other
// thread exchanges anything meanwhile.
void chi_strategy_reset_collectives(choir_strategy *s);

// The strategy takes self over: fn is called when it is freed, before its variables are. On
// failure fn is called at once.
choir_status chi_strategy_own(choir_strategy *s, void (*fn)(void *self), void *self);
// The same with a state: table->free is called.
choir_status chi_strategy_own_stateful(
		choir_strategy *s, const chi_stateful_table *table, void *self);
