// Update context from inside: one copy of a variable, being written on its device.
#pragma once

#include "strategy/merge.h"

typedef struct {
	choir_update shown; // first, so that a choir_update is one of these
	chi_cross *cross; // who gave the arguments
	choir_variable *variable;
	int copy;
	chi_names returned;
} chi_update;

// A write inside the update: the target's copy, or what is colocated with it.
choir_status chi_update_write(choir_update *u, choir_variable *v, chi_assign_op op, choir_tensor *t);
