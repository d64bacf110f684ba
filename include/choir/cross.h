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

// Gives the replicas' arguments of this name, merged (docs/rules.md, section 6). CHOIR_NOT_FOUND:
// there is no such name.
choir_value *choir_cross_arg(choir_cross *x, const char *name);

// Sets the merge call's result of this name, in place of an earlier one, for choir_replica_result.
// A NULL v fails with the frame's failure, or the thread's last failure.
choir_status choir_cross_return(choir_cross *x, const char *name, choir_value *v);

// Arguments and results of this context's runs and updates

// Sets an argument of the next choir_cross_run or update, in place of an earlier one of this name.
// Fails as choir_cross_return.
choir_status choir_cross_set_arg(choir_cross *x, const char *name, choir_value *v);

// Gets the results of this name of the last run or update, merged, until the next one ends. The
// value is in another frame, on cpu:0. choir_cross_set_arg, choir_cross_return and reductions
// accept it; a formula needs a copy of its tensors in x's frame (choir_copy). Fails as
// choir_cross_arg.
choir_value *choir_cross_result(choir_cross *x, const char *name);

// Runs fn as choir_strategy_run does, with the arguments of choir_cross_set_arg and results for
// choir_cross_result. The run may have sync points.
CHOIR_MUST_CHECK choir_status choir_cross_run(choir_cross *x, choir_replica_fn *fn, void *user);

// Reductions and copies. The argument to gives the destination: the devices of a variable's copies
// (the variable is not written), or of a value's tensors. So reducing a value to itself
// all-reduces it. op, counts, dtypes, and values that are the same for all replicas follow
// choir_strategy_reduce.

// Makes a destination of up to 64 different devices, "cpu:0,cpu:1", of the strategy or not. NULL:
// all that run replicas. CHOIR_NOT_FOUND: an unknown device.
choir_value *choir_cross_destination(choir_cross *x, const char *devices);

// Gives the sum or mean of v over replicas, mirrored on the destination's devices. All tensors
// need one shape and dtype. A plain number stays plain. Sums follow the canonical tree, by the
// strategy's cross-device operations if it has these devices. A large reduction in host memory to
// a variable with one copy is lazy: it is computed at its first use, or chunk by chunk in an
// elementwise update, and only then can fail with CHOIR_NO_MEMORY or CHOIR_TIMEOUT. CHOIR_INVALID:
// a replica has no value.
choir_value *choir_cross_reduce_to(
		choir_cross *x, choir_reduce_op op, choir_value *v, choir_value *to);

// One reduction of a batch.
typedef struct {
	choir_value *v, *to;
	choir_value *result; // out
} choir_reduction;

// Makes n reductions with the results of choir_cross_reduce_to, for any mixture of dtypes, shapes
// and destinations. o says how values travel (strategy.h); NULL: the strategy's options. All items
// are checked first; those in packs are not lazy. After a failure all results are NULL.
CHOIR_MUST_CHECK choir_status choir_cross_batch_reduce_to(choir_cross *x, choir_reduce_op op,
		size_t n, choir_reduction items[], const choir_communication_options *o);

// Copies v, which is plain, mirrored or a variable, to the destination's devices. The result is
// mirrored; a plain number stays plain.
choir_value *choir_cross_broadcast_to(choir_cross *x, choir_value *v, choir_value *to);

// Computes a tensor from t, a variable's value, in t's frame.
typedef choir_tensor *choir_fetch_fn(choir_tensor *t, void *user);

// Gets v's value on d, which need not be a device of the strategy, from the copy on d, or else
// from the first. fn, if not NULL, is applied on that copy's device, and its result is copied to
// d. An ON_READ variable's value is aggregated in x's frame.
//
// The result is in a frame on d (x's frame if d shares its memory) and lives as long as the
// contents of x's frame. It may be a read of v, stale when v changes.
//
// Fails as fn does, which returns a tensor of its frame. CHOIR_INVALID: an ON_READ variable
// without aggregation. CHOIR_STATE: v is undefined.
choir_tensor *choir_cross_fetch(
		choir_cross *x, choir_variable *v, choir_device *d, choir_fetch_fn *fn, void *user);

// Reduces as choir_strategy_reduce does; the result is in x's frame.
choir_tensor *choir_cross_reduce(
		choir_cross *x, choir_reduce_op op, choir_value *v, choir_axes axes);

// Concatenates the replicas' tensors along axis (negative: from the back), in the order of ids, in
// x's frame. A plain or mirrored value gives its tensor once. Sizes along axis may differ or be 0.
// Plain numbers and variables are CHOIR_INVALID.
choir_tensor *choir_cross_gather(choir_cross *x, choir_value *v, int axis);

CHOIR_C_END
