// The result of a closure, for the program.
#pragma once

#include "coordinator/coordinator.h"

struct choir_remote_value {
	choir_coordinator *coordinator;
	chi_closure *closure;
	choir_values *set;
};

// When the closure has finished without a failure: sets v->set.
choir_status chi_remote_value_unpack(choir_remote_value *v);
