// Cross-replica context: all replicas seen together. A merge function runs in one while its
// replicas wait. Outside of runs a program has one of its own, choir_strategy_cross. Here a
// value holds the tensors of all replicas (value.h). It can be reduced, copied, gathered, used
// to update variables, and returned, each replica taking its share.
//
// Directions: choir_cross_arg and choir_cross_return are towards the replicas of the merge call.
// choir_cross_set_arg and choir_cross_result are towards functions that are run or updated from
// here.
// Ownership: results and views belong to the context's frame. They live as long as the context:
// a merge call's until it ends, the program's own until the program empties the frame.
// Errors: the context's frame keeps the first failure, and the merge call reports it. If the
// thread is not in the context (x is from an earlier merge call, or another strategy's) calls
// fail with CHOIR_STATE, on the thread alone. A variable of another strategy is CHOIR_STATE,
// too.
// Threads: the thread that runs the merge function; for the program's own context one thread at
// a time.
#pragma once

#include "strategy.h"

CHOIR_C_BEGIN

struct choir_cross {
	// On the strategy's first device.
	choir_frame *frame;
};

choir_strategy *choir_cross_strategy(const choir_cross *x);

// Arguments and results of the merge call

// The replicas' arguments of a name, merged (docs/rules.md, section 6): the same plain number
// from all is plain; components of one variable are that variable; everything else is
// per-replica, of any shapes. CHOIR_NOT_FOUND: there is no such name.
choir_value *choir_cross_arg(choir_cross *x, const char *name);

// Sets the merge call's result of a name to v, in place of an earlier one. A replica takes it by
// choir_replica_result. CHOIR_INVALID: no name. For a NULL v the frame's failure, or the
// thread's last one.
choir_status choir_cross_return(choir_cross *x, const char *name, choir_value *v);

// Arguments and results of functions that are called from here

// Sets the argument of a name for the next choir_cross_run or choir_cross_update to v, in place
// of an earlier one. That call uses up all arguments. Fails as choir_cross_return.
choir_status choir_cross_set_arg(choir_cross *x, const char *name, choir_value *v);

// The results of a name of the last run or update, merged. Valid until the next one, which may
// have it as an argument, has ended. It is in a frame of its own on cpu:0, not in x's.
// Reductions, choir_cross_set_arg and choir_cross_return accept it directly; for formulas
// choir_copy brings its tensors to x's frame. Fails as choir_cross_arg.
choir_value *choir_cross_result(choir_cross *x, const char *name);

// Runs fn once for each replica, as choir_strategy_run, with the arguments of
// choir_cross_set_arg; then choir_cross_result gets the results. Replicas of such a run may
// synchronize again.
CHOIR_MUST_CHECK choir_status choir_cross_run(choir_cross *x, choir_replica_fn *fn, void *user);

// Reductions and copies. The argument to is a value whose devices are the destination. A
// variable stands for the devices of its copies (it is not written), a per-replica value for
// those of its tensors, a mirrored or plain value for its own. So reducing a value to itself
// all-reduces it. What choir_strategy_reduce says of op, counts, dtypes and values that are the
// same for all holds here, too.

// A destination of up to 64 devices by name, "cpu:0,cpu:1", each once, of the strategy or not.
// NULL: all devices that carry replicas. CHOIR_NOT_FOUND, CHOIR_INVALID: no list of devices.
choir_value *choir_cross_destination(choir_cross *x, const char *devices);

// The sum or mean of v over replicas, mirrored at to. v's tensors have one shape and dtype. A
// plain number stays plain. Sums are made in the canonical tree, by the strategy's cross-device
// operations if to is on its devices. Everything is checked before this returns. A large
// reduction in host memory to a variable with one copy is lazy: it is computed at its first use,
// or chunk by chunk in an elementwise update. CHOIR_NO_MEMORY or CHOIR_TIMEOUT may come only
// then. CHOIR_INVALID: an unknown op, shapes or dtypes that differ, a replica without a value, a
// destination as v.
choir_value *choir_cross_reduce_to(
		choir_cross *x, choir_reduce_op op, choir_value *v, choir_value *to);

typedef struct {
	choir_value *v, *to;
	choir_value *result; // out
} choir_reduction;

// Makes n reductions, with the same results as n calls of choir_cross_reduce_to, for any mixture
// of dtypes, shapes and destinations. o says how values travel (strategy.h); NULL: as the
// strategy. All items are checked before any is reduced. Items in packs are not lazy. After a
// failure all results are NULL. Impossible options fail as for a strategy.
CHOIR_MUST_CHECK choir_status choir_cross_batch_reduce_to(choir_cross *x, choir_reduce_op op,
		size_t n, choir_reduction items[], const choir_communication_options *o);

// Copies v, which is plain, mirrored or a variable, to the devices of to: a mirrored value. A
// plain number stays plain. CHOIR_INVALID: another kind of v.
choir_value *choir_cross_broadcast_to(choir_cross *x, choir_value *v, choir_value *to);

// A function of a variable's value t, with its result in t's frame, on the device of the copy
// that was read.
typedef choir_tensor *choir_fetch_fn(choir_tensor *t, void *user);

// Gets v's value on d, which need not be one of the strategy's devices. It is read from the copy
// on d, else from the first copy. If fn is not NULL it is applied there, and its result is
// copied to d instead. The value of an ON_READ variable is what its aggregation gives, made in
// x's frame.
//
// The result is in a frame of x's on d (x's own if memory is shared) and lives as long as the
// contents of x's frame. Without fn, if d reaches the memory of a copy of v, the result is a
// read of v and becomes stale when v changes; otherwise it does not.
//
// Fails as fn. CHOIR_INVALID: an ON_READ variable without aggregation, fn returned nothing or a
// tensor of another frame. CHOIR_STATE: v is undefined.
choir_tensor *choir_cross_fetch(
		choir_cross *x, choir_variable *v, choir_device *d, choir_fetch_fn *fn, void *user);

// As choir_strategy_reduce, with the result in x's frame.
choir_tensor *choir_cross_reduce(
		choir_cross *x, choir_reduce_op op, choir_value *v, choir_axes axes);

// Concatenates the replicas' tensors along axis (negative: from the back), in the order of their
// ids, in x's frame. Of a plain or mirrored value it gives the tensor once. Sizes along axis may
// differ, and be 0. CHOIR_INVALID: a number, a variable or a destination, no such axis, dtypes
// or other dimensions that differ.
choir_tensor *choir_cross_gather(choir_cross *x, choir_value *v, int axis);

CHOIR_C_END
