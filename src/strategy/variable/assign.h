// What all ways to write a variable share: who may write it where.
#pragma once

#include "strategy/replica/replica.h"

// The thread must be in that replica, and v of its strategy: CHOIR_STATE. what names the call.
choir_status chi_write_check_replica(
		choir_replica *replica, const choir_variable *v, const char *what);
// A mirrored variable is written in a replica by its aggregation: CHOIR_INVALID if it has none.
choir_status chi_write_check_aggregation(choir_replica *replica, const choir_variable *v);
// CHOIR_INVALID if all replicas have given the same plain number, which has no SUM over them.
choir_status chi_write_check_number(
		choir_cross *x, const choir_variable *v, const choir_value *given);
// The thread must be where v is seen as a whole, which f keeps otherwise.
choir_status chi_write_check_across(choir_frame *f, const choir_variable *v, const char *what);
