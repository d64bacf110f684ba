// Update context: an update function changes one copy of a variable, on the copy's device. Choir
// calls it for each copy, with equal arguments, so all copies stay equal. In the context's frame,
// the calls of variable.h mean this copy. The function may also write colocated variables
// (choir_scope_colocate), such as slots, and read other variables. Calls on a strategy or
// choir_cross fail with CHOIR_STATE.
//
// Ownership: the context and its frame end when the function returns.
// Errors: the frame's first failure fails the update, even if the function ignores it.
// Threads: the thread that makes the update.
#pragma once

#include "cross.h"

CHOIR_C_BEGIN

// How fn is called.
typedef struct {
	size_t size;
	// On: fn computes each element by itself, and may be called for chunks (elementwise updates,
	// below). Default: off.
	choir_toggle elementwise;
} choir_update_options;

// Calls fn for each local copy of v (ON_READ: component), in order, with the arguments of
// choir_cross_set_arg: plain or mirrored values, or variables. choir_cross_result then gives fn's
// results, mirrored on the copies' devices. CHOIR_INVALID, before anything changes: an argument is
// a per-replica value.
//
// Returns fn's first failure (elementwise: that of the lowest failed chunk). Then fn is not called
// again, and variables that it wrote are undefined. All copies return results of the same names.
CHOIR_MUST_CHECK choir_status choir_cross_update(choir_cross *x, choir_variable *v,
		const choir_update_options *o, choir_update_fn *fn, void *user);

// Non-slot variables belong to an optimizer as a whole.

// Gives the destination of non-slot variables for choir_scope_colocate: the devices of a mirrored
// variable's copies, or a parameter server's first parameter device. The variables do not matter;
// n may be 0.
choir_value *choir_cross_non_slot_devices(
		choir_cross *x, size_t n, choir_variable *const variables[]);

// Like choir_cross_update, but calls fn for each device of place (choir_cross_non_slot_devices).
// fn may write all variables made at that destination.
CHOIR_MUST_CHECK choir_status choir_cross_update_non_slot(
		choir_cross *x, choir_value *place, choir_update_fn *fn, void *user);

// In all replicas (replica.h), with the same variable. Calls choir_cross_update in a merge call,
// with the arguments of choir_replica_set_arg: variables, or one plain number from all replicas.
// choir_replica_result gives fn's result for the copy that this replica reads. CHOIR_INVALID,
// before anything changes: another tensor; first reduce it in a merge call.
CHOIR_MUST_CHECK choir_status choir_replica_update(
		choir_replica *r, choir_variable *v, choir_update_fn *fn, void *user);

// An update context.
struct choir_update {
	choir_frame *frame; // on the copy's device
};

// The updated variable, or NULL for non-slot variables.
choir_variable *choir_update_variable(const choir_update *u);

// The index of the copy, or of non-slot variables' device.
int choir_update_copy(const choir_update *u);

// Gives the update's argument of this name, in u's frame: the tensor of a plain or mirrored value,
// or a variable's component. It is a view, or a copy if it is on another device or a read of a
// variable that the update may write.
choir_tensor *choir_update_arg(choir_update *u, const char *name);

// Sets or replaces this copy's result of this name, a tensor of u's frame. Each name becomes one
// mirrored value (choir_cross_result).
choir_status choir_update_return(choir_update *u, const char *name, choir_tensor *value);

// Elementwise updates. Choir updates a copy of more than 8192 elements in host memory in chunks,
// with the same bits. Threads call the function at the same time, so it may only read user's
// memory. Undefined variables stay undefined.
//
// In a chunk, a read of a variable, an argument of the variable's shape, and choir_update_data are
// vectors of choir_update_elements elements. Reads are copies. Scalars are unchanged. The function
// assigns such vectors, or plain numbers, and returns no results.
//
// Arguments are scalars or have the variable's shape. Colocated variables have as many elements as
// the variable. CHOIR_UNSUPPORTED: a scatter; in chunks also random numbers (pass them as an
// argument).

// The number of elements of the copy, or of the chunk. 0 for non-slot variables.
int64_t choir_update_elements(const choir_update *u);

// The packed memory of v's copy on this device, or of its chunk, for reading and writing. v is the
// updated variable or colocated with it. A write: earlier reads of v become stale. NULL without a
// failure: the host cannot reach the memory; several workers update v without locks
// (.locked_updates).
void *choir_update_data(choir_update *u, choir_variable *v);

CHOIR_C_END
