// A replica's internal interface.
#pragma once

#include "strategy/run/run.h"

void chi_replica_call(chi_replica *r);
void chi_replica_end(chi_replica *r); // after its updates
// r passes t to a collective: all replicas must pass their tensors in one order.
void chi_replica_gives(chi_replica *r, const choir_tensor *t);
// call, or "call of LABEL".
void chi_replica_name_collective(const chi_replica *r, const char *call, char name[64]);
bool chi_replica_is_default(const chi_replica *r);
choir_status chi_replica_check(const choir_replica *r, const char *what);
choir_status chi_replica_check_variable(const chi_replica *r, const choir_variable *v);
// Copies the caller's memory, which others may read after the call named what.
choir_tensor *chi_replica_take_arg(
		const chi_replica *r, const char *name, const char *what, choir_tensor *value);
