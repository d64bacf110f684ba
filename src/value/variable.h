// The copies of variables. A mirrored (ON_WRITE) variable has one copy for each memory of its
// strategy's devices; an ON_READ one has a component for each replica. The strategy decides what a
// read or a write means in a context.
#pragma once

#include "base/recursive_lock.h"
#include "choir/variable.h"
#include "value/value.h"

typedef struct {
	chi_source source; // its version counts the writes
	char *name; // "v/replica_1", for all copies but the first
	chi_buffer *buffer;
	choir_device *device;
	chi_atomic32 undefined; // not 0: a write failed half way; an error to read until assigned
} chi_copy;

// How several workers, each with a loop of its own, use one variable.
typedef enum {
	CHI_EXCLUSIVE, // one worker only
	CHI_LOCKED, // one at a time
	CHI_LOCK_FREE // at the same time, element by element
} chi_concurrency;

struct choir_variable {
	choir_strategy *strategy;
	chi_concurrency concurrency;
	chi_recursive_lock *lock; // LOCKED: its own, or that of what it is colocated with
	chi_recursive_lock own_lock;
	double timeout; // of the lock, seconds; negative: for ever
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
	choir_variable *colocated_with; // NULL
	bool non_slot; // on the devices of the strategy's non-slot variables
	int copies;
	chi_copy *copy;
	int replicas; // of the layout
	int *copy_of_replica; // which copy replica i reads
	int shards; // above 0: they have its rows, in order, and it has no copies
	choir_variable **shard;
	chi_source source; // of its reads; its version counts the shards' writes
	choir_variable *parent; // whose shard this is; NULL
	int shard_index; // among the parent's
	int64_t first_row; // of the parent
	choir_variable *next; // in the strategy's list, in order of creation
	choir_variable *next_written; // in the list of the update function that is running
};

// What a variable is made from.
typedef struct {
	choir_strategy *strategy;
	const char *name;
	choir_shape shape;
	choir_variable_options options; // synchronization resolved
	const chi_layout *layout;
	// Devices for the copies of an ON_WRITE variable, one for each separate memory; 0: those of
	// the replicas. A replica that shares memory with no copy reads the first.
	int copy_devices;
	choir_device *const *copy_device;
	chi_concurrency concurrency;
	chi_recursive_lock *lock; // NULL: one of its own
	double timeout;
	uint64_t seed; // of random initializers, mixed with the name
	void *wrap; // the caller's memory as the one host copy; NULL
	int shards; // above 0: no copies, but room for so many shards
} chi_variable_plan;

choir_status chi_variable_check_plan(const chi_variable_plan *plan); // CHOIR_INVALID
choir_variable *chi_variable_new(const chi_variable_plan *plan);
void chi_variable_free(choir_variable *v);

// A copy's value in frame f, with its version: an alias of its memory where f's device shares
// that, else a copy. A variable in shards is copied whole. NULL: recorded in f.
choir_tensor *chi_variable_alias(choir_variable *v, int copy, choir_frame *f);
// The same; a copy does not change with the variable.
choir_tensor *chi_variable_view(choir_variable *v, int copy, choir_frame *f);

// Around reads and writes of v, which other workers wait for if it is LOCKED. May be nested for v
// and variables colocated with it. CHOIR_TIMEOUT names v.
choir_status chi_variable_enter(choir_variable *v);
void chi_variable_leave(choir_variable *v);

// Whether writing v changes t or makes it stale: t is a read of v, of its shards or of its parent,
// or shares memory with v.
bool chi_variable_concerns(const choir_variable *v, const choir_tensor *t);
// t, or a copy of it in its frame where v concerns it. NULL: recorded.
choir_tensor *chi_variable_apart(const choir_variable *v, choir_tensor *t);
typedef enum { CHI_ASSIGN, CHI_ASSIGN_ADD, CHI_ASSIGN_SUB } chi_assign_op;
// Writes one copy on the stream of t's frame and bumps its version. t has the variable's dtype and
// shape (checked here) or is a plain number.
choir_status chi_variable_write(choir_variable *v, int copy, chi_assign_op op, choir_tensor *t);
choir_status chi_variable_check_written(const choir_variable *v, const choir_tensor *t);
// Writes all copies, or one, from packed host memory; reads one copy to it.
choir_status chi_variable_from_host(choir_variable *v, const void *from);
choir_status chi_variable_copy_from_host(choir_variable *v, int copy, const void *from);
choir_status chi_variable_to_host(choir_variable *v, int copy, void *to);
// Reads copy 0, past the caches where it can (base/copy.h).
choir_status chi_variable_copy_out(choir_variable *v, void *to);
// Writes copy 0 to the wrapped memory if it has changed.
choir_status chi_variable_unwrap(choir_variable *v);
void chi_variable_undefine(choir_variable *v); // a write of it failed half way
// CHOIR_STATE, which f keeps, if copy, or a shard, is undefined.
choir_status chi_variable_check_defined(choir_variable *v, int copy, choir_frame *f);
void chi_variable_bump_version(choir_variable *v, int copy); // its memory changed by other means
size_t chi_variable_bytes(const choir_variable *v); // of one copy
