// Update context: where one copy of a variable is changed, on the device on which it lies.
// choir_cross_update, or choir_replica_update by way of a merge call, calls a function in it
// once for each copy, with equal arguments, so that all copies end equal. The variable is read
// and assigned by the ordinary calls (variable.h), with tensors of this context's frame: they
// mean this copy. What lies beside the variable, made in its choir_scope_colocate, may be
// written as well (docs/decisions/0018): so a hand-written optimizer keeps its slots. Other
// variables can be read, not written. choir_cross_update_non_slot calls one for variables that
// belong to no other (cross.h). Calls for all replicas or copies, on a strategy or a choir_cross,
// are CHOIR_STATE in it.
//
// Ownership: the context and its frame are gone when the function returns.
// Errors: the frame keeps the first failure, which is the update's, also if the function did
// not look. The variables that were written are undefined then.
// Threads: the one that called for the update, which calls the function for one copy after
// another.
#pragma once

#include "cross.h"

CHOIR_C_BEGIN

struct choir_update {
	choir_frame *frame; // on the copy's device
};

// The variable that is updated. NULL in an update of non-slot variables, and for NULL.
choir_variable *choir_update_variable(const choir_update *u);

// Which of its copies, 0 to copies - 1, or which device of the place. CHOIR_NONE for NULL.
int choir_update_copy(const choir_update *u);

// What was given to the update under a name, in u's frame: a plain or mirrored value's tensor,
// as a view, or as a copy if it lies on another device or the update may write what it is read of;
// of a variable its component. NULL:
// CHOIR_NOT_FOUND, with the names that there are; CHOIR_INVALID: a place. NULL for NULL.
choir_tensor *choir_update_arg(choir_update *u, const char *name);

// Makes value, of u's frame, this copy's result of that name, in place of an earlier one; it is
// kept beyond the frame. The function must return the same names for all copies; together they
// are one mirrored value (choir_cross_take). CHOIR_INVALID: no name, another frame's tensor.
choir_status choir_update_return(choir_update *u, const char *name, choir_tensor *value);

// Elementwise updates (choir_update_options) of more than 8192 elements in host memory are made
// in slices: the function is called for each of them, by the threads of all devices at the same
// time, so what user points to is only read. It finds as vectors of choir_update_elements
// elements: what it reads of variables (a copy, which does not go out of date in the call),
// arguments of the variable's shape, and what choir_update_data points to; scalars among the
// arguments as they are. It assigns such vectors, or numbers. Elsewhere it is called for whole
// copies. In neither case does it return anything. CHOIR_INVALID, before anything is written: an
// argument of another shape; in the call: a colocated variable of another size; CHOIR_UNSUPPORTED:
// a scatter, and, where it is called for slices, random numbers: draw them before and give them as
// an argument. Which bits come out does not depend on slices or threads.

// How many elements the function has before it: all of a copy, or those of the slice. 0 in an
// update of non-slot variables, and for NULL.
int64_t choir_update_elements(const choir_update *u);

// The packed memory of v's copy that lies here, or the slice of it, v being the variable that
// is updated or one colocated with it, to be read and written until the function returns,
// without operations. It counts as a write: reads of v from before are out of date. NULL, and
// no failure, where the host cannot reach the device's memory; CHOIR_INVALID for other
// variables.
void *choir_update_data(choir_update *u, choir_variable *v);

CHOIR_C_END
