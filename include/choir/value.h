// Values of replicas, and sets of named values: the arguments and results of runs, merge calls and
// updates. A choir_values is a flat set of leaves with names like "encoder/w"; a leaf is a
// choir_value. For a formula, reduce a value, or take one replica's tensor.
//
// Ownership: a value lives as long as its frame's tensors: in a set until the set is cleared,
// filled again or freed; in a merge call until the call ends.
// Errors: a value's frame keeps the failure of an expression.
// Threads: the thread of a value's frame uses the value. One thread at a time uses a set. The
// program must not use a set while a run uses it.
#pragma once

#include "tensor.h"

CHOIR_C_BEGIN

typedef struct choir_strategy choir_strategy;
typedef struct choir_value choir_value;
typedef struct choir_values choir_values;

// What a value is.
typedef enum {
	CHOIR_VALUE_PLAIN, // one tensor for all replicas
	CHOIR_VALUE_PER_REPLICA, // one tensor for each replica, in the order of ids
	CHOIR_VALUE_MIRRORED, // equal tensors, one on each device of a destination
	CHOIR_VALUE_VARIABLE,
	CHOIR_VALUE_DESTINATION // devices only (choir_cross_destination)
} choir_value_kind;

// Leaves

// Makes a plain value in t's frame, or gives the variable's value if t is a
// choir_variable_component.
choir_value *choir_tensor_as_value(choir_tensor *t);

// Gives v as a value without a frame: the same object each time.
choir_value *choir_variable_as_value(choir_variable *v);

// The tensor of a plain value, or the first of a mirrored value, in the value's frame. For a
// per-replica value use choir_value_local.
choir_tensor *choir_value_tensor(choir_value *v);

// The variable of v. NULL without a failure: v has another kind.
choir_variable *choir_value_variable(choir_value *v);
choir_value_kind choir_value_kind_of(const choir_value *v);

// The number of local results: one per local replica, device, or copy of the variable; 1 for a
// plain value or a sharded variable.
int choir_value_local_count(const choir_value *v);

// Gives a local result in the value's frame: a view, or a copy if the devices do not share memory.
// index is a local_replica, or the index of a device or copy. NULL without a failure: this replica
// has no value. CHOIR_INVALID: v is a destination, or comes from choir_variable_as_value (use
// choir_variable_read). CHOIR_STATE: the variable is undefined.
choir_tensor *choir_value_local(choir_value *v, int index);

// Sets of leaves

// Makes an empty set for runs of s (NULL: the default strategy). After s is freed, the set can
// only be freed. CHOIR_STATE: s is from before a fork. Threads: any.
choir_values *choir_values_new(choir_strategy *s);
void choir_values_free(choir_values *set);

// Frees the set's leaves, values and tensors, and forgets its frame's failure. Keeps the memory
// for the next leaves.
void choir_values_clear(choir_values *set);

// The set's frame, on cpu:0, for tensors that become leaves; choir_values_clear clears it.
choir_frame *choir_values_frame(choir_values *set);

// Finds a leaf. NULL without a failure: set or name is NULL.
choir_value *choir_values_find(choir_values *set, const char *name);

// Setting a leaf again replaces it. A set uses a tensor of its own frame directly; memory that it
// borrows must stay valid until the set is cleared. It makes a view of another frame's tensor, or
// a copy if that is borrowed, a read of a variable, or on another device.
//
// CHOIR_STATE: the tensor is freed or a stale read (tensor.h).

// Sets a leaf to v, which has the set's number of replicas. v may belong to another set or be a
// reduction.
CHOIR_MUST_CHECK choir_status choir_values_set(
		choir_values *set, const char *name, choir_value *v);

// Sets one local replica's tensor in a per-replica leaf. Shapes may differ. Replaces a leaf that
// was split or is not per-replica.
CHOIR_MUST_CHECK choir_status choir_values_set_local(
		choir_values *set, const char *name, int local_replica, choir_tensor *t);

// Splits a global batch [rows, ...] into a per-replica leaf of views. With R replicas, the first
// (rows mod R) get rows / R + 1 rows, the others rows / R. Every worker passes the whole batch.
// All split leaves of a set have one number of rows.
CHOIR_MUST_CHECK choir_status choir_values_split(
		choir_values *set, const char *name, choir_tensor *t);

// Makes one replica's tensor in f, the set's frame on the replica's device. count is the number of
// replicas of the job. NULL: a failure, which f keeps or choir_fail has recorded.
typedef choir_tensor *choir_value_fn(choir_frame *f, int replica_id, int count, void *user);

// Sets a per-replica leaf to fn's results. Calls fn for each local replica, in order, on this
// thread. Returns fn's first failure; earlier replicas' tensors stay set.
CHOIR_MUST_CHECK choir_status choir_values_set_from_function(
		choir_values *set, const char *name, choir_value_fn *fn, void *user);

CHOIR_C_END
