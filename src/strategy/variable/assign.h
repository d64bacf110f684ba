// Checks that all writes of variables share.
#pragma once

#include "strategy/replica/replica.h"

// Fails with CHOIR_STATE if a write comes from outside this replica, or v belongs to another
// strategy.
choir_status chi_write_check_replica(
		choir_replica *replica, const choir_variable *v, const char *what);
// Fails with CHOIR_INVALID if a written v is mirrored without an aggregation.
choir_status chi_write_check_aggregation(choir_replica *replica, const choir_variable *v);
// Fails with CHOIR_INVALID if all replicas assigned the same plain number to a SUM variable.
choir_status chi_write_check_number(
		choir_cross *x, const choir_variable *v, const choir_value *given);
// Fails unless a write here sees v as a whole. Errors are recorded in f.
choir_status chi_write_check_across(choir_frame *f, const choir_variable *v, const char *what);
