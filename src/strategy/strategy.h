// A strategy's replicas, devices, threads, streams and variables. In src/strategy, a function that
// makes a tensor or value records errors in the frame and returns NULL.
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

typedef struct {
	void (*free)(void *self); // newest object first
	const char *(*name)(const void *self); // a second one gets "_2"
	choir_status (*save)(void *self, chi_state_dict *to);
	// A failure leaves self unchanged.
	choir_status (*check)(void *self, chi_state_dict *from);
	choir_status (*restore)(void *self, chi_state_dict *from);
	// Equal on all workers; may be NULL.
	uint64_t (*alike)(const void *self);
} chi_stateful_table;
typedef struct chi_stateful {
	const chi_stateful_table *table;
	void (*free)(void *self);
	void *self;
	struct chi_stateful *next;
} chi_stateful;

typedef struct chi_more_communicators {
	chi_communicator communicator;
	struct chi_more_communicators *next;
} chi_more_communicators;

struct choir_strategy {
	const char *kind;
	char label[40]; // "mirrored" #2
	choir_strategy_table table;
	void *self;
	choir_strategy_options options;
	choir_precision precision;
	bool is_default;
	// Worker 0, which owns the variables and optimizers.
	struct choir_strategy *owner;
	int workers, worker;
	struct choir_strategy **by_worker;
	int first_replica; // of all of owner's
	chi_layout all_replicas;
	choir_device **devices_in_use;
	chi_concurrency concurrency; // of workers on one variable
	chi_recursive_lock non_slot_lock;
	chi_atomic32 working; // 1: in worker functions
	chi_atomic32 stopped;
	// The processes in step; NULL: one.
	chi_process_group *process_group;
	int in_sync; // replicas of all processes
	int replica_offset; // replicas of earlier processes
	int replicas;
	int devices;
	choir_device **device;
	int *first; // device i has first[i] .. first[i + 1] - 1
	choir_device *const *replica_device;
	chi_layout layout;
	double timeout; // seconds; negative: none
	struct chi_thread_pool *thread_pool;
	chi_communicator communicator;
	chi_more_communicators *more_communicators;
	choir_communication_options communication;
	struct chi_overlap_workers *overlap_workers;
	// One per device, for sums and updates, while no replica uses its stream.
	chi_stream **exchange;
	int parameters;
	choir_device **parameter;
	// Of parameter devices with memory of their own.
	chi_stream **parameter_stream;
	int non_slots;
	choir_device **non_slot;
	bool all_host;
	bool all_here; // parameters share memory with devices
	chi_mutex lock;
	// From the search for a name until the variable is listed.
	chi_recursive_lock creation_lock;
	choir_variable *variables, **variables_end;
	chi_atomic32 has_wrapped_memory;
	chi_stateful *stateful;
	uint64_t step; // runs with applied gradients
	uint64_t compared; // the same, ignoring restores
	chi_text notes;
	choir_gradient_fn *watch;
	void *watch_user;
	const struct chi_remote *remote; // the variables are on servers; or NULL
	bool remote_held; // chi_remote_hold
	chi_atomic32 running; // 1: in the program's run
	unsigned fork_generation;
	struct chi_run *run;
	struct chi_run *default_run;
	struct choir_cross *cross;
};

choir_status chi_strategy_open_block(choir_strategy *s);
void chi_strategy_close_block(choir_strategy *s);

choir_strategy *chi_strategy_new(
		const choir_strategy_table *table, const choir_strategy_options *o);

// device's parameter stream, else d's exchange stream.
chi_stream *chi_strategy_stream(const choir_strategy *s, int d, const choir_device *device);
static inline bool chi_strategy_has(const choir_strategy *s, const choir_variable *v)
{
	return v->strategy == s->owner;
}
// In place of a copy's index.
enum { CHI_ALL_COPIES = -1, CHI_NO_COPY = -2 };
static inline int chi_strategy_copy(
		const choir_strategy *s, const choir_variable *v, int local_replica)
{
	return v->copy_of_replica[s->first_replica + local_replica];
}

// Of sums of gradients (docs/decisions/0095).
static inline choir_dtype chi_strategy_wire(const choir_strategy *s, choir_dtype dtype)
{
	return dtype == CHOIR_F32 && s->in_sync > 1 ? s->owner->options.wire : dtype;
}
static inline int chi_strategy_id(const choir_strategy *s, int local_replica)
{
	return s->replica_offset + local_replica;
}
// CHOIR_STATE in a child of a fork.
choir_status chi_strategy_check(const choir_strategy *s);

// Even after a failure, as memory is reused. Returns status or a wait's failure.
choir_status chi_strategy_wait(choir_strategy *s, int from, int to, choir_status status);
choir_status chi_strategy_wait_away(choir_strategy *s, choir_status status);
void chi_strategy_reset_collectives(choir_strategy *s);

// fn is called before variables are freed, or at once after a failure.
choir_status chi_strategy_own(choir_strategy *s, void (*fn)(void *self), void *self);
choir_status chi_strategy_own_stateful(
		choir_strategy *s, const chi_stateful_table *table, void *self);
// Before s is freed.
void chi_strategy_free_owned(choir_strategy *s, const void *self);
