// Cross-replica context, where the tensors of all replicas are values (value.h). Each merge
// function has one, and the program outside of runs (choir_strategy_cross).
//
// Ownership: results and views belong to the context's frame. They live until the merge call ends,
// or until the program clears its frame.
// Errors: the frame keeps the first failure, which the merge call returns. CHOIR_STATE: a variable
// belongs to another strategy; the thread is not in the context (no frame keeps this failure).
// Threads: the merge function's thread for its context; one at a time for the program's context.
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
choir_value *choir_cross_arg(choir_cross *x, const char *name);

// Sets or replaces the merge call's result of this name, for choir_replica_result. v NULL: returns
// the failure of x's frame, else the thread's last failure or CHOIR_INVALID.
choir_status choir_cross_return(choir_cross *x, const char *name, choir_value *v);

// Arguments and results of this context's runs and updates

// Sets or replaces an argument of the next choir_cross_run or update. Fails as choir_cross_return.
choir_status choir_cross_set_arg(choir_cross *x, const char *name, choir_value *v);

// Gets the last run's or update's merged results of this name, valid until the next one ends. The
// value is in another frame, on cpu:0. choir_cross_set_arg, choir_cross_return and reductions
// accept it; for a formula, copy its tensors to x's frame (choir_copy).
choir_value *choir_cross_result(choir_cross *x, const char *name);

// Runs fn as choir_strategy_run does, with the arguments of choir_cross_set_arg and results for
// choir_cross_result. fn may have sync points.
CHOIR_MUST_CHECK choir_status choir_cross_run(choir_cross *x, choir_replica_fn *fn, void *user);

// Reductions and copies. If "to" is a variable, the destination is the devices of its copies, else
// the devices of its tensors. The variable is not written. A value reduced to itself is an
// all-reduce. choir_strategy_reduce has the rules of op, counts, dtypes, and values that all
// replicas share.

// Makes a destination of up to 64 different devices, such as "cpu:0,cpu:1", which need not be the
// strategy's. NULL: all that run replicas.
choir_value *choir_cross_destination(choir_cross *x, const char *devices);

// Gives the sum or mean of v over replicas, mirrored on the destination's devices. All tensors
// need one shape and dtype. A plain number gives a plain number. Sums follow the canonical tree.
// If the strategy has all of the destination's devices, its cross-device operations compute dense
// sums. A large reduction in host memory is lazy if the destination is a variable with one copy:
// the first use of the result computes it (an elementwise update, chunk by chunk), and may fail
// with CHOIR_NO_MEMORY or CHOIR_TIMEOUT. CHOIR_INVALID: a replica has no value.
choir_value *choir_cross_reduce_to(
		choir_cross *x, choir_reduce_op op, choir_value *v, choir_value *to);

// One reduction of a batch.
typedef struct {
	choir_value *v, *to;
	choir_value *result; // out
} choir_reduction;

// Makes n reductions of any dtypes, shapes and destinations, with the results of
// choir_cross_reduce_to. o says how values travel (strategy.h); NULL: the strategy's. Checks all
// items first. With packs, no reduction is lazy. After a failure all results are NULL.
CHOIR_MUST_CHECK choir_status choir_cross_batch_reduce_to(choir_cross *x, choir_reduce_op op,
		size_t n, choir_reduction items[], const choir_communication_options *o);

// Copies v (plain, mirrored or a variable) to the destination's devices; gives a mirrored value,
// or a plain number if v is one.
choir_value *choir_cross_broadcast_to(choir_cross *x, choir_value *v, choir_value *to);

// Computes a tensor in t's frame from t, a variable's value.
typedef choir_tensor *choir_fetch_fn(choir_tensor *t, void *user);

// Gets v's value on any device d, from the copy on d, else from the first copy. fn runs on that
// copy's device, and its result is copied to d. An ON_READ variable is aggregated in x's frame.
//
// The result is in a frame on d (x's frame if d shares its memory), and lives as long as the
// contents of x's frame. A view of v's memory must not be used after v changes.
//
// Also fails as fn. CHOIR_INVALID: an ON_READ variable without aggregation. CHOIR_STATE: v is
// undefined.
choir_tensor *choir_cross_fetch(
		choir_cross *x, choir_variable *v, choir_device *d, choir_fetch_fn *fn, void *user);

// Reduces as choir_strategy_reduce does, to a tensor in x's frame.
choir_tensor *choir_cross_reduce(
		choir_cross *x, choir_reduce_op op, choir_value *v, choir_axes axes);

// Concatenates the replicas' tensors along axis, in the order of ids, in x's frame. A plain or
// mirrored value gives one tensor. Sizes along axis may differ or be 0. CHOIR_INVALID: v is a
// plain number or a variable.
choir_tensor *choir_cross_gather(choir_cross *x, choir_value *v, int axis);

CHOIR_C_END
