// A replica from inside: its call, and what each of its own calls checks.
#pragma once

#include "strategy/run/run.h"

// Calls the run's function in r, from start to return.
void chi_replica_call(chi_replica *r);
// r is about to give t to a collective: all replicas must give their tensors in one order.
void chi_replica_gives(chi_replica *r, const choir_tensor *t);
// The name of a collective of r's in messages: call, or, where r has a label, "call of LABEL".
void chi_replica_name_collective(const chi_replica *r, const char *call, char name[64]);
// Whether r is the default replica outside any run.
bool chi_replica_is_default(const chi_replica *r);
// The replica whose context this thread is in must be r.
choir_status chi_replica_check(const choir_replica *r, const char *what);
// CHOIR_STATE if r, in whose frame it is kept, and v are of two strategies.
choir_status chi_replica_check_variable(const chi_replica *r, const choir_variable *v);
// A leaf as r sees it: a variable, a number of r's own, or a view of its part or of the nearest
// component. what: the call, in messages. NULL: recorded in r's frame.
choir_tensor *chi_replica_view(
		const chi_replica *r, choir_value *v, const char *what, const char *name);
