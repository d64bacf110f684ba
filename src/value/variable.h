// Variables from inside: named memory with copies. A mirrored (ON_WRITE) variable has one copy for
// each memory of its strategy's devices; an ON_READ one has a part for each replica. What a read
// or a write means in which context is decided in the room of strategies; here are only the
// copies.
#pragma once

#include "base/recursive_lock.h"
#include "choir/variable.h"
#include "value/value.h"

typedef struct {
	chi_source source; // its version counts the writes
	char *name; // "v/replica_1", for all copies but the first
	chi_buffer *buffer;
	choir_device *device;
	// Not 0: a write failed half way, and reading is an error until it is assigned.
	chi_atomic32 undefined;
} chi_copy;

// How several workers, each with a loop of its own, use one variable.
typedef enum {
	CHI_EXCLUSIVE, // they do not: there is one
	CHI_LOCKED, // one at a time
	CHI_LOCK_FREE // at the same time, element by element
} chi_concurrency;

struct choir_variable {
	choir_strategy *strategy;
	chi_concurrency concurrency;
	chi_recursive_lock *lock; // LOCKED: its own, or that of what it is colocated with
	chi_recursive_lock own_lock;
	double timeout; // for the guard; negative: for ever
	choir_value value; // this variable as a leaf
	char *name;
	choir_dtype dtype;
	choir_shape shape;
	int64_t elements;
	choir_synchronization synchronization; // never AUTO
	choir_aggregation aggregation;
	bool trainable;
	bool slot; // of an optimizer, or a metric's state: not saved with the weights
	bool written; // by the update function that is running
	void *wrapped; // the caller's memory where no copy lies in it, or NULL
	uint64_t wrapped_version; // of copy 0, as it is in wrapped
	choir_variable *colocated_with; // colocated with it; NULL
	bool non_slot; // made where the strategy's non-slot variables lie
	int copies;
	chi_copy *copy;
	int replicas; // of the layout
	int *copy_of_replica; // which copy replica i reads
	// In shards: these have its rows, in order, each a variable of its own, and it has no copies.
	int shards;
	choir_variable **shard;
	chi_source source; // of its reads; its version counts the shards' writes
	choir_variable *parent; // whose shard this is; NULL: nobody's
	int shard_index; // which of the whole's shards
	int64_t first_row; // of the whole's
	choir_variable *next; // in the strategy's list, in order of creation
	choir_variable *next_written; // in the list of the update function that is running
};

// What a variable is made of. Nothing is registered anywhere; free with chi_variable_free.
typedef struct {
	choir_strategy *strategy;
	const char *name;
	choir_shape shape;
	choir_variable_options options; // synchronization resolved
	const chi_layout *layout;
	// Where copies of an ON_WRITE variable go, one for each separate memory; 0 places: where the
	// replicas are. Replicas that share memory with none read the first.
	int copy_devices;
	choir_device *const *copy_device;
	chi_concurrency concurrency;
	chi_recursive_lock *lock; // NULL: one of its own
	double timeout;
	uint64_t seed; // of random initializers, mixed with the name
	void *wrap; // the caller's memory as the one host copy; NULL
	int shards; // above 0: it has no copies, but room for so many shards
} chi_variable_plan;

// CHOIR_INVALID for what can be no variable.
choir_status chi_variable_check_plan(const chi_variable_plan *plan);
choir_variable *chi_variable_new(const chi_variable_plan *plan);
void chi_variable_free(choir_variable *v);

// A copy's value in frame f, which remembers the version: an alias of its memory where f's device
// shares that, else a copy. Of what is in shards the whole, copied. NULL: recorded in f.
choir_tensor *chi_variable_alias(choir_variable *v, int copy, choir_frame *f);
// The same, but what is a copy stays as it is when the variable changes.
choir_tensor *chi_variable_view(choir_variable *v, int copy, choir_frame *f);

// Around what reads or writes v and must not meet another worker's; may be nested for v and what
// is colocated with it. Only for a LOCKED one is there anything to do. CHOIR_TIMEOUT naming v.
choir_status chi_variable_enter(choir_variable *v);
void chi_variable_leave(choir_variable *v);

// Whether writing v changes t or puts it out of date: t is a read of v, of its shards or of its
// whole, or shares memory with v.
bool chi_variable_concerns(const choir_variable *v, const choir_tensor *t);
// t, or a copy of it in its frame where that is so. NULL: recorded.
choir_tensor *chi_variable_apart(const choir_variable *v, choir_tensor *t);
typedef enum { CHI_ASSIGN, CHI_ASSIGN_ADD, CHI_ASSIGN_SUB } chi_assign_op;
// Writes one copy by way of t's frame's stream and moves its version. t has the variable's dtype
// and shape (checked here) or is a plain number.
choir_status chi_variable_write(choir_variable *v, int copy, chi_assign_op op, choir_tensor *t);
choir_status chi_variable_check_written(const choir_variable *v, const choir_tensor *t);
// As a write of all copies from host memory, packed; and one copy to host memory.
choir_status chi_variable_from_host(choir_variable *v, const void *from);
choir_status chi_variable_copy_from_host(choir_variable *v, int copy, const void *from);
choir_status chi_variable_to_host(choir_variable *v, int copy, void *to);
// The value of all copies to memory that nobody looks at soon (base/copy.h).
choir_status chi_variable_copy_out(choir_variable *v, void *to);
// Brings memory that was wrapped up to date with copy 0.
choir_status chi_variable_unwrap(choir_variable *v);
// A write of v failed half way: to read it is an error until it is assigned.
void chi_variable_undefine(choir_variable *v);
// CHOIR_STATE, which f keeps, if copy, or a shard, is undefined.
choir_status chi_variable_check_defined(choir_variable *v, int copy, choir_frame *f);
// Says that copy's memory changed by other means.
void chi_variable_bump_version(choir_variable *v, int copy);
size_t chi_variable_bytes(const choir_variable *v); // of one copy
