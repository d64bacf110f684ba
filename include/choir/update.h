// Update context: an update function changes one copy of a variable, on the copy's device. It is
// called once for each copy, with equal arguments, so all copies are equal afterwards. It reads
// and assigns the variable by the calls of variable.h. In this context's frame these calls mean
// this copy. The function may also write variables colocated with the variable
// (choir_scope_colocate), such as an optimizer's slots. It can read other variables, but not write
// them. In an update function, calls for all replicas or copies (on a strategy or choir_cross)
// fail with CHOIR_STATE.
//
// Ownership: the context and its frame end when the function returns.
// Errors: the frame keeps the first failure. Then the update fails, even if the function ignores
// the failure.
// Threads: the thread that makes the update calls the function, for one copy after another.
#pragma once

#include "cross.h"

CHOIR_C_BEGIN

// How an update function is called.
typedef struct {
	size_t size;
	// On: fn treats each element by itself, so all devices' threads may call it for chunks of a
	// copy (elementwise updates, below). Default: off.
	choir_toggle elementwise;
} choir_update_options;

// Calls fn once for each local copy of v (ON_READ: each component), in order, with the arguments
// of choir_cross_set_arg. Afterwards choir_cross_result gives what fn returned, mirrored on the
// copies' devices. Each argument must be plain, mirrored or a variable. A per-replica value is
// CHOIR_INVALID before anything changes.
//
// Returns fn's first failure (elementwise: that of the lowest failed chunk). After a failure fn is
// not called again, and all variables that fn wrote are undefined until they are assigned or
// restored. CHOIR_INVALID: fn returned different names for different copies.
CHOIR_MUST_CHECK choir_status choir_cross_update(choir_cross *x, choir_variable *v,
		const choir_update_options *o, choir_update_fn *fn, void *user);

// A non-slot variable belongs to an optimizer as a whole, not to one trained variable. Examples: a
// counter of steps, the powers of Adam's betas.

// Gives the destination to pass to choir_scope_colocate for an optimizer's non-slot variables: the
// devices on which a mirrored variable has copies; for a parameter server, the first parameter
// device. It does not depend on variables (n may be 0). CHOIR_INVALID: a variable of another
// strategy.
choir_value *choir_cross_non_slot_devices(
		choir_cross *x, size_t n, choir_variable *const variables[]);

// Calls fn once for each device of place, in order, as choir_cross_update does for each copy. fn
// may write all variables made at that destination. CHOIR_INVALID: place is not from
// choir_cross_non_slot_devices. The other rules are those of choir_cross_update.
CHOIR_MUST_CHECK choir_status choir_cross_update_non_slot(
		choir_cross *x, choir_value *place, choir_update_fn *fn, void *user);

// In all replicas (replica.h), with the same variable. Calls choir_cross_update for v in a merge
// call, with the arguments of choir_replica_set_arg. choir_replica_result then gives what fn
// returned for the copy that this replica reads. An argument must be a variable, or the same plain
// number from all replicas. Other tensors are CHOIR_INVALID before anything changes, since they
// may differ between replicas. Reduce these tensors in a separate merge call.
CHOIR_MUST_CHECK choir_status choir_replica_update(
		choir_replica *r, choir_variable *v, choir_update_fn *fn, void *user);

// The argument of an update function.
struct choir_update {
	choir_frame *frame; // on the copy's device
};

// The updated variable. NULL: the update is of non-slot variables.
choir_variable *choir_update_variable(const choir_update *u);

// The index of the copy, or of the device of non-slot variables. CHOIR_NONE: u is NULL.
int choir_update_copy(const choir_update *u);

// Gives the update's argument of this name, in u's frame: the tensor of a plain or mirrored value,
// or the component of a variable. The result is a view. It is a copy if the argument is on another
// device, or is a read of a variable that the update may write. CHOIR_NOT_FOUND: no such name.
// CHOIR_INVALID: a destination.
choir_tensor *choir_update_arg(choir_update *u, const char *name);

// Sets this copy's result of this name to value, a tensor of u's frame, and replaces an earlier
// result. The function must return the same names for all copies. The copies' results of a name
// become one mirrored value (choir_cross_result). CHOIR_INVALID: no name, a tensor of another
// frame.
choir_status choir_update_return(choir_update *u, const char *name, choir_tensor *value);

// Elementwise updates (choir_update_options). A copy of more than 8192 elements in host memory is
// updated in chunks. The threads of all devices call the function at the same time, so it may only
// read what user points to. The bits do not depend on chunks or threads. If a failed update left
// the variable undefined, an update in chunks does not define it again: assign the whole variable.
//
// In a chunk, reads of variables, arguments of the variable's shape and choir_update_data are
// vectors of choir_update_elements elements. Scalar arguments are unchanged. A read is a copy, and
// does not become stale during the call. The function assigns vectors of this length, or plain
// numbers. It must not return results.
//
// CHOIR_INVALID before anything is written: an argument that is neither a scalar nor of the
// variable's shape. CHOIR_INVALID in the function: a colocated variable of another size.
// CHOIR_UNSUPPORTED: a scatter; in chunks also random numbers (draw them before the update and
// pass them as an argument).

// The number of elements of the copy, or of the chunk. 0 in an update of non-slot variables.
int64_t choir_update_elements(const choir_update *u);

// The packed memory of v's copy on this device, or of its chunk, for reading and writing. v is the
// updated variable or a variable colocated with it (else CHOIR_INVALID). The call counts as a
// write: earlier reads of v become stale. NULL without a failure: the host cannot reach the
// device's memory, or several workers update v without locks (.locked_updates).
void *choir_update_data(choir_update *u, choir_variable *v);

CHOIR_C_END
