// What a strategy is made of: which replicas there are, which device carries which of them, the
// threads and streams that do it, and the variables that were made in it.
#pragma once

#include "base/lock.h"
#include "base/text.h"
#include "choir/cross.h"
#include "choir/extend/strategy.h"
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
	// With whom this process is in step; NULL: with nobody.
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
	// Exchanges beside the backward pass; NULL: there are none.
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
	choir_gradient_fn *watch; // owner's: sees what is given to optimizers; NULL: nobody does
	void *watch_user;
	chi_atomic32 running; // 1 while a run of the program is under way
	unsigned fork_generation;
	struct chi_run *run; // kept from run to run; nested ones hang on it
	struct chi_run *default_run; // of the default replica, outside any run
	struct choir_cross *cross; // the program's own
};

// The rest of the workers of a parameter server, and their end (parameter_server_workers.c).
choir_status chi_strategy_open_workers(choir_strategy *owner);
void chi_strategy_close_workers(choir_strategy *owner);
// What one worker has: devices for its block of all_replicas, streams, threads, a run. owner,
// worker and first_replica are set.
choir_status chi_strategy_open_block(choir_strategy *s);
void chi_strategy_close_block(choir_strategy *s);

// The table with stubs in its empty slots.
choir_strategy_table chi_strategy_table_filled(const choir_strategy_table *table);
// A strategy of a table. NULL after a failure.
choir_strategy *chi_strategy_new(
		const choir_strategy_table *table, const choir_strategy_options *o);

// Choir's own kinds.
extern const choir_strategy_table chi_default_table, chi_one_device_table, chi_mirrored_table,
		chi_central_storage_table, chi_parameter_server_table, chi_multi_worker_mirrored_table;

// The exchange stream of device d, or that of the parameter device: where its memory can be
// written.
chi_stream *chi_strategy_stream(const choir_strategy *s, int d, const choir_device *device);
// Fills *all from o (NULL: all defaults); CHOIR_INVALID naming the option and its value.
choir_status chi_communication_check(
		const choir_communication_options *o, choir_communication_options *all);
// CHOIR_CANCELLED where another worker has failed.
choir_status chi_strategy_check_not_stopped(const choir_strategy *s);
// Whether v is one that replicas of s may use.
static inline bool chi_strategy_has(const choir_strategy *s, const choir_variable *v)
{
	return v->strategy == s->owner;
}
// In place of a copy of a variable: all of them; none, and the frame of the context keeps why.
enum { CHI_ALL_COPIES = -1, CHI_NO_COPY = -2 };
// Which copy of v replica (of this worker) reads.
static inline int chi_strategy_copy(const choir_strategy *s, const choir_variable *v, int replica)
{
	return v->copy_of_replica[s->first_replica + replica];
}

// The workers that s is in step with (worker_sync.c): who has which replicas, and whether all were
// made with what must be equal. local is how many replicas there would be here if none were asked
// for; becomes how many there are.
choir_status chi_strategy_open_process_group(choir_strategy *s, int *local);
void chi_strategy_close_process_group(choir_strategy *s);
// What replica is called everywhere: its id among all that are in step.
static inline int chi_strategy_id(const choir_strategy *s, int replica)
{
	return s->replica_offset + replica;
}
// A variable that is about to be made: all workers make it, with the chief's values, which initial
// (chi_variable_bytes, host memory) becomes. Without peers nothing.
choir_status chi_strategy_agree_on_variable(
		choir_strategy *s, const chi_variable_plan *plan, void *initial, size_t bytes);
