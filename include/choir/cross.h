// Cross-replica context, where the tensors of all replicas are values (value.h). Each merge
// function has such a context, and so has the program outside of runs (choir_strategy_cross).
//
// Ownership: results and views belong to the context's frame, and live until the merge call ends,
// or until the program clears its frame.
// Errors: the frame keeps the first failure, which the merge call returns. CHOIR_STATE: a variable
// of another strategy; the thread is not in the context (no frame keeps this failure).
// Threads: a merge function's context is used on that function's thread, the program's context by
// one thread at a time.
#pragma once

#include "strategy.h"

CHOIR_C_BEGIN

// A cross-replica context.
struct choir_cross {
	choir_frame *frame; // on the strategy's first device
};
choir_strategy *choir_cross_strategy(const choir_cross *x);

// Arguments and results of the merge call

// Gives the replicas' arguments of this name, merged to one value (docs/rules.md, section 6).
// CHOIR_NOT_FOUND: no such argument.
choir_value *choir_cross_arg(choir_cross *x, const char *name);

// Sets or replaces the merge call's result of this name, for choir_replica_result. v NULL: the
// frame's failure, or the thread's last failure.
choir_status choir_cross_return(choir_cross *x, const char *name, choir_value *v);

// Arguments and results of this context's runs and updates

// Sets or replaces an argument of the next choir_cross_run or update. Fails as choir_cross_return.
choir_status choir_cross_set_arg(choir_cross *x, const char *name, choir_value *v);

// Gets the merged results of this name of the last run or update. The value is valid until the
// next run or update ends, and is in another frame, on cpu:0. choir_cross_set_arg,
// choir_cross_return and reductions accept it. For a formula, copy its tensors to x's frame
// (choir_copy). Fails as choir_cross_arg.
choir_value *choir_cross_result(choir_cross *x, const char *name);

// Runs fn as choir_strategy_run does, with the arguments of choir_cross_set_arg and results for
// choir_cross_result. The run may have sync points.
CHOIR_MUST_CHECK choir_status choir_cross_run(choir_cross *x, choir_replica_fn *fn, void *user);

// Reductions and copies. The argument to gives the destination: the devices of a variable's copies
// (the variable is not written), or of a value's tensors. So the reduction of a value to itself is
// an all-reduce. op, counts, dtypes, and values that are the same for all replicas have the rules
// of choir_strategy_reduce.

// Makes a destination of up to 64 different devices, "cpu:0,cpu:1". They need not belong to the
// strategy. NULL: all devices that run replicas.
choir_value *choir_cross_destination(choir_cross *x, const char *devices);

// Gives the sum or mean of v over replicas, mirrored on the destination's devices. All tensors
// need one shape and dtype. A plain number stays plain. Sums follow the canonical tree. If the
// strategy has these devices, its cross-device operations sum. A large reduction in host memory to
// a variable with one copy is lazy: it is computed at its first use, or chunk by chunk in an
// elementwise update. This use can fail with CHOIR_NO_MEMORY or CHOIR_TIMEOUT. CHOIR_INVALID: a
// replica has no value.
choir_value *choir_cross_reduce_to(
		choir_cross *x, choir_reduce_op op, choir_value *v, choir_value *to);

// One reduction of a batch.
typedef struct {
	choir_value *v, *to;
	choir_value *result; // out
} choir_reduction;

// Makes n reductions with the results of choir_cross_reduce_to, for any mixture of dtypes, shapes
// and destinations. o says how values travel (strategy.h); NULL: the strategy's options. All items
// are checked first. Items in packs are not lazy. After a failure all results are NULL.
CHOIR_MUST_CHECK choir_status choir_cross_batch_reduce_to(choir_cross *x, choir_reduce_op op,
		size_t n, choir_reduction items[], const choir_communication_options *o);

// Copies v, which is plain, mirrored or a variable, to the destination's devices. The result is
// mirrored; a plain number stays plain.
choir_value *choir_cross_broadcast_to(choir_cross *x, choir_value *v, choir_value *to);

// Computes a tensor in t's frame from t, a variable's value.
typedef choir_tensor *choir_fetch_fn(choir_tensor *t, void *user);

// Gets v's value on d from the copy on d, or else from the first copy. d need not be a device of
// the strategy. If fn is not NULL, fn is applied on that copy's device, and its result is copied
// to d. The value of an ON_READ variable is aggregated in x's frame.
//
// The result is in a frame on d (x's frame if d shares its memory) and lives as long as the
// contents of x's frame. It may be a read of v, which is stale after v changes.
//
// If fn fails, the call returns its failure. CHOIR_INVALID: an ON_READ variable without
// aggregation. CHOIR_STATE: v is undefined.
choir_tensor *choir_cross_fetch(
		choir_cross *x, choir_variable *v, choir_device *d, choir_fetch_fn *fn, void *user);

// Reduces as choir_strategy_reduce does; the result is in x's frame.
choir_tensor *choir_cross_reduce(
		choir_cross *x, choir_reduce_op op, choir_value *v, choir_axes axes);

// Concatenates the replicas' tensors along axis, in the order of ids, in x's frame. A plain or
// mirrored value gives its tensor once. Sizes along axis may differ or be 0. CHOIR_INVALID: v is a
// plain number or a variable.
choir_tensor *choir_cross_gather(choir_cross *x, choir_value *v, int axis);

CHOIR_C_END
