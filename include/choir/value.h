// A choir_value is one leaf: TensorFlow's PerReplica, Mirrored or distributed variable. It is no tensor:
// a per-replica value in a formula does not compile. choir_values is a set of leaves by name ("encoder/w"),
// the arguments and results of a run; it owns what is found in it. Threads: the program's or the merge's.
#pragma once

#include "tensor.h"

CHOIR_C_BEGIN

typedef struct choir_strategy choir_strategy;
typedef struct choir_variable choir_variable;
typedef struct choir_value choir_value;
typedef struct choir_values choir_values;
typedef enum {
	CHOIR_VALUE_PLAIN, // one tensor, the same object for all
	CHOIR_VALUE_PER_REPLICA, // a tensor for each replica
	CHOIR_VALUE_MIRRORED, // equal tensors, one for each device of its place
	CHOIR_VALUE_VARIABLE, // a variable, never sliced
	CHOIR_VALUE_PLACE // devices only: a destination
} choir_value_kind;
// Expressions: NULL gives NULL.
choir_value *choir_tensor_value(choir_tensor *t); // plain; a component gives its variable
choir_value *choir_variable_value(choir_variable *v);
choir_tensor *choir_value_tensor(choir_value *v); // plain or mirrored; per-replica: CHOIR_INVALID
choir_variable *choir_value_variable(choir_value *v); // NULL, and no failure, if it is none
choir_value_kind choir_value_kind_of(const choir_value *v);
// Local results, in replica (or copy) order; 1 for a plain value.
int choir_value_local_count(const choir_value *v);
choir_tensor *choir_value_local(choir_value *v, int index);

choir_values *choir_values_new(choir_strategy *s); // NULL: the default strategy
void choir_values_free(choir_values *set);
void choir_values_clear(choir_values *set);
choir_frame *choir_values_frame(choir_values *set); // to make the tensors that are set
choir_value *choir_values_find(choir_values *set, const char *name); // the text lists the names

// A leaf set again is replaced. set: the same for all. set_local: one replica's (all local ones must be
// set). split: rows of a global batch by the sizes of spec 2.11; split leaves must have equal rows.
choir_status choir_values_set(choir_values *set, const char *name, choir_value *v);
choir_status choir_values_set_local(choir_values *set, const char *name, int replica, choir_tensor *t);
choir_status choir_values_split(choir_values *set, const char *name, choir_tensor *t);
// fn once for each local replica, in order.
typedef choir_tensor *choir_value_fn(choir_frame *f, int replica, int count, void *user);
choir_status choir_values_set_from_function(choir_values *set, const char *name, choir_value_fn *fn, void *user);

CHOIR_C_END
