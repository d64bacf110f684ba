// Cross-replica context: code here sees all replicas together. A merge function runs in such a
// context while its replicas wait. Code outside of runs has the program's own context,
// choir_strategy_cross. A value here holds the tensors of all replicas (value.h).
//
// Ownership: results and views belong to the context's frame. In a merge call they live until it
// ends; in the program's own context, until the program empties the frame.
// Errors: the context's frame keeps the first failure, and the merge call reports it. If the
// thread is not in the context (x is from an earlier merge call, or another strategy's) calls fail
// with CHOIR_STATE, and no frame keeps that failure. A variable of another strategy is
// CHOIR_STATE, too.
// Threads: only the thread that runs a merge function may use its context. One thread at a time
// may use the program's own context.
#pragma once

#include "strategy.h"

CHOIR_C_BEGIN

struct choir_cross {
	// On the strategy's first device.
	choir_frame *frame;
};

choir_strategy *choir_cross_strategy(const choir_cross *x);

// Arguments and results of the merge call

// Gives the replicas' arguments of a name, merged to one value (docs/rules.md, section 6). The
// same plain number from all replicas becomes a plain value, and components of one variable become
// that variable. Everything else becomes a per-replica value, of any shapes. CHOIR_NOT_FOUND:
// there is no such name.
choir_value *choir_cross_arg(choir_cross *x, const char *name);

// Sets the merge call's result of a name to v, and replaces an earlier one. A replica takes it by
// choir_replica_result. CHOIR_INVALID: no name. A NULL v fails with the frame's failure, or the
// thread's last one.
choir_status choir_cross_return(choir_cross *x, const char *name, choir_value *v);

// Arguments and results of functions that are called from here

// Sets the argument of a name to v, for the next choir_cross_run or update, and replaces an
// earlier one. Only that call gets the arguments. Fails as choir_cross_return.
choir_status choir_cross_set_arg(choir_cross *x, const char *name, choir_value *v);

// Gives the results of a name of the last run or update, merged to one value. It is valid until
// the next run or update ends, so that one may have it as an argument. It is in a separate frame
// on cpu:0. For formulas copy its tensors to x's frame (choir_copy); reductions,
// choir_cross_set_arg and choir_cross_return accept it directly. Fails as choir_cross_arg.
choir_value *choir_cross_result(choir_cross *x, const char *name);

// Runs fn once for each replica, as choir_strategy_run does, with the arguments of
// choir_cross_set_arg. Afterwards choir_cross_result gets the results. The run may have sync
// points, too.
CHOIR_MUST_CHECK choir_status choir_cross_run(choir_cross *x, choir_replica_fn *fn, void *user);

// Reductions and copies. The argument to is a value; its devices are the destination. For a
// variable these are the devices of its copies (it is not written), for other values those of
// their tensors. So reducing a value to itself all-reduces it. The rules of choir_strategy_reduce
// for op, counts, dtypes and values that are the same for all replicas hold here, too.

// Makes a destination of up to 64 devices, "cpu:0,cpu:1", each once. They need not belong to the
// strategy. NULL: all devices that carry replicas. CHOIR_NOT_FOUND, CHOIR_INVALID: devices is no
// list of known devices.
choir_value *choir_cross_destination(choir_cross *x, const char *devices);

// Gives the sum or mean of v over replicas, mirrored on the devices of to. All tensors of v must
// have the same shape and dtype. A plain number stays plain. Sums are made in the canonical tree,
// by the strategy's cross-device operations if the devices of to are its own. All arguments are
// checked before the call returns. A large reduction in host memory to a variable with one copy is
// lazy: it is computed at its first use, or chunk by chunk in an elementwise update. It may fail
// with CHOIR_NO_MEMORY or CHOIR_TIMEOUT only then. CHOIR_INVALID: an unknown op, shapes or dtypes
// that differ, a replica without a value, a destination as v.
choir_value *choir_cross_reduce_to(
		choir_cross *x, choir_reduce_op op, choir_value *v, choir_value *to);

typedef struct {
	choir_value *v, *to;
	choir_value *result; // out
} choir_reduction;

// Makes n reductions, with the same results as n calls of choir_cross_reduce_to, for any mixture
// of dtypes, shapes and destinations. o says how values travel (strategy.h); NULL: the strategy's
// options. All items are checked before any is reduced. Items in packs are not lazy. After a
// failure all results are NULL. Invalid options fail as in a strategy's constructor.
CHOIR_MUST_CHECK choir_status choir_cross_batch_reduce_to(choir_cross *x, choir_reduce_op op,
		size_t n, choir_reduction items[], const choir_communication_options *o);

// Copies v, which is plain, mirrored or a variable, to the devices of to. The result is mirrored,
// but a plain number stays plain. CHOIR_INVALID: v is of another kind.
choir_value *choir_cross_broadcast_to(choir_cross *x, choir_value *v, choir_value *to);

// Computes a tensor from a variable's value t. The result must be in t's frame, which is on the
// device of the copy that was read.
typedef choir_tensor *choir_fetch_fn(choir_tensor *t, void *user);

// Gets v's value on d, which need not be one of the strategy's devices. The value is read from the
// copy on d, else from the first copy. If fn is not NULL, it is applied on that copy's device, and
// its result is copied to d instead. The value of an ON_READ variable is aggregated in x's frame.
//
// The result is in a frame on d (x's own if memory is shared) and lives as long as the contents of
// x's frame. If fn is NULL and d shares the memory of a copy of v, the result is a read of v,
// which becomes stale when v changes. Otherwise it stays valid.
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
// axis may differ, and be 0. CHOIR_INVALID: a plain number, a variable or a destination; no such
// axis; dtypes or other dimensions that differ.
choir_tensor *choir_cross_gather(choir_cross *x, choir_value *v, int axis);

CHOIR_C_END
