// Cross-replica context: code in it sees the tensors of all replicas as values (value.h). A merge
// function runs in such a context while its replicas wait. Code outside of runs uses the context
// of choir_strategy_cross, the program's context.
//
// Ownership: results and views belong to the context's frame. In a merge call they live until the
// call ends. In the program's context they live until the program clears the frame.
// Errors: the context's frame keeps the first failure, and the merge call returns it. CHOIR_STATE:
// a variable of another strategy; the thread is not in the context, because x is from an earlier
// merge call or another strategy. In the last case no frame keeps the failure.
// Threads: only the thread that runs a merge function may use its context. One thread at a time
// may use the program's context.
#pragma once

#include "strategy.h"

CHOIR_C_BEGIN

// The argument of a merge function and of functions in cross-replica context.
struct choir_cross {
	// On the strategy's first device.
	choir_frame *frame;
};

// The strategy whose replicas or program made the call.
choir_strategy *choir_cross_strategy(const choir_cross *x);

// Arguments and results of the merge call

// Gives the replicas' arguments of this name, merged to one value (docs/rules.md, section 6). The
// same plain number from all replicas becomes a plain value. Components of one variable become
// this variable. All other tensors become a per-replica value, of any shapes. CHOIR_NOT_FOUND:
// there is no such name.
choir_value *choir_cross_arg(choir_cross *x, const char *name);

// Sets the merge call's result of this name to v, and replaces an earlier result. Replicas get it
// by choir_replica_result. CHOIR_INVALID: no name. A NULL v fails with the frame's failure, or the
// thread's last failure.
choir_status choir_cross_return(choir_cross *x, const char *name, choir_value *v);

// Arguments and results of runs and updates that this context makes

// Sets an argument of the next choir_cross_run or update to v, and replaces an earlier argument of
// this name. Fails as choir_cross_return.
choir_status choir_cross_set_arg(choir_cross *x, const char *name, choir_value *v);

// Gives the results of this name of the last run or update, merged to one value. It is valid until
// the next run or update ends, so it may be an argument of that call. The value is in a separate
// frame on cpu:0. choir_cross_set_arg, choir_cross_return and reductions accept it directly. A
// formula needs a copy of its tensors in x's frame (choir_copy). Fails as choir_cross_arg.
choir_value *choir_cross_result(choir_cross *x, const char *name);

// Runs fn once for each replica, as choir_strategy_run does, with the arguments of
// choir_cross_set_arg. choir_cross_result then gives the results. The run may have sync points.
CHOIR_MUST_CHECK choir_status choir_cross_run(choir_cross *x, choir_replica_fn *fn, void *user);

// Reductions and copies. The devices of the value to are the destination. For a variable, these
// are the devices of its copies (the variable is not written). For other values, these are the
// devices of their tensors. So reducing a value to itself all-reduces it. The rules of
// choir_strategy_reduce for op, counts, dtypes, and values that are the same for all replicas hold
// here, too.

// Makes a destination of up to 64 different devices: "cpu:0,cpu:1". They need not be devices of
// the strategy. NULL: all devices that run replicas. CHOIR_NOT_FOUND, CHOIR_INVALID: devices is
// not a list of known devices.
choir_value *choir_cross_destination(choir_cross *x, const char *devices);

// Gives the sum or mean of v over replicas, mirrored on the devices of to. All tensors of v must
// have the same shape and dtype. A plain number stays plain. Sums are made in the canonical tree.
// If the strategy has the devices of to, its cross-device operations make the sums. All arguments
// are checked before the call returns. A large reduction in host memory to a variable with one
// copy is lazy: it is computed at its first use, or chunk by chunk in an elementwise update.
// CHOIR_NO_MEMORY and CHOIR_TIMEOUT are possible only then. CHOIR_INVALID: an unknown op,
// different shapes or dtypes, a replica without a value, a destination as v.
choir_value *choir_cross_reduce_to(
		choir_cross *x, choir_reduce_op op, choir_value *v, choir_value *to);

// A value and its destination, for choir_cross_batch_reduce_to.
typedef struct {
	choir_value *v, *to;
	choir_value *result; // out
} choir_reduction;

// Makes n reductions, with the results of n calls of choir_cross_reduce_to, for any mixture of
// dtypes, shapes and destinations. o says how values travel (strategy.h); NULL: the strategy's
// options. All items are checked before the first is reduced. Items in packs are not lazy. After a
// failure all results are NULL. Invalid options fail as in a strategy's constructor.
CHOIR_MUST_CHECK choir_status choir_cross_batch_reduce_to(choir_cross *x, choir_reduce_op op,
		size_t n, choir_reduction items[], const choir_communication_options *o);

// Copies v to the devices of to. v is plain, mirrored or a variable. The result is mirrored, but a
// plain number stays plain. CHOIR_INVALID: v is of another kind.
choir_value *choir_cross_broadcast_to(choir_cross *x, choir_value *v, choir_value *to);

// Computes a tensor from t, the value of a variable. The result must be in t's frame. This frame
// is on the device of the copy that was read.
typedef choir_tensor *choir_fetch_fn(choir_tensor *t, void *user);

// Gets v's value on d, which need not be a device of the strategy. The value is read from the copy
// on d, or from the first copy if d has no copy. If fn is not NULL, fn is applied on that copy's
// device, and fn's result is copied to d. The value of an ON_READ variable is aggregated in x's
// frame.
//
// The result is in a frame on d (x's frame if d shares its memory) and lives as long as the
// contents of x's frame. If fn is NULL and d shares the memory of a copy of v, the result is a
// read of v, and becomes stale when v changes. Otherwise the result stays valid.
//
// Fails as fn does. CHOIR_INVALID: an ON_READ variable without aggregation; fn returned NULL, or a
// tensor of another frame. CHOIR_STATE: v is undefined.
choir_tensor *choir_cross_fetch(
		choir_cross *x, choir_variable *v, choir_device *d, choir_fetch_fn *fn, void *user);

// Does the same as choir_strategy_reduce, with the result in x's frame.
choir_tensor *choir_cross_reduce(
		choir_cross *x, choir_reduce_op op, choir_value *v, choir_axes axes);

// Concatenates the replicas' tensors along axis (negative: from the back), in the order of replica
// ids. The result is in x's frame. A plain or mirrored value gives its tensor once. Sizes along
// axis may differ or be 0. CHOIR_INVALID: a plain number, a variable or a destination; no such
// axis; different dtypes or other dimensions.
choir_tensor *choir_cross_gather(choir_cross *x, choir_value *v, int axis);

CHOIR_C_END
