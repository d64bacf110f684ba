// Checks that all writes of variables share.
#pragma once

#include "strategy/replica/replica.h"

// CHOIR_STATE: the thread is not in this replica, or v belongs to another strategy. what: the
// call.
choir_status chi_write_check_replica(
		choir_replica *replica, const choir_variable *v, const char *what);
// CHOIR_INVALID: v is mirrored without an aggregation.
choir_status chi_write_check_aggregation(choir_replica *replica, const choir_variable *v);
// CHOIR_INVALID: a plain number that is the same in all replicas has no SUM.
choir_status chi_write_check_number(
		choir_cross *x, const choir_variable *v, const choir_value *given);
// Fails unless v is seen as a whole here. Errors are recorded in f.
choir_status chi_write_check_across(choir_frame *f, const choir_variable *v, const char *what);
