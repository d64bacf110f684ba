// Values of replicas, and sets of them by name: what goes into a run, a merge call or an
// update, and what comes out. A choir_value is one leaf: what is the same for all replicas,
// what each has of its own, what is mirrored on devices, a variable as a whole, or only a place
// (TensorFlow's PerReplica and Mirrored values and distributed variables). It is no tensor, so
// a per-replica value in a formula does not compile: reduce it, or take one replica's. A
// choir_values is a flat set of leaves by name, "encoder/w" (docs/decisions/0023). The same
// name is the argument, the result and the column of a dataset.
//
// Ownership: a value lives in a frame, and as long as that frame's tensors: one in a set until
// the set is cleared, refilled or freed, one of a merge call until that ends. Nobody frees a
// value; a set is freed by choir_values_free.
// Errors: an expression gives NULL for NULL; its failure is kept by the value's frame. What may
// fail can fail with CHOIR_NO_MEMORY, too.
// Threads: a value's, as its frame; a set's, one thread at a time, and none while a run has it.
#pragma once

#include "tensor.h"

CHOIR_C_BEGIN

typedef struct choir_strategy choir_strategy;
typedef struct choir_variable choir_variable;
typedef struct choir_value choir_value;
typedef struct choir_values choir_values;

typedef enum {
	CHOIR_VALUE_PLAIN, // one tensor or plain number, the same object for all
	CHOIR_VALUE_PER_REPLICA, // a tensor for each replica, in the order of their ids
	CHOIR_VALUE_MIRRORED, // equal tensors, one for each device of its place
	CHOIR_VALUE_VARIABLE, // a variable as a whole, which is never split
	CHOIR_VALUE_PLACE // devices only: a destination (choir_cross_place)
} choir_value_kind;

// One leaf

// A plain value of t, in t's frame. A component (choir_variable_component) gives its variable
// as a whole. A per-replica value is made by a set: choir_values_set_local.
choir_value *choir_tensor_value(choir_tensor *t);

// v as a whole. It belongs to v, is the same object each time, and is in no frame.
choir_value *choir_variable_value(choir_variable *v);

// The tensor of a plain value, or the first of a mirrored one, as seen in the value's frame.
// CHOIR_INVALID: a per-replica value (which has one for each replica), a variable, a place.
choir_tensor *choir_value_tensor(choir_value *v);

// The variable that v is; NULL, and no failure, if it is none.
choir_variable *choir_value_variable(choir_value *v);

// CHOIR_VALUE_PLAIN for NULL.
choir_value_kind choir_value_kind_of(const choir_value *v);

// How many local results v has, that is, of this process: 1 if v is plain, its replicas
// (choir_strategy_local_replicas) if v is per-replica, the devices of its place if it is mirrored
// or a place, the copies if it is a variable (1 for one in shards). 0 for NULL.
int choir_value_local_count(const choir_value *v);

// The index-th local result, from 0, in the order of replicas, devices or copies: a view in the
// value's frame, or a copy where that frame's device has not its memory. NULL, and no failure,
// for a replica of which nothing was set. CHOIR_INVALID: no such index, a place, or what
// choir_variable_value gave, which is in no frame: choir_variable_read reads it. CHOIR_STATE: a
// variable that an update left undefined.
choir_tensor *choir_value_local(choir_value *v, int index);

// Sets of leaves

// An empty set, for arguments or results of runs of s; NULL: of the default strategy. After s
// is freed it can only be freed. NULL after a failure: CHOIR_STATE if s was made before a fork.
// Threads: any.
choir_values *choir_values_new(choir_strategy *s);

// Frees the set and all that is in it. NULL is fine.
void choir_values_free(choir_values *set);

// Empties the set: its leaves, their values and the tensors of its frame die, and the frame's
// failure is forgotten. The memory is kept for what is set next, so a set that is filled for
// each step allocates nothing. NULL is fine.
void choir_values_clear(choir_values *set);

// The set's own frame, on cpu:0, for the tensors that are to be set and for looking at what is
// found. Emptied with the set. NULL for NULL.
choir_frame *choir_values_frame(choir_values *set);

// The leaf of that name, in the set's frame. NULL: CHOIR_NOT_FOUND, and the text lists the
// names that there are; for a NULL set or name there is no failure.
choir_value *choir_values_find(choir_values *set, const char *name);

// Setting leaves. Names are copied; a leaf that is set again is replaced. Tensors made in the
// set's frame are used as they are, also borrowed memory, which must stay until the set is
// cleared; of other frames' tensors the set keeps a view, or a copy of what is borrowed, is a
// read of a variable, or lies on another device. So what was set stays as it was.
//
// Errors of all: CHOIR_INVALID for a NULL set and a name that is NULL or empty; for NULL
// instead of a value or tensor the thread's last failure, or CHOIR_INVALID if there is none;
// CHOIR_STATE for a tensor that is dead or was read from a variable which has changed.
//
// Examples: choir_replica_examples counts the rows, along axis 0, of the leaves that were
// split, or, if none was, of the first leaf set by choir_values_set_local that has rows.

// One leaf for all replicas: the same tensor, number or variable, or what another set or a
// reduction gave, mirrored or per-replica. CHOIR_INVALID: a value of another number of
// replicas.
CHOIR_MUST_CHECK choir_status choir_values_set(
		choir_values *set, const char *name, choir_value *v);

// The tensor of one replica of a per-replica leaf; replica counts those of this process, 0 to
// choir_strategy_local_replicas - 1. Shapes may differ between replicas. A leaf of that name that
// is not per-replica, or was split, is replaced. choir_strategy_run refuses a set in which a leaf
// lacks a replica's. CHOIR_INVALID: no such replica.
CHOIR_MUST_CHECK choir_status choir_values_set_local(
		choir_values *set, const char *name, int replica, choir_tensor *t);

// A per-replica leaf of the rows of t, a global batch of [rows, ...], dealt along axis 0: with
// R replicas the first rows mod R have rows / R + 1 of them, the others rows / R
// (docs/rules.md, section 9), which may be none. The parts are views of t's memory. With several
// workers t is the whole batch on each of them, of which it keeps its replicas' rows.
// CHOIR_INVALID: t is a scalar, or another leaf was split into other numbers of rows.
CHOIR_MUST_CHECK choir_status choir_values_split(
		choir_values *set, const char *name, choir_tensor *t);

// Makes the tensor of one replica, in f, a frame of the set on that replica's device; replica is
// its id and count how many replicas there are, of all workers. NULL: it has failed, in f or by
// choir_fail.
typedef choir_tensor *choir_value_fn(choir_frame *f, int replica, int count, void *user);

// A per-replica leaf of what fn makes, called once for each local replica, in order, on the
// calling thread. It returns the first failure of fn, with the leaf's name and the replica in
// front (CHOIR_INVALID: fn is NULL, or gave NULL and no reason); what was set before that
// stays.
CHOIR_MUST_CHECK choir_status choir_values_set_from_function(
		choir_values *set, const char *name, choir_value_fn *fn, void *user);

CHOIR_C_END