// What fmt says must be the same on all workers, which all come here. Without peers nothing.
choir_status chi_strategy_same(choir_strategy *s, const char *fmt, ...) CHOIR_PRINTF(2, 3);
// The same, but compared later: with values, after the first update and then as often as they are
// (worker_consistency.h), so that it takes no message of its own.
choir_status chi_strategy_note(choir_strategy *s, const char *fmt, ...) CHOIR_PRINTF(2, 3);
void chi_strategy_forget_notes(choir_strategy *s, size_t length); // all after so many bytes
// *sum becomes the sum of all workers'.
choir_status chi_strategy_add_counts(choir_strategy *s, double *sum);
// Examples of all workers' replicas in a set that says only how many there are here.
choir_status chi_strategy_count_examples(choir_strategy *s, choir_values *args);
// The parts of an ON_READ variable of all replicas that are in step, in the order of their ids:
// in_sync times chi_variable_bytes to out.
choir_status chi_strategy_all_parts(choir_variable *v, void *out);
// What came of something on each worker, status here, with choir_error(): CHOIR_OK if it went well
// everywhere, else on all workers the failure of the lowest that has one, named if it is another.
// Nothing is over then. Without peers status.
choir_status chi_strategy_agree(choir_strategy *s, choir_status status, const char *what);
// What the chief has, everywhere: *data (chi_free) of *bytes is made on the others, but after a
// failure.
choir_status chi_strategy_share(choir_strategy *s, void **data, size_t *bytes, const char *what);
// How many parts an ON_READ variable has, on all workers.
static inline int chi_strategy_parts(const choir_variable *v)
{
	return v->strategy->process_group == NULL ? v->copies : v->strategy->in_sync;
}
// What has just failed here is a failure everywhere: of the cluster, unless all workers come here
// with the same. No other thread of this worker exchanges anything meanwhile. Its status.
choir_status chi_strategy_abort(choir_strategy *s, choir_status status);
// The same of a tensor that was to be made in f and is NULL; t.
choir_tensor *chi_strategy_abort_if_null(choir_strategy *s, choir_frame *f, choir_tensor *t);

// Which device carries replica.
int chi_strategy_device_index(const choir_strategy *s, int replica);
// CHOIR_STATE in a child of a fork.
choir_status chi_strategy_check(const choir_strategy *s);

// Until what is queued for sums and updates on devices from .. to - 1 is done, also after a
// failure: what is given back or written next must be in nobody's use. status, or else the first
// failure of a wait.
choir_status chi_strategy_wait(choir_strategy *s, int from, int to, choir_status status);
// The same on parameter devices that share memory with no device, by the thread of the first
// device.
choir_status chi_strategy_wait_away(choir_strategy *s, choir_status status);
// After a failed exchange in cross-replica context, when nobody else exchanges anything: the next
// one starts clean.
void chi_strategy_reset_collectives(choir_strategy *s);

// Makes a variable and enters it in the list. The calling context has been checked.
typedef struct {
	const char *name;
	const choir_shape *shape;
	const choir_variable_options *options; // of this library's size; NULL: all defaults
	choir_variable *colocated_with; // colocated with it; NULL
	bool non_slot; // where the strategy's non-slot variables lie
	void *wrap; // the caller's memory; NULL
	bool slot; // zeros of an optimizer, of which workers that agree on the rest need not speak
} chi_creation;
choir_variable *chi_strategy_make_variable(choir_strategy *s, const chi_creation *c);
// The variable of c's name, made if there is none. CHOIR_INVALID: it has another dtype or shape.
choir_variable *chi_strategy_find_or_make_variable(choir_strategy *s, const chi_creation *c);
// Around what asks for a name and then makes a variable: one worker at a time; may be nested.
// CHOIR_TIMEOUT naming what was to be made.
choir_status chi_strategy_begin_creation(choir_strategy *s, const char *name);
void chi_strategy_end_creation(choir_strategy *s);
// A slot of an optimizer beside v: zeros, not trainable, not saved with the weights.
choir_variable *chi_strategy_make_slot(choir_variable *v, const char *what);
// Takes back a variable that was just made and that nobody else has: it leaves the list and is
// freed.
void chi_strategy_delete_variable(choir_variable *v);
// Whether a place is that of the strategy's non-slot variables (update/non_slot.c).
bool chi_strategy_is_non_slot_destination(const choir_strategy *s, const choir_value *place);
choir_variable *chi_strategy_find_variable(choir_strategy *s, const char *name);
// The strategy takes self over: fn is called when it is freed, before its variables are. On
// failure fn is called at once.
choir_status chi_strategy_own(choir_strategy *s, void (*fn)(void *self), void *self);
// The same with a state: table->free is called.
choir_status chi_strategy_own_stateful(
		choir_strategy *s, const chi_stateful_table *table, void *self);
