// Initial values of variables, made on the host.
#pragma once

#include "value/variable.h"

// Fills host memory with a variable's initial value by its plan.
choir_status chi_initialize(const chi_variable_plan *plan, void *out);
// Whether the options ask for random initial values.
bool chi_initializer_is_random(const choir_variable_options *o);
