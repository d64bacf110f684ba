// Cross-replica context: all replicas seen together, once. A merge function is in one, while
// its replicas wait; a program has one of its own outside of runs, choir_strategy_cross. Here
// values of replicas are whole (value.h): they are reduced, copied, gathered, used to update
// variables, and given back, each replica taking its share. The calls that are legal here take
// a choir_cross, so that using them in a replica does not compile.
//
// Directions: arg and return are the called function's side, towards the replicas that came;
// give and take the caller's, towards functions that are run here.
// Ownership: results and views are of the context's frame, and values are not copied when they
// are given or returned: they live as long as it, which is until a merge call ends. For the
// program's own context that is until the program empties the frame.
// Errors: the context's frame keeps the first failure, and the merge call reports it, so a
// merge function need not look. CHOIR_STATE, on the thread alone, for a context that the thread
// is not in (one kept from an earlier merge call, or another strategy's). For a NULL context or
// value expressions give NULL, and actions CHOIR_INVALID.
// Threads: the one that runs the merge function; for a program's own, one thread at a time.
#pragma once

#include "strategy.h"

CHOIR_C_BEGIN

struct choir_cross {
	// On the strategy's first device. Tensors of values in it are seen there: where a replica
	// has its tensor on a device with other memory, by a copy.
	choir_frame *frame;
};

// The strategy whose replicas these are. NULL for NULL.
choir_strategy *choir_cross_strategy(const choir_cross *x);

// Towards the replicas that came

// What the replicas gave to this merge call under a name, merged (docs/rules.md, section 6):
// the same plain number from all is plain, components of one variable are that variable,
// everything else is per-replica, of any shapes. NULL: CHOIR_NOT_FOUND, with the names that
// there are.
choir_value *choir_cross_arg(choir_cross *x, const char *name);

// Makes v what each replica can take (choir_replica_take) under a name, in place of an earlier
// one: of a per-replica value its own tensor, of a plain or mirrored one what all get, of a
// variable its component. CHOIR_INVALID: no name. For a NULL v the frame's failure, or the
// thread's last one.
choir_status choir_cross_return(choir_cross *x, const char *name, choir_value *v);

// Towards functions that are run here

// Makes v what the next choir_cross_run or choir_cross_update gets as an argument, in place of
// an earlier one of that name. After that call nothing is given any more. Fails as
// choir_cross_return.
choir_status choir_cross_give(choir_cross *x, const char *name, choir_value *v);

// What the functions of the last run or update returned, merged; until the next one, which may
// have it as an argument, is over. It is in a frame of its own on cpu:0, not in x's: reductions,
// gives and returns take it as it is, and choir_move brings its tensors to x's frame for
// formulas. NULL: CHOIR_NOT_FOUND, with the names that there are.
choir_value *choir_cross_take(choir_cross *x, const char *name);

// Runs fn once for each replica, as choir_strategy_run does, with what was given as arguments;
// then results can be taken. Replicas of such a run may meet again. Returns the run's failure.
CHOIR_MUST_CHECK choir_status choir_cross_run(choir_cross *x, choir_replica_fn *fn, void *user);

// Reducing and copying. A destination, to, is the devices of a value: of a variable those of
// its copies (which is not written), of a per-replica value those of its tensors (so that a
// value that is its own destination is all-reduced), of a mirrored or plain one its own, or
// those of a place. An op is CHOIR_SUM or CHOIR_MEAN, by docs/rules.md, section 8: what
// choir_strategy_reduce says of op, counts, dtypes and what is the same for all holds here.

// A place: up to 64 devices by name, "cpu:0,cpu:1", none twice, which need not be the
// strategy's; or all devices that carry replicas, for NULL. NULL: CHOIR_NOT_FOUND or CHOIR_INVALID
// for names that are no list of devices.
choir_value *choir_cross_place(choir_cross *x, const char *devices);

// The sum or mean of v over replicas, mirrored at to. Made in the canonical tree, by the
// strategy's cross-device operations where to is on its devices. v's tensors are of one shape
// and dtype. A plain number stays plain. Everything is checked when it returns; what is large, in
// host memory and for one copy of a variable is added up when it is first looked at, by an
// elementwise update slice by slice (docs/decisions/0017), so that a CHOIR_NO_MEMORY or
// CHOIR_TIMEOUT may come there. CHOIR_INVALID: an unknown op, shapes or dtypes that differ, a
// replica without a value, a place. CHOIR_STATE: v or to is a variable of another strategy.
choir_value *choir_cross_reduce_to(
		choir_cross *x, choir_reduce_op op, choir_value *v, choir_value *to);

// One reduction of several.
typedef struct {
	choir_value *v, *to;
	choir_value *result; // out; NULL if it failed
} choir_reduction;

