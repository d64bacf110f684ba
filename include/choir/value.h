// Values of replicas, and sets of values by name: the arguments and results of runs, merge calls
// and updates. A choir_values is a flat set of leaves with names like "encoder/w". A leaf is a
// choir_value. A value is not a tensor: a formula needs it reduced, or one replica's tensor.
//
// Ownership: a value lives as long as the tensors of its frame; in a set, until the set is
// cleared, filled again or freed; in a merge call, until the call ends.
// Errors: a value's frame keeps the failure of an expression.
// Threads: only the thread of its frame may use a value. One thread at a time may use a set, and
// no thread while a run uses it.
#pragma once

#include "tensor.h"

CHOIR_C_BEGIN

typedef struct choir_strategy choir_strategy;
typedef struct choir_variable choir_variable;
typedef struct choir_value choir_value;
typedef struct choir_values choir_values;

// What a value is.
typedef enum {
	CHOIR_VALUE_PLAIN, // one tensor for all replicas
	CHOIR_VALUE_PER_REPLICA, // a tensor for each replica, in the order of ids
	CHOIR_VALUE_MIRRORED, // equal tensors, one for each device of the destination
	CHOIR_VALUE_VARIABLE,
	CHOIR_VALUE_DESTINATION // devices only (choir_cross_destination)
} choir_value_kind;

// Leaves

// Makes a plain value in t's frame, or the variable of a component (choir_variable_component).
choir_value *choir_tensor_as_value(choir_tensor *t);

// Gives v as a value: the same object each time, without a frame.
choir_value *choir_variable_as_value(choir_variable *v);

// The tensor of a plain value, or the first of a mirrored value, in the value's frame. For
// per-replica values there is choir_value_local.
choir_tensor *choir_value_tensor(choir_value *v);

// The variable. NULL without a failure: v is of another kind.
choir_variable *choir_value_variable(choir_value *v);
choir_value_kind choir_value_kind_of(const choir_value *v);

// The number of local results: 1 for a plain value, else the number of local replicas, of devices,
// or of a variable's copies (1 for a variable in shards).
int choir_value_local_count(const choir_value *v);

// Gives a local result in the value's frame: a view, or a copy if memory is not shared. index is a
// local_replica, or the index of a device or copy. NULL without a failure: nothing was set for
// this replica. v is no destination, and not from choir_variable_as_value (use
// choir_variable_read). CHOIR_STATE: an update left the variable undefined.
choir_tensor *choir_value_local(choir_value *v, int index);

// Sets of leaves

// Makes an empty set for runs of s (NULL: the default strategy). After s is freed, the set can
// only be freed. CHOIR_STATE: s was made before a fork. Threads: any.
choir_values *choir_values_new(choir_strategy *s);
void choir_values_free(choir_values *set);

// Frees the set's leaves, values and tensors, and forgets its frame's failure. The memory stays
// for the next filling.
void choir_values_clear(choir_values *set);

// The set's frame, on cpu:0, for tensors that become leaves. choir_values_clear clears it.
choir_frame *choir_values_frame(choir_values *set);

// CHOIR_NOT_FOUND: there is no such leaf. NULL without a failure: set or name is NULL.
choir_value *choir_values_find(choir_values *set, const char *name);

// Setting a leaf again replaces it. A tensor of the set's frame is used directly; memory that it
// borrows must stay valid until the set is cleared. Of any other tensor the set keeps a view, or a
// copy if it is borrowed, a read of a variable, or on another device.
//
// CHOIR_STATE: a tensor that is dead or a stale read. A NULL value or tensor gives the thread's
// last failure, or CHOIR_INVALID.

// Sets a leaf to any value of the same number of replicas, also one of another set or a reduction.
CHOIR_MUST_CHECK choir_status choir_values_set(
		choir_values *set, const char *name, choir_value *v);

// Sets one local replica's tensor of a per-replica leaf; shapes may differ. A leaf that was split
// or is not per-replica is replaced.
CHOIR_MUST_CHECK choir_status choir_values_set_local(
		choir_values *set, const char *name, int local_replica, choir_tensor *t);

// Splits a global batch [rows, ...] into a per-replica leaf of views. With R replicas, the first
// rows mod R get rows / R + 1 rows each, the others rows / R. Each of several workers passes the
// whole batch and keeps its replicas' rows. All split leaves have the same number of rows.
CHOIR_MUST_CHECK choir_status choir_values_split(
		choir_values *set, const char *name, choir_tensor *t);

// Makes one replica's tensor in f, the set's frame on the replica's device. count is the number of
// replicas of all workers. NULL is a failure, which f keeps or choir_fail has recorded.
typedef choir_tensor *choir_value_fn(choir_frame *f, int replica_id, int count, void *user);

// Sets a per-replica leaf to fn's results. fn is called for each local replica, in order, on this
// thread. Returns fn's first failure; earlier replicas' tensors stay set.
CHOIR_MUST_CHECK choir_status choir_values_set_from_function(
		choir_values *set, const char *name, choir_value_fn *fn, void *user);

CHOIR_C_END
