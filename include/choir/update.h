// Once for each copy of a variable (or device of a place). assign* with tensors of its frame write this
// copy of the target or of what is colocated with it (slots); others: CHOIR_INVALID.
// Threads: any; elementwise ones at the same time, each on its slice.
#pragma once

#include "cross.h"

CHOIR_C_BEGIN

struct choir_update {
	choir_frame *frame;
};
choir_variable *choir_update_variable(const choir_update *u); // NULL: update_non_slot
int choir_update_copy(const choir_update *u); // 0 .. copies-1
choir_tensor *choir_update_arg(choir_update *u, const char *name); // a variable arrives as its component
choir_status choir_update_return(choir_update *u, const char *name, choir_tensor *value);
// Elements of this slice (or whole copy), and variable's packed memory there, to be written; NULL where
// the host cannot reach. Arguments are cut alike.
int64_t choir_update_elements(const choir_update *u);
void *choir_update_data(choir_update *u, choir_variable *v);

CHOIR_C_END
