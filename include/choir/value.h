// Values of replicas, and sets of values by name: the arguments and results of runs, merge calls
// and updates. A choir_value is one leaf: one tensor for all replicas, a tensor for each
// replica, equal tensors on several devices, a variable, or only a destination (TensorFlow's
// PerReplica and Mirrored values and distributed variables). It is no tensor, so using a
// per-replica value in a formula does not compile: reduce it, or take one replica's tensor. A
// choir_values is a flat set of leaves by name, "encoder/w".
//
// Ownership: a value lives as long as the tensors of its frame: in a set until the set is
// cleared, filled again or freed; in a merge call until that ends.
// Errors: the value's frame keeps the failure of an expression.
// Threads: a value belongs to the thread of its frame. A set is used by one thread at a time,
// and by none while a run uses it.
#pragma once

#include "tensor.h"

CHOIR_C_BEGIN

typedef struct choir_strategy choir_strategy;
typedef struct choir_variable choir_variable;
typedef struct choir_value choir_value;
typedef struct choir_values choir_values;

typedef enum {
	CHOIR_VALUE_PLAIN, // for all replicas
	CHOIR_VALUE_PER_REPLICA, // in the order of their ids
	CHOIR_VALUE_MIRRORED, // equal tensors, one for each device of its destination
	CHOIR_VALUE_VARIABLE,
	CHOIR_VALUE_DESTINATION // devices only (choir_cross_destination)
} choir_value_kind;

// Leaves

// A plain value of t, in t's frame. A component (choir_variable_component) gives its variable as
// a value. Per-replica values: choir_values_set_local.
choir_value *choir_tensor_as_value(choir_tensor *t);

// v as a value: the same object each time, in no frame.
choir_value *choir_variable_as_value(choir_variable *v);

// The tensor of a plain value, or the first of a mirrored one, seen in the value's frame.
// CHOIR_INVALID: a per-replica value (choir_value_local gives each), a variable, a destination.
choir_tensor *choir_value_tensor(choir_value *v);

// The variable that v is, or NULL without a failure.
choir_variable *choir_value_variable(choir_value *v);

choir_value_kind choir_value_kind_of(const choir_value *v);

// The number of v's results in this process: 1 for a plain value; the local replicas
// (choir_strategy_local_replicas) for a per-replica one; the devices for a mirrored value or a
// destination; the copies for a variable (1 if it is in shards).
int choir_value_local_count(const choir_value *v);

// The index-th of these results, in the order of local replicas (index is a local_replica),
// devices or copies. A view in the
// value's frame, or a copy if that frame's device does not share the memory. NULL without a
// failure for a replica of which nothing was set. CHOIR_INVALID: index is out of range; a
// destination; the result of choir_variable_as_value, which is in no frame (choir_variable_read
// reads it). CHOIR_STATE: a variable that an update left undefined.
choir_tensor *choir_value_local(choir_value *v, int index);

// Sets of leaves

// Makes an empty set for arguments or results of runs of s; NULL: of the default strategy. After
// s is freed the set can only be freed. CHOIR_STATE: s was made before a fork. Threads: any.
choir_values *choir_values_new(choir_strategy *s);

void choir_values_free(choir_values *set);

// Empties the set: its leaves, their values and the tensors of its frame die, and the frame's
// failure is forgotten. The memory is kept, so a set that is filled again for each step
// allocates nothing.
void choir_values_clear(choir_values *set);

// The set's own frame, on cpu:0, for tensors that are to be set. It is emptied with the set.
choir_frame *choir_values_frame(choir_values *set);

// The leaf of a name, in the set's frame. CHOIR_NOT_FOUND: there is none. No failure for a NULL
// set or name.
choir_value *choir_values_find(choir_values *set, const char *name);

// Setting leaves. Setting one again replaces it. Tensors of the set's frame are used as they
// are; memory borrowed there must stay until the set is cleared. Of another frame's tensor the
// set keeps a view, or a copy if it is borrowed, is a read of a variable, or lies on another
// device. So a leaf does not change after it was set.
//
// Errors of all: CHOIR_INVALID for an empty name; for NULL instead of a value or tensor the
// thread's last failure, or CHOIR_INVALID; CHOIR_STATE for a tensor that is dead or a stale read
// of a variable.

// Sets a leaf to any value, also of another set or a reduction. CHOIR_INVALID: a value of
// another number of replicas.
CHOIR_MUST_CHECK choir_status choir_values_set(
		choir_values *set, const char *name, choir_value *v);

// Sets one replica's tensor of a per-replica leaf; local_replica is 0 to
// choir_strategy_local_replicas - 1. Shapes may differ between replicas. A leaf of that name
// that is not per-replica, or was split, is replaced.
CHOIR_MUST_CHECK choir_status choir_values_set_local(
		choir_values *set, const char *name, int local_replica, choir_tensor *t);

// Sets a per-replica leaf to the rows of t, a global batch of [rows, ...]. With R replicas the
// first rows mod R get rows / R + 1 rows and the others rows / R, as views of t's memory. With
// several workers each passes the whole batch and keeps its own replicas' rows (docs/rules.md,
// section 9). CHOIR_INVALID: t is a scalar, or another leaf was split into other numbers of
// rows.
CHOIR_MUST_CHECK choir_status choir_values_split(
		choir_values *set, const char *name, choir_tensor *t);

// Makes one replica's tensor in f, a frame of the set on the replica's device. replica_id is 0
// to count - 1, the replicas of all workers. NULL: a failure, in f or by choir_fail.
typedef choir_tensor *choir_value_fn(choir_frame *f, int replica_id, int count, void *user);

// Sets a per-replica leaf to the results of fn, which is called once for each local replica, in
// order, on the calling thread. Returns fn's first failure, with the leaf's name and the replica
// in front; what was set before it stays. CHOIR_INVALID: fn returned NULL without a failure.
CHOIR_MUST_CHECK choir_status choir_values_set_from_function(
		choir_values *set, const char *name, choir_value_fn *fn, void *user);

CHOIR_C_END