// What n calls of choir_cross_reduce_to give, for any mixture of dtypes, shapes and destinations;
// o may be NULL, and says how values travel (strategy.h). Everything is checked before anything is
// reduced; what travels in packs is then added up, of all else what is large may wait as there.
// After a failure all results are NULL. CHOIR_INVALID, CHOIR_NOT_FOUND, CHOIR_UNSUPPORTED: options
// that cannot be, as of a strategy. CHOIR_TIMEOUT: of o.
CHOIR_MUST_CHECK choir_status choir_cross_batch_reduce_to(choir_cross *x, choir_reduce_op op,
		size_t n, choir_reduction items[], const choir_communication_options *o);

// v, which is plain, mirrored or a variable, mirrored at to. A plain number stays plain.
// CHOIR_INVALID: a per-replica value, a place. CHOIR_STATE: a variable of another strategy.
choir_value *choir_cross_broadcast_to(choir_cross *x, choir_value *v, choir_value *to);

// A function of a variable's value t, in t's frame: on the device of the copy that was read.
typedef choir_tensor *choir_fetch_fn(choir_tensor *t, void *user);

// v's value on d, which need not be one of the strategy's: read from the copy that lies there,
// else from the first, by way of fn where that is not NULL, and copied to d if it is elsewhere. So
// what is small and made of something large travels small. Of an ON_READ variable the value that
// its aggregation gives, which is made in x's frame. The result is in a frame of x's on d (x's own
// where memory is shared), and lives as long as what is in x's frame. Without fn it is a read of v
// where d reaches the memory of a copy of v, and so is out of date after v has changed. What was
// copied to d stays. NULL: what fn failed with;
// CHOIR_INVALID: v or d is NULL, an ON_READ variable without aggregation, fn returned nothing or a
// tensor of another frame; CHOIR_STATE: v is undefined or of another strategy.
choir_tensor *choir_cross_fetch(
		choir_cross *x, choir_variable *v, choir_device *d, choir_fetch_fn *fn, void *user);

// As choir_strategy_reduce, with the result in x's frame.
choir_tensor *choir_cross_reduce(
		choir_cross *x, choir_reduce_op op, choir_value *v, choir_axes axes);

// The replicas' tensors one behind another along axis (negative: from the back), in the order
// of their ids, in x's frame; of a plain or mirrored value its tensor, once. Sizes along axis
// may differ, and be 0. CHOIR_INVALID: a number, a variable or a place, no such axis, dtypes or
// other dimensions that differ.
choir_tensor *choir_cross_gather(choir_cross *x, choir_value *v, int axis);

// Updating

typedef struct {
	size_t size; // of this struct: CHOIR_OPTIONS sets it
	// Off. On: fn treats each element by itself, so it may be called on slices of a copy, at the
	// same time on the threads of all devices (update.h). Slices do not define a variable that a
	// failed update left undefined: assign it as a whole.
	choir_toggle elementwise;
} choir_update_options;

// Calls fn once for each local copy of v (part, if v is ON_READ), in order, with what was given
// as arguments, on this thread and with the copy's device (update.h); o may be NULL. When it
// returns all copies have been updated, and what fn returned, mirrored on the copies' devices,
// can be taken. What was given must be plain, mirrored or a variable: a per-replica value is
// CHOIR_INVALID before anything changes (docs/rules.md, section 5).
//
// Returns fn's first failure (elementwise: that of the lowest slice that failed), after which
// it is not called again and all variables that it wrote are undefined until they are assigned
// or restored. CHOIR_INVALID: v or fn is NULL, *o's size is not set, names that fn returned
// for some copies only. CHOIR_STATE: a variable of another strategy.
CHOIR_MUST_CHECK choir_status choir_cross_update(choir_cross *x, choir_variable *v,
		const choir_update_options *o, choir_update_fn *fn, void *user);

// Variables that belong to no variable that is trained, but to an optimizer as a whole: a
// counter of steps, the powers of Adam's betas. They are made in the choir_scope_colocate of the
// place that non_slot_devices gives, so that they lie on the same devices.

// The place of the non-slot variables of an optimizer of these variables: today the devices of
// the copies of any mirrored variable, whatever the variables are, of which there may be none.
// NULL: CHOIR_INVALID for a variable of another strategy, or one that is NULL.
choir_value *choir_cross_non_slot_devices(
		choir_cross *x, size_t n, choir_variable *const variables[]);

// Calls fn once for each device of place, in order, as choir_cross_update does for each copy of a
// variable; it may write all variables that were made at that place. Fails as choir_cross_update,
// and with CHOIR_INVALID where place is another than non_slot_devices gives.
CHOIR_MUST_CHECK choir_status choir_cross_update_non_slot(
		choir_cross *x, choir_value *place, choir_update_fn *fn, void *user);

CHOIR_C_END
