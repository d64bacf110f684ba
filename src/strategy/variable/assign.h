// Checks of all writes of variables.
#pragma once

#include "strategy/replica/replica.h"

// CHOIR_STATE: a write from outside this replica, or v of another strategy.
choir_status chi_write_check_replica(
		choir_replica *replica, const choir_variable *v, const char *what);
// CHOIR_INVALID: v is mirrored without an aggregation.
choir_status chi_write_check_aggregation(choir_replica *replica, const choir_variable *v);
// CHOIR_INVALID: all replicas assigned the same plain number to a SUM variable.
choir_status chi_write_check_number(
		choir_cross *x, const choir_variable *v, const choir_value *given);
// v is seen as a whole. Errors are recorded in f.
choir_status chi_write_check_across(choir_frame *f, const choir_variable *v, const char *what);
