// Initial values, made on the host.
#pragma once

#include "value/variable.h"

// Fills out by the variable's plan.
choir_status chi_initialize(const chi_variable_plan *plan, void *out);
bool chi_initializer_is_random(const choir_variable_options *o);
