// Values of replicas, and sets of values by name: the arguments and results of runs, merge calls
// and updates. A choir_values is a flat set of leaves with names like "encoder/w". A choir_value
// is one leaf: one tensor for all replicas, a tensor for each replica, equal tensors on several
// devices, a variable, or only a list of devices (a destination). A value is not a tensor, so a
// formula with a per-replica value does not compile. Reduce the value, or take one replica's
// tensor.
//
// Ownership: a value lives as long as the tensors of its frame. A value in a set lives until the
// set is cleared, filled again or freed. A value in a merge call lives until the call ends.
// Errors: if an expression fails, its value's frame keeps the failure.
// Threads: only the thread of a value's frame may use the value. One thread at a time may use a
// set, and no thread while a run uses it.
#pragma once

#include "tensor.h"

CHOIR_C_BEGIN

typedef struct choir_strategy choir_strategy;
typedef struct choir_variable choir_variable;
typedef struct choir_value choir_value;
typedef struct choir_values choir_values;

// The kinds of values.
typedef enum {
	CHOIR_VALUE_PLAIN, // one tensor for all replicas
	CHOIR_VALUE_PER_REPLICA, // a tensor for each replica, in the order of ids
	CHOIR_VALUE_MIRRORED, // equal tensors, one for each device of the destination
	CHOIR_VALUE_VARIABLE,
	CHOIR_VALUE_DESTINATION // devices only (choir_cross_destination)
} choir_value_kind;

// Leaves

// Makes a plain value of t, in t's frame. If t is a component (choir_variable_component), the
// value is the component's variable. choir_values_set_local makes per-replica values.
choir_value *choir_tensor_as_value(choir_tensor *t);

// v as a value: the same object each time, without a frame.
choir_value *choir_variable_as_value(choir_variable *v);

// Gives the tensor of a plain value, or the first tensor of a mirrored value, in the value's
// frame. CHOIR_INVALID: v is a per-replica value (use choir_value_local), a variable or a
// destination.
choir_tensor *choir_value_tensor(choir_value *v);

// The variable, if v's kind is CHOIR_VALUE_VARIABLE; else NULL without a failure.
choir_variable *choir_value_variable(choir_value *v);

// The kind of v.
choir_value_kind choir_value_kind_of(const choir_value *v);

// The number of v's local results. Plain value: 1. Per-replica value: the number of local replicas
// (strategy.h). Mirrored value or destination: the number of devices. Variable: the number of
// copies, or 1 if it is in shards.
int choir_value_local_count(const choir_value *v);

// Gives a local result. index is a local_replica, or the index of a device or copy. The result is
// in the value's frame: a view, or a copy if the frame's device does not share the memory. NULL
// without a failure: nothing was set for this replica. CHOIR_INVALID: index is out of range; v is
// a destination, or a result of choir_variable_as_value (use choir_variable_read). CHOIR_STATE: an
// update left the variable undefined.
choir_tensor *choir_value_local(choir_value *v, int index);

// Sets of leaves

// Makes an empty set for arguments or results of runs of s (NULL: the default strategy). After s
// is freed, the only valid call on the set is choir_values_free. CHOIR_STATE: s was made before a
// fork. Threads: any thread.
choir_values *choir_values_new(choir_strategy *s);

// Frees a set and its frame. set may be NULL.
void choir_values_free(choir_values *set);

// Clears the set: frees its leaves, values and tensors, and forgets its frame's failure. The set
// keeps its memory, so filling it again for each step allocates nothing.
void choir_values_clear(choir_values *set);

// The set's frame, on cpu:0, for tensors that become leaves. Clearing the set clears the frame.
choir_frame *choir_values_frame(choir_values *set);

// Finds a leaf by its name. CHOIR_NOT_FOUND: there is no such leaf. If set or name is NULL, the
// result is NULL without a failure.
choir_value *choir_values_find(choir_values *set, const char *name);

// Setting leaves. Setting a leaf again replaces it. A tensor of the set's frame is used directly;
// memory that it borrows must stay valid until the set is cleared. The set keeps a view of any
// other tensor, or a copy if the tensor is borrowed, is a read of a variable, or is on another
// device. So a leaf does not change after it is set.
//
// Errors of these calls. CHOIR_INVALID: an empty name. CHOIR_STATE: a tensor that is dead or a
// stale read. If the value or tensor is NULL, the failure is the thread's last failure, or else
// CHOIR_INVALID.

// Sets a leaf to any value. A leaf of another set or a reduction is possible, too. CHOIR_INVALID:
// v has another number of replicas.
CHOIR_MUST_CHECK choir_status choir_values_set(
		choir_values *set, const char *name, choir_value *v);

// Sets one local replica's tensor of a per-replica leaf. Shapes may differ between replicas. If
// the old leaf was split or is not per-replica, a new leaf replaces it.
CHOIR_MUST_CHECK choir_status choir_values_set_local(
		choir_values *set, const char *name, int local_replica, choir_tensor *t);

// Splits t, a global batch of shape [rows, ...], into a per-replica leaf of views of t's memory.
// With R replicas, the first rows mod R replicas get rows / R + 1 rows each, the others rows / R.
// With several workers, each worker passes the whole batch and keeps its replicas' rows
// (docs/rules.md, section 9). CHOIR_INVALID: t is a scalar, or another leaf was split into other
// numbers of rows.
CHOIR_MUST_CHECK choir_status choir_values_split(
		choir_values *set, const char *name, choir_tensor *t);

// Makes one replica's tensor in f, a frame of the set on the replica's device. count is the number
// of replicas of all workers. NULL is a failure, which f keeps or choir_fail has recorded.
typedef choir_tensor *choir_value_fn(choir_frame *f, int replica_id, int count, void *user);

// Sets a per-replica leaf to the results of fn. fn is called once for each local replica, in
// order, on the calling thread. Returns fn's first failure, and its text names the leaf and the
// replica. The tensors of earlier replicas stay set. CHOIR_INVALID: fn returned NULL without a
// failure.
CHOIR_MUST_CHECK choir_status choir_values_set_from_function(
		choir_values *set, const char *name, choir_value_fn *fn, void *user);

CHOIR_C_END
