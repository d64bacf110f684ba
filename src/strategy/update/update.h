// Update context from inside: one copy of a variable, being written on its device.
#pragma once

#include "strategy/merge/merge.h"

typedef struct {
	choir_update shown; // first, so that a choir_update is one of these
	chi_cross *cross; // who gave the arguments
	choir_variable *variable;
	int copy;
	choir_variable *written; // the first of those that it wrote
} chi_update;

// The copy of v that lies with the one being updated; -2: v is of another strategy, which the
// update's frame keeps.
int chi_update_copy_of(const chi_update *u, const choir_variable *v);
// A write inside the update: the target's copy, or what is colocated with it.
choir_status chi_update_write(
		choir_update *u, choir_variable *v, chi_assign_op op, choir_tensor *t);
